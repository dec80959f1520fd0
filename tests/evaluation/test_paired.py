"""Tests and intervals from few paired units."""

from __future__ import annotations

import numpy as np
import pytest

from driftformer.evaluation.paired import bootstrapped, interquartile, interquartile_mean, sign_flip_p, stretches


def test_ten_equal_signs_are_significant_and_five_never_are() -> None:
    assert sign_flip_p(np.arange(1.0, 11.0)) == 2 / 2**10
    assert sign_flip_p(-np.arange(1.0, 11.0)) == 2 / 2**10
    assert sign_flip_p(np.ones(5)) == 2 / 2**5 > 0.05
    assert sign_flip_p(np.zeros(8)) == 1.0
    assert sign_flip_p(np.array([3.0, 2.0, -1.0])) == 4 / 8  # |±3±2±1| is 4 or more in four of eight patterns


@pytest.mark.parametrize("units", [10, 25])
def test_where_nothing_differs_one_in_twenty_is_called_significant(units: int) -> None:
    rng = np.random.default_rng(0)
    found = np.mean([sign_flip_p(rng.laplace(size=units), seed) < 0.05 for seed in range(1000)])
    assert abs(found - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 1000)


def test_rounding_decides_for_nobody() -> None:
    ahead_in_three = np.array([1.0] * 3 + [0.0] * 17) / 20 + 1e-18
    assert bootstrapped(ahead_in_three).low == 0


def test_stretches_hold_every_round_once_and_in_order() -> None:
    parts = stretches([float(t) for t in range(103)], 10)
    assert len(parts) == 10
    assert parts.sum() == sum(range(103))
    assert parts[0] == sum(range(11))


def test_stretches_make_intervals_honest_where_rounds_depend_on_each_other() -> None:
    """Of an autocorrelated series (AR(1), .9) the rounds give an interval far too narrow; 20 stretches nearly cover."""
    rng = np.random.default_rng(1)
    series = np.zeros((200, 2000))
    for t in range(1, 2000):
        series[:, t] = 0.9 * series[:, t - 1] + rng.normal(size=200)
    rounds = [abs(one.mean()) < 1.96 * one.std() / np.sqrt(2000) for one in series]
    found = [bootstrapped(stretches(one.tolist(), 20) / 100, trial) for trial, one in enumerate(series)]
    assert np.mean(rounds) < 0.5
    assert np.mean([one.low <= 0 <= one.high for one in found]) > 0.87  # .93 is what 20 units can promise, ± .02


def test_the_interquartile_mean_drops_a_quarter_at_each_end() -> None:
    assert interquartile_mean(np.array([100.0, 1, 2, 3, 4, 5, 6, -50])) == np.mean([2, 3, 4, 5])
    found = interquartile([np.array([1.0, 2, 3, 4]), np.array([11.0, 12, 13, 14])])
    assert found.low < found.mean == 7.5 < found.high
    assert interquartile([np.full(4, 3.0), np.full(4, 5.0)]).low == 4.0  # streams are not resampled, units are
