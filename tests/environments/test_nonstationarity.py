"""Definition 1, against formulas and brute force."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

import driftformer as df
from driftformer.errors import InputError
from tests.environments.test_linear import worlds


def test_a_stationary_world_does_not_change() -> None:
    for mode in ("fixed", "resampled"):
        for over in ("offered", "box"):
            measured = df.nonstationarity(df.make_env("stationary", horizon=20, arm_mode=mode), over=over)
            assert torch.count_nonzero(measured.amount()) == 0
            assert torch.equal(measured.count(), torch.ones(64, dtype=torch.long))


def test_low_changes_four_times_by_its_lift() -> None:
    measured = df.nonstationarity(df.make_env("low"), problems=3)
    assert measured.changes.shape == (3, 999)
    assert torch.equal(measured.count(), torch.full((3,), 5))  # J = 1 + four edges of two windows
    assert torch.allclose(measured.amount(), torch.full((3,), 12.0, dtype=torch.float64))
    edges = measured.changes[0].nonzero().flatten() + 1
    assert edges.tolist() == [49, 100, 349, 400]
    assert torch.equal(measured.count(101, 349), torch.ones(3, dtype=torch.long))
    assert torch.equal(measured.count(100, 350), torch.full((3,), 3))


def test_intervals_add_up() -> None:
    measured = df.nonstationarity(df.make_env("walk", horizon=30))
    whole = measured.amount()
    assert torch.allclose(measured.amount(1, 12) + measured.amount(12, 30), whole)
    assert torch.count_nonzero(measured.amount(7, 7)) == 0
    with pytest.raises(InputError, match=r"interval is \[5, 31\]"):
        measured.amount(5, 31)


def test_high_over_the_box_has_its_closed_form() -> None:
    environment = df.make_env("high", b=0.018)
    measured = df.nonstationarity(environment, over="box")
    w = worlds("high", horizon=1)[0].origin.w
    for t in (1, 50, 199):
        factor = abs(math.cos(2 * math.pi * 0.018 * t) - math.cos(2 * math.pi * 0.018 * (t + 1)))
        assert torch.allclose(measured.changes[:, t - 1], w.sum(dim=1) * factor)


@pytest.mark.parametrize("name", ["low", "high", "jumps", "walk", "seasonal"])
def test_the_box_is_the_maximum_over_its_corners(name: str) -> None:
    options = {"horizon": 8, "dim": 3, "arms": 2}
    rounds = worlds(name, **options)
    measured = df.nonstationarity(df.make_env(name, **options), over="box")
    corners = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=3)), dtype=torch.float64)  # [8, 3]
    for t in range(1, 8):
        now, later = (
            world.effect.scale.unsqueeze(1) * (world.effect.w @ corners.T) + world.effect.shift.unsqueeze(1)
            for world in (rounds[t - 1], rounds[t])
        )
        assert torch.allclose(measured.changes[:, t - 1], (now - later).abs().amax(dim=1))


def test_resampled_arms_are_measured_on_those_offered_in_either_round() -> None:
    options = {"horizon": 6, "dim": 3, "arms": 2, "arm_mode": "resampled"}
    rounds = worlds("walk", **options)
    measured = df.nonstationarity(df.make_env("walk", **options))
    for t in range(1, 6):
        step = rounds[t].effect.w - rounds[t - 1].effect.w  # [B, d]
        arms = torch.cat([rounds[t - 1].observation.action_set, rounds[t].observation.action_set], dim=1)
        brute = torch.stack([(arms[b] @ step[b]).abs().max() for b in range(64)])
        assert torch.allclose(measured.changes[:, t - 1], brute)


def test_jumps_change_as_often_as_asked() -> None:
    measured = df.nonstationarity(df.make_env("jumps", horizon=50, changes=3), problems=70)
    assert torch.equal(measured.count(), torch.full((70,), 4))
