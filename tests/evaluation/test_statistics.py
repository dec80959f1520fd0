"""Statistics against plain NumPy, and intervals that mean what they say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from driftformer.evaluation.statistics import combine, paired_differences
from driftformer.simulation.rollout import ChunkRegret


def chunk(gaps: np.ndarray) -> ChunkRegret:
    total = gaps.cumsum(axis=0)
    mean, mean_total = gaps.mean(axis=1), total.mean(axis=1)
    return ChunkRegret(
        total[-1],
        mean,
        np.square(gaps - mean[:, None]).sum(axis=1),
        mean_total,
        np.square(total - mean_total[:, None]).sum(axis=1),
    )


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.floats(0, 1e6), st.integers(0, 99))
def test_chunks_combine_as_if_they_had_been_one(counts: list[int], offset: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [rng.uniform(0, 2, (6, count)) + offset for count in counts]
    whole = combine([chunk(part) for part in parts])
    gaps = np.concatenate(parts, axis=1)
    total = gaps.cumsum(axis=0)
    runs = gaps.shape[1]
    assert np.allclose(whole.final, total[-1])
    for curve, values in ((whole.suboptimality, gaps), (whole.regret, total)):
        std = values.std(axis=1, ddof=1) if runs > 1 else np.zeros(6)
        assert np.allclose(curve.mean, values.mean(axis=1))
        assert np.allclose(curve.std, std, rtol=1e-6, atol=1e-9 * (1 + offset))
        assert np.allclose(curve.stderr, curve.std / np.sqrt(runs))


def test_paired_intervals_hold_the_truth_about_95_times_in_100() -> None:
    """300 experiments: the number that miss is binomial with mean 15 and standard deviation 3.8; three of them."""
    rng = np.random.default_rng(0)
    missed = 0
    for seed in range(300):
        shared = rng.gamma(2.0, 50.0, 100)  # problems differ far more than agents do
        finals = {"a": shared + rng.normal(3.0, 2.0, 100), "b": shared}
        (pair,) = paired_differences(finals, seed)
        assert (pair.agent, pair.reference) == ("a", "b")
        assert pair.high - pair.low < 1.2
        missed += not pair.low <= 3.0 <= pair.high
    assert 4 <= missed <= 26


def test_every_pair_is_compared_once_and_the_same_way_each_time() -> None:
    rng = np.random.default_rng(1)
    finals = {name: rng.normal(size=50) for name in "abcd"}
    pairs = paired_differences(finals, seed=4)
    assert [(pair.agent, pair.reference) for pair in pairs] == [
        ("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d"),
    ]  # fmt: skip
    assert pairs == paired_differences(finals, seed=4)
