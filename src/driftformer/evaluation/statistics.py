"""Means, spreads and paired differences of dynamic regret, from stored chunks.

Everything is computed in float64 in a fixed order, so equal results give equal summaries to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from driftformer.simulation.regret import Array, ChunkRegret

RESAMPLES = 2000
"""Bootstrap resamples behind each interval."""


@dataclass(frozen=True)
class Curve:
    """A quantity of each round over many runs."""

    mean: Array  # [T]
    std: Array  # [T] between runs: the paper's shading
    stderr: Array  # [T] of the mean


@dataclass(frozen=True)
class AgentRegret:
    """All that is known of one agent's regret."""

    final: Array  # [runs] cumulative dynamic regret of each run
    regret: Curve
    suboptimality: Curve
    diagnostics: dict[str, Array]  # [runs] each: what the agent told of itself


@dataclass(frozen=True)
class PairedDifference:
    """How much more regret `agent` has than `reference` on the same problems, with a 95% bootstrap interval."""

    agent: str
    reference: str
    runs: int  # that both played
    mean: float
    low: float
    high: float


def combine(chunks: Sequence[ChunkRegret]) -> AgentRegret:
    """One agent's chunks as if they had been one batch."""
    counts = [len(chunk.regret) for chunk in chunks]
    return AgentRegret(
        final=np.concatenate([chunk.regret for chunk in chunks]),
        regret=_merge(counts, [(chunk.regret_mean, chunk.regret_squares) for chunk in chunks]),
        suboptimality=_merge(counts, [(chunk.suboptimality_mean, chunk.suboptimality_squares) for chunk in chunks]),
        diagnostics={
            name: np.concatenate([chunk.diagnostics[name] for chunk in chunks])
            for name in sorted(chunks[0].diagnostics)  # a stored chunk has them in any order
        },
    )


def _merge(counts: Sequence[int], moments: Iterable[tuple[Array, Array]]) -> Curve:
    """Chan's formula: merge means and sums of squared deviations without cancellation."""
    total = 0
    mean, squares = np.zeros(1), np.zeros(1)
    for count, (more_mean, more_squares) in zip(counts, moments, strict=True):
        delta = more_mean - mean
        both = total + count
        mean = mean + delta * (count / both)
        squares = squares + more_squares + np.square(delta) * (total * count / both)
        total = both
    std = np.sqrt(squares / max(total - 1, 1))
    return Curve(mean, std, std / np.sqrt(total))


def _resampled_means(finals: Mapping[str, Array], runs: int, rng: np.random.Generator) -> dict[str, Array]:
    """The mean of each bootstrap resample, `[RESAMPLES]`, a few resamples at a time to save memory."""
    means: dict[str, list[Array]] = {name: [] for name in finals}
    at_once = max(1, 2**21 // runs)
    for first in range(0, RESAMPLES, at_once):
        rows = rng.integers(0, runs, size=(min(at_once, RESAMPLES - first), runs))
        for name, final in finals.items():
            means[name].append(final[rows].mean(axis=1))
    return {name: np.concatenate(parts) for name, parts in means.items()}


def paired_differences(finals: Mapping[str, Array], seed: int) -> list[PairedDifference]:
    """Every pair of agents, run by run; common random numbers make these much tighter than the means themselves.

    An agent that played fewer runs is compared on those.
    """
    names = list(finals)
    means: dict[int, dict[str, Array]] = {}
    for runs in {len(final) for final in finals.values()}:
        common = {name: final[:runs] for name, final in finals.items() if len(final) >= runs}
        means[runs] = _resampled_means(common, runs, np.random.default_rng(seed))
    pairs = [(agent, reference) for i, agent in enumerate(names) for reference in names[i + 1 :]]
    differences = []
    for agent, reference in pairs:
        runs = min(len(finals[agent]), len(finals[reference]))
        low, high = np.quantile(means[runs][agent] - means[runs][reference], [0.025, 0.975])
        mean = np.mean(finals[agent][:runs] - finals[reference][:runs])
        differences.append(PairedDifference(agent, reference, runs, float(mean), float(low), float(high)))
    return differences
