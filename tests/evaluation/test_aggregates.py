"""Many worlds at once, held to the definitions of Agarwal and others (2021), written out the slow way."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from driftformer.evaluation.aggregates import improvement, profile, scores

RNG = np.random.default_rng(0)
OURS = [RNG.normal(1.0, 1.0, 30), RNG.normal(0.2, 2.0, 17)]
THEIRS = [RNG.normal(0.0, 1.0, 30), RNG.normal(0.0, 2.0, 17)]


def test_chance_has_score_0_and_the_best_100_whatever_the_unit() -> None:
    regrets = np.array([0.0, 5.0, 10.0, 20.0])
    assert scores(regrets, chance=10.0).tolist() == [100.0, 50.0, 0.0, -100.0]
    assert scores(1000 * regrets, chance=10_000.0).tolist() == [100.0, 50.0, 0.0, -100.0]
    assert scores(np.array([4.0]), chance=10.0, best=4.0).tolist() == [100.0]


def test_the_probability_of_improvement_counts_all_pairs_of_a_world_and_ties_as_half() -> None:
    by_hand = np.mean(
        [
            np.mean([1.0 if x > y else 0.5 if x == y else 0.0 for x, y in itertools.product(one, other)])
            for one, other in zip(OURS, THEIRS, strict=True)
        ]
    )
    found = improvement(OURS, THEIRS)
    assert found.mean == pytest.approx(by_hand)
    assert found.low < found.mean < found.high
    assert improvement(OURS, OURS).mean == 0.5
    assert improvement(THEIRS, OURS).mean == pytest.approx(1 - by_hand)
    sure = improvement([np.arange(5.0) + 10], [np.arange(5.0)])
    assert sure.low == sure.mean == sure.high == 1.0


def test_a_profile_is_the_share_of_problems_above_each_score_every_world_counting_the_same() -> None:
    levels = np.array([-1.0, 0.0, 1.0])
    share, low, high = profile(OURS, levels)
    by_hand = [np.mean([np.mean(world > level) for world in OURS]) for level in levels]
    assert share == pytest.approx(by_hand)
    assert (low <= share).all()
    assert (share <= high).all()
    assert (np.diff(share) <= 0).all()


@pytest.mark.parametrize("what", ["improvement", "profile"])
def test_intervals_hold_the_truth_as_often_as_they_say(what: str) -> None:
    """X ~ N(½, 1) and Y ~ N(0, 1), independent, in two worlds of 40 problems: P(X > Y) = Φ(½/√2), P(X > 0) = Φ(½).

    Of 300 intervals at 95%, 12 or more of 100 would miss by chance once in many thousand times; the percentile
    bootstrap of 40 problems is allowed to miss 9 of 100.
    """
    truth = {"improvement": 0.6382, "profile": 0.6915}[what]
    rng, held = np.random.default_rng(1), []
    for trial in range(300):
        ours = [rng.normal(0.5, 1.0, 40) for _ in range(2)]
        if what == "improvement":
            found = improvement(ours, [rng.normal(0.0, 1.0, 40) for _ in range(2)], trial)
            held.append(found.low <= truth <= found.high)
        else:
            _, low, high = profile(ours, np.zeros(1), trial)
            held.append(low[0] <= truth <= high[0])
    assert 0.88 < np.mean(held) < 0.99


def test_problems_that_agents_share_make_a_comparison_tighter() -> None:
    """A small lead on every problem, under large differences between problems: resampled together, it is certain."""
    hard = RNG.normal(0.0, 10.0, 50)
    shared = improvement([hard + 8.0], [hard])
    apart = improvement([hard + 8.0], [RNG.permutation(hard)])
    assert shared.high - shared.low < 0.8 * (apart.high - apart.low)
