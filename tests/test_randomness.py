"""Random numbers: right in distribution, and a chunk's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from driftformer.randomness import CHUNK, Randomness

shapes = st.lists(st.integers(1, 5), max_size=3).map(tuple)


@given(
    chunks=st.lists(st.integers(0, 50), min_size=1, max_size=5, unique=True),
    draws=st.lists(st.tuples(st.sampled_from(["symmetric", "uniform", "normal"]), shapes), min_size=1, max_size=5),
)
def test_a_chunk_draws_the_same_alone_as_in_any_stack(
    chunks: list[int], draws: list[tuple[str, tuple[int, ...]]]
) -> None:
    stacked = Randomness(7, chunks).stream("features")
    alone = [Randomness(7, [chunk]).stream("features") for chunk in chunks]
    for kind, shape in draws:
        together = getattr(stacked, kind)(*shape)
        assert together.shape == (CHUNK * len(chunks), *shape)
        for place, stream in enumerate(alone):
            own = getattr(stream, kind)(*shape)
            assert torch.equal(together[place * CHUNK : (place + 1) * CHUNK], own)


@pytest.mark.parametrize(
    ("kind", "mean", "variance"), [("symmetric", 0.0, 1 / 3), ("uniform", 0.5, 1 / 12), ("normal", 0.0, 1.0)]
)
def test_draws_have_their_moments(kind: str, mean: float, variance: float) -> None:
    values = getattr(Randomness(1, range(8)).stream("x"), kind)(2000).double().flatten()  # 1,024,000
    assert abs(values.mean() - mean) < 5 * (variance / values.numel()) ** 0.5
    assert abs(values.var() / variance - 1) < 5 * (3 / values.numel()) ** 0.5
    halves = values.view(8, -1)
    correlation = np.corrcoef(halves.numpy()) - np.eye(8)
    assert np.abs(correlation).max() < 5 / halves.shape[1] ** 0.5


def test_uniform_draws_never_reach_one_and_symmetric_ones_use_all_of_float32() -> None:
    stream = Randomness(0, range(4)).stream("x")
    uniform = stream.uniform(5000)
    assert 0 <= uniform.min() <= uniform.max() < 1
    symmetric = stream.symmetric(5000)
    assert symmetric.abs().max() <= 1
    # values finer than the 2^-23 grid of 24-bit uniforms occur near zero
    small = symmetric[symmetric.abs() < 2**-6].double() * 2**23
    assert bool((small != small.round()).any())


@given(seed=st.integers(0, 2**63), purpose=st.sampled_from(["features", "noise", "agent"]))
def test_seeds_and_purposes_are_independent(seed: int, purpose: str) -> None:
    own = Randomness(seed).stream(purpose).normal(3)
    assert not torch.equal(own, Randomness(seed + 1).stream(purpose).normal(3))
    assert not torch.equal(own, Randomness(seed).stream("something else").normal(3))
    assert torch.equal(own, Randomness(seed, dtype=torch.float64).stream(purpose).normal(3).float())
