"""Drifts that differ from problem to problem: each problem keeps to its own parameters."""

from __future__ import annotations

import math

import pytest
import torch

from driftformer.environments.drift import Affine, Compose, Cosine, Drift, Jumps, Stationary
from driftformer.environments.linear import LinearBandit
from driftformer.environments.per_problem import (
    CosineAmong,
    CosineWithin,
    OneOf,
    Units,
    WalkWithin,
)
from driftformer.errors import InputError
from driftformer.randomness import Randomness
from driftformer.simulation.tape import Tape, problems_of

SIZE = 400


def laid_out(drift: Drift, horizon: int = 30, size: int = SIZE) -> Tape:
    return problems_of(LinearBandit(horizon=horizon, dim=3, arms=4, noise=1.0, drift=drift), Randomness(0, size=size))


def test_cosine_among_gives_each_frequency_to_equally_many_problems() -> None:
    mixed = laid_out(CosineAmong((0.01, 0.03)))
    for place, b in enumerate((0.01, 0.03)):
        alone = laid_out(Cosine(b))
        assert torch.allclose(mixed.values[place::2], alone.values[place::2], atol=1e-5)


def test_cosine_within_stays_in_its_ranges_and_a_share_is_in_phase() -> None:
    spread = laid_out(CosineWithin((0.01, 0.02), (1.0, 1.5), in_phase=0.5)).spread.abs()
    first = spread[:, 0]  # |cos(2πb + phase)|
    in_phase = first > math.cos(2 * math.pi * 0.02) - 1e-6
    assert 0.4 < float(in_phase.float().mean()) < 0.6
    others = first[~in_phase]
    angles = torch.acos(others)
    assert float(angles.min()) >= 1.0 + 2 * math.pi * 0.01 - 1e-3
    assert float(angles.max()) <= math.pi / 2 + 0.1


def test_units_change_scale_shift_and_signal_for_good() -> None:
    plain, other = laid_out(Stationary()), laid_out(Units((0.5, 2.0), (-1.0, 1.0), (0.5, 2.0)))
    scale = other.spread.abs()[:, 0]
    assert 0.5 <= float(scale.min()) < 0.6
    assert 1.7 < float(scale.max()) <= 2.0
    assert torch.allclose(other.spread.abs(), scale.unsqueeze(1).expand(-1, 30))
    ratio = (other.values[:, 0, 0] - other.values[:, 0, 1]) / (plain.values[:, 0, 0] - plain.values[:, 0, 1]) / scale
    assert float(ratio.min()) >= 0.5 - 1e-2
    assert float(ratio.max()) <= 2.0 + 1e-2


def test_walks_have_lengths_of_their_own() -> None:
    world = LinearBandit(horizon=50, dim=3, arms=4, drift=WalkWithin((1.0, 5.0)))
    randomness = Randomness(0, size=SIZE)
    state = world.reset(randomness)
    length, before = torch.zeros(SIZE), state.effect.w
    for _ in range(49):
        state = world.advance(state, randomness)
        length += (state.effect.w - before).norm(dim=1)
        before = state.effect.w
    assert 1.0 - 1e-3 <= float(length.min()) < 1.5
    assert 4.5 < float(length.max()) <= 5.0 + 1e-3


def test_one_of_gives_every_problem_one_drift_for_good() -> None:
    choices = (Stationary(), Affine(2.0, 5.0))
    mixed, plain, moved = laid_out(OneOf(choices, (1.0, 3.0))), laid_out(choices[0]), laid_out(choices[1])
    first = (mixed.values == plain.values).flatten(1).all(dim=1)
    second = (mixed.values == moved.values).flatten(1).all(dim=1)
    assert bool((first ^ second).all())
    assert 0.68 < float(second.float().mean()) < 0.82


def test_one_of_keeps_redrawn_rounds_of_jumps() -> None:
    world = LinearBandit(horizon=20, dim=3, arms=4, drift=OneOf((Stationary(), Jumps(3)), (1.0, 1.0)))
    randomness = Randomness(0, size=SIZE)
    state = world.reset(randomness)
    redrawn = state.effect.redrawn.long()
    for _ in range(19):
        state = world.advance(state, randomness)
        redrawn += state.effect.redrawn
    assert set(redrawn.tolist()) == {0, 3}


def test_drifts_compose_with_the_fixed_ones() -> None:
    both = laid_out(Compose((CosineAmong((0.01,)), Affine(0.5, 1.0))))
    alone = laid_out(CosineAmong((0.01,)))
    assert torch.allclose(both.values, alone.values * 0.5 + 1.0, atol=1e-5)


def test_impossible_ranges_and_weights_are_refused() -> None:
    with pytest.raises(InputError, match="lower end first"):
        CosineWithin((0.03, 0.01))
    with pytest.raises(InputError, match="give one for each of the 2 drifts"):
        OneOf((Stationary(), Stationary()), (1.0,))
    with pytest.raises(InputError, match="scale"):
        Units(scale=(0.0, 1.0))
