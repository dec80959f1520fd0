"""What a policy is worth, from rounds that another one decided: four estimates and when to believe them.

Symbols: r_t the reward, p_t the propensity of the logged arm a_t, π_t the evaluated agent's probabilities in round t,
w_t = π_t(a_t) / p_t the weight, q̂_t what a model that knows earlier rounds only expects of each arm. The estimates are
defined as in Open Bandit Pipeline (`ReplayMethod`, `InverseProbabilityWeighting`,
`SelfNormalizedInverseProbabilityWeighting`, `DoublyRobust`). Intervals are normal ones, ±1.96 standard errors: π_t and
q̂_t depend on earlier rounds alone, so the errors of the rounds are martingale differences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LEAST = 100
"""Matches, or effective samples, below which there is no estimate."""
NOT_UNIFORM = "arms were not drawn uniformly after all: weights are not 1 in the mean"
_WIDTH = 1.959963984540054
_FAR, _ROUNDED = 4.0, 0.02
"""Standard errors that the mean weight may be away from 1, and how far rounded propensities may move it."""


@dataclass(frozen=True)
class Estimate:
    """An agent's mean reward in a round, with a 95% interval, or why the log cannot tell."""

    value: float | None
    stderr: float | None
    samples: float
    """Matches for replay, effective samples for the others."""
    refused: str = ""
    """Why there is no value."""

    @property
    def interval(self) -> tuple[float, float] | None:
        if self.value is None or self.stderr is None:
            return None
        return self.value - _WIDTH * self.stderr, self.value + _WIDTH * self.stderr


def mean_of(terms: Array, samples: float) -> Estimate:
    """The mean of the rounds' terms."""
    spread = float(terms.std(ddof=1)) if len(terms) > 1 else math.inf
    return Estimate(float(terms.mean()), spread / math.sqrt(len(terms)), samples)


def replay(reward: Array, matched: Array) -> Estimate:
    """Σ 1{match} r / Σ 1{match}: the mean reward where the agent chose what the log did (Li et al. 2011)."""
    return mean_of(reward[matched], int(matched.sum()))


def ips(reward: Array, weight: Array) -> Estimate:
    """Mean of w·r: inverse propensity scoring."""
    return mean_of(weight * reward, effective_samples(weight))


def snips(reward: Array, weight: Array) -> Estimate:
    """Σ w·r / Σ w: self-normalised; the standard error is that of a ratio, by the delta method."""
    total = weight.sum()
    value = float((weight * reward).sum() / total)
    stderr = float(np.sqrt(np.square(weight * (reward - value)).sum()) / total)
    return Estimate(value, stderr, effective_samples(weight))


def doubly_robust(reward: Array, weight: Array, played: Array, expected: Array) -> Estimate:
    """Mean of Σ_a π(a) q̂(a) + w·(r − q̂(a_t)), from q̂ of the logged arm (`played`) and under π (`expected`)."""
    return mean_of(expected + weight * (reward - played), effective_samples(weight))


def effective_samples(weight: Array) -> float:
    """(Σ w)² / Σ w²: how many rounds of the agent's own these are worth."""
    squares = float(np.square(weight).sum())
    return float(weight.sum()) ** 2 / squares if squares else 0.0


def estimates(
    reward: Array, weight: Array, played: Array, expected: Array, matched: Array | str
) -> dict[str, Estimate]:
    """All four by name, or why not. In the place of `matched` stands why the log's arms are not uniform, if they are
    not; where they are said to be, weights that are not 1 in the mean show that it is not so."""
    no_weights = why_not_weights(weight)
    unknown = Estimate(None, None, effective_samples(weight), no_weights)
    if isinstance(matched, str):
        replayed = Estimate(None, None, 0, matched)
    elif no_weights and unknown.samples >= LEAST:
        replayed = Estimate(None, None, int(matched.sum()), NOT_UNIFORM)
    elif (matches := int(matched.sum())) < LEAST:
        replayed = Estimate(None, None, matches, f"{matches} matches; {LEAST} are needed{_if_short(matched)}")
    else:
        replayed = replay(reward, matched)
    return {
        "replay": replayed,
        "ips": unknown if no_weights else ips(reward, weight),
        "snips": unknown if no_weights else snips(reward, weight),
        "dr": unknown if no_weights else doubly_robust(reward, weight, played, expected),
    }


def why_not_weights(weight: Array) -> str:
    """Why a log cannot tell by weights; empty if it can. With true propensities, weights are 1 in the mean."""
    samples = effective_samples(weight)
    if samples < LEAST:
        why = _if_short(weight) or ", and the log hardly did what this agent does"
        return f"worth {samples:.0f} samples; {LEAST} are needed{why}"
    mean, stderr = float(weight.mean()), float(weight.std(ddof=1)) / math.sqrt(len(weight))
    if abs(mean - 1) > _FAR * stderr + _ROUNDED:
        return (
            f"weights are {mean:.2f} ± {stderr:.2g} in the mean, not 1: propensities are wrong, or arms that this "
            "agent takes had no chance"
        )
    return ""


def _if_short(rounds: Array) -> str:
    """What else to say of too few samples, where no agent could have had more."""
    return f", and the log has only {len(rounds)} rounds" if len(rounds) < LEAST else ""
