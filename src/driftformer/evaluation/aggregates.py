"""Agents over several worlds at once, as Agarwal and others define it.

"Deep reinforcement learning at the edge of the statistical precipice" (2021): interquartile means, performance profiles
and probabilities of improvement, with stratified bootstrap intervals, in which the problems of each world are resampled
on their own. All agents play the same problems here, so a problem is drawn with all the agents that play it; the
intervals of a comparison are tighter for that.

A score is 0 for random play and 100 for the best arm of every round or, `against` an agent such as the oracle, for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driftformer.evaluation.paired import Interval
from driftformer.evaluation.statistics import RESAMPLES
from driftformer.simulation.rollout import Array

TOP = 100.0


def scores(regrets: Array, chance: float, best: float = 0.0) -> Array:
    """Regrets of single problems as scores, between the mean regret of chance and that of the best: `[runs]`."""
    return TOP * (chance - np.asarray(regrets, np.float64)) / (chance - best)


def profile(worlds: Sequence[Array], levels: Array, seed: int = 0) -> tuple[Array, Array, Array]:
    """The share of problems whose score is above each level, each world counting the same; its interval: `[L]` each.

    That is the run-score distribution of Section 4.2, with pointwise intervals.
    """
    above = [(scores[:, None] > levels).astype(np.float64) for scores in worlds]  # [N, L] each
    rng = np.random.default_rng(seed)
    drawn = np.mean([_weights(rng, len(rows)) @ rows for rows in above], axis=0)  # [RESAMPLES, L]
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    return np.mean([rows.mean(axis=0) for rows in above], axis=0), low, high


def improvement(ours: Sequence[Array], theirs: Sequence[Array], seed: int = 0) -> Interval:
    """P(X > Y) of Section 4.3: how often a problem of ours beats any of theirs, a tie being half, averaged over worlds.

    It is the Mann-Whitney statistic of each world over the number of pairs.
    """
    rng = np.random.default_rng(seed)
    shares, drawn = [], np.zeros(RESAMPLES)
    for one, other in zip(ours, theirs, strict=True):
        wins = np.heaviside(one[:, None] - other[None, :], 0.5)  # [N, N]
        weights = _weights(rng, len(one))
        shares.append(wins.mean())
        drawn += ((weights @ wins) * weights).sum(axis=1) / len(ours)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(float(np.mean(shares)), float(low), float(high))


def _weights(rng: np.random.Generator, runs: int) -> Array:
    """How often each problem is drawn in each resample, as shares: `[RESAMPLES, runs]`."""
    counts: Array = rng.multinomial(runs, np.full(runs, 1 / runs), size=RESAMPLES) / runs
    return counts
