"""Who is ahead of whom, from few paired measurements: whole problems, or stretches of rounds of a single stream.

A stream of data in its own order is one problem, however often it is played. It is cut into consecutive stretches of
rounds (batch means, as they are used for any series whose neighbours depend on each other), and these are the units
over which differences are paired and resampled. Stretches should be long against what an agent remembers.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from driftformer.evaluation.statistics import RESAMPLES
from driftformer.simulation.rollout import Array

_MOST_EXACT = 12
"""Units up to which all patterns of signs are gone through."""


@dataclass(frozen=True)
class Interval:
    """A mean and its 95% interval."""

    mean: float
    low: float
    high: float


def stretches(curve: Sequence[float], parts: int) -> Array:
    """The sums over consecutive stretches of rounds of nearly equal length, `[parts]`."""
    return np.array([part.sum() for part in np.array_split(np.asarray(curve, np.float64), parts)])


def bootstrapped(units: Array, seed: int = 0) -> Interval:
    """The mean of some units and a bootstrap interval."""
    rows = np.random.default_rng(seed).integers(0, len(units), size=(RESAMPLES, len(units)))
    ends = np.quantile(units[rows].mean(axis=1), [0.025, 0.975])
    low, high = np.where(np.abs(ends) < 1e-9 * np.abs(units).max(), 0.0, ends)  # rounding does not decide who is ahead
    return Interval(float(units.mean()), float(low), float(high))


def sign_flip_p(differences: Array, seed: int = 0) -> float:
    """How often a sum as far from 0 comes about if each unit's difference had had either sign: a test without a law."""
    signs = _signs(len(differences), seed)
    sums = np.abs(signs @ differences)
    found = abs(float(differences.sum()))
    return float((sums >= found - 1e-9 * max(1.0, found)).mean())


@lru_cache(maxsize=8)
def _signs(units: int, seed: int) -> Array:
    """All patterns of signs, or some of very many, `[P, units]`."""
    if units <= _MOST_EXACT:
        return np.array(list(itertools.product((-1.0, 1.0), repeat=units)))
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(2**_MOST_EXACT, units))
    signs[0] = 1  # what was seen is one of the patterns
    return signs


def interquartile_mean(values: Array) -> Array:
    """The mean of the middle half of each row."""
    ordered = np.sort(values, axis=-1)
    cut = ordered.shape[-1] // 4
    middle: Array = ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1)
    return middle


def interquartile(streams: Sequence[Array], seed: int = 0) -> Interval:
    """The interquartile mean over the units of all streams; each stream's units are resampled on their own.

    That is the interval of Agarwal and others, "Deep reinforcement learning at the edge of the statistical precipice".
    """
    rng = np.random.default_rng(seed)
    drawn = [units[rng.integers(0, len(units), (RESAMPLES, len(units)))] for units in streams]
    means = interquartile_mean(np.concatenate(drawn, axis=1))
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(interquartile_mean(np.concatenate(list(streams)))), float(low), float(high))
