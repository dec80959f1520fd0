"""Means, spreads and paired differences of dynamic regret, from stored chunks.

Everything is computed in float64 in a fixed order, so equal results give equal summaries to the last bit.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from driftformer.environments.base import Environment
from driftformer.simulation.rollout import Array, ChunkRegret
from driftformer.simulation.summary import AgentSummary, PairedDifference, Summary

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
    """One agent's regret over all of its chunks."""

    final: Array  # [runs] cumulative dynamic regret of each run
    regret: Curve
    suboptimality: Curve
    diagnostics: dict[str, Array]  # [runs] each: what the agent reports about itself


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


def resampled_means(finals: Mapping[str, Array], seed: int) -> dict[str, Array]:
    """The mean of each bootstrap resample of the runs, `[RESAMPLES]`, a few resamples at a time to save memory."""
    (runs,) = {len(final) for final in finals.values()}
    rng = np.random.default_rng(seed)
    means: dict[str, list[Array]] = {name: [] for name in finals}
    at_once = max(1, 2**21 // runs)
    for first in range(0, RESAMPLES, at_once):
        rows = rng.integers(0, runs, size=(min(at_once, RESAMPLES - first), runs))
        for name, final in finals.items():
            means[name].append(final[rows].mean(axis=1))
    return {name: np.concatenate(parts) for name, parts in means.items()}


def paired_differences(finals: Mapping[str, Array], seed: int) -> tuple[PairedDifference, ...]:
    """Every pair of agents, run by run; common random numbers make these much tighter than the means themselves."""
    means = resampled_means(finals, seed)
    differences = []
    for agent, reference in itertools.combinations(finals, 2):
        low, high = np.quantile(means[agent] - means[reference], [0.025, 0.975])
        apart = finals[agent] - finals[reference]  # [runs]
        differences.append(PairedDifference(agent, reference, len(apart), float(apart.mean()), float(low), float(high)))
    return tuple(differences)


def summarize(
    environment: Environment, regrets: Mapping[str, AgentRegret], seed: int, privileged: Collection[str]
) -> Summary:
    """Sum up agents that played the same problems."""
    finals = {name: regret.final for name, regret in regrets.items()}
    return Summary(
        environment=json.loads(json.dumps(environment.config())),  # as it will be read back
        description=environment.describe(),
        horizon=environment.horizon,
        runs=len(next(iter(finals.values()))),
        seed=seed,
        agents={name: _summarize_agent(regret, name in privileged) for name, regret in regrets.items()},
        paired_differences=paired_differences(finals, seed),
    )


def _summarize_agent(found: AgentRegret, privileged: bool) -> AgentSummary:
    runs, regret, suboptimality = len(found.final), found.regret, found.suboptimality
    return AgentSummary(
        privileged=privileged,
        runs=runs,
        regret_mean=float(regret.mean[-1]),
        regret_stderr=float(regret.stderr[-1]) if runs > 1 else None,
        regret_std=float(regret.std[-1]) if runs > 1 else None,
        regret_runs=tuple(found.final.tolist()),
        regret_curve=tuple(regret.mean.tolist()),
        regret_curve_std=tuple(regret.std.tolist()),
        regret_curve_stderr=tuple(regret.stderr.tolist()),
        suboptimality_curve=tuple(suboptimality.mean.tolist()),
        suboptimality_curve_std=tuple(suboptimality.std.tolist()),
        suboptimality_curve_stderr=tuple(suboptimality.stderr.tolist()),
        diagnostics={
            name: {"mean": float(value.mean()), "max": float(value.max())} for name, value in found.diagnostics.items()
        },
    )
