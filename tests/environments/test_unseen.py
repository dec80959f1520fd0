"""Drifts that no policy was trained on."""

from __future__ import annotations

import math

import pytest
import torch

from driftformer.environments.registry import make_env
from driftformer.errors import InputError
from driftformer.randomness import Randomness
from driftformer.simulation.tape import problems_of


def test_the_sign_flips_as_often_as_asked_and_nothing_else_changes() -> None:
    problems = problems_of(make_env("flips", horizon=50, changes=3), Randomness(0))
    signs = torch.stack([truth.linear.scale for truth in problems.truths], dim=1)
    assert set(signs.unique().tolist()) == {-1.0, 1.0}
    assert torch.equal((signs[:, 1:] != signs[:, :-1]).sum(dim=1), torch.full((64,), 3))
    assert torch.allclose(problems.values * signs.unsqueeze(2), problems.values[:, :1] * signs[:, :1, None])
    with pytest.raises(InputError, match="at most horizon - 1 = 4"):
        problems_of(make_env("flips", horizon=5, changes=5), Randomness(0))


def test_one_arm_rises_by_the_height_and_the_others_stay() -> None:
    problems = problems_of(make_env("rising", horizon=40, height=5.0), Randomness(0, dtype=torch.float64))
    gained = (problems.values[:, -1] - problems.values[:, 0]).sort(dim=1).values  # [B, A]
    assert torch.allclose(gained[:, -1], torch.full((64,), 5.0, dtype=torch.float64), atol=1e-6)
    assert float(gained[:, :-1].abs().max()) < 1e-6
    halfway = problems.values[:, 39 // 3] - problems.values[:, 0]
    assert torch.allclose(halfway.amax(dim=1), torch.full((64,), 5.0 / 3, dtype=torch.float64), atol=1e-6)


def test_the_frequency_of_a_chirp_goes_from_the_first_to_the_last() -> None:
    environment = make_env("chirp", horizon=1000, first=0.002, last=0.01, noise=0.0)
    scale = [float(truth.linear.scale[0]) for truth in problems_of(environment, Randomness(0)).truths]
    turns = [t for t in range(1, 1000) if scale[t - 1] * scale[t] < 0]  # a sign change each half turn
    assert len(turns) == pytest.approx(2 * 1000 * (0.002 + 0.01) / 2, abs=1)
    assert turns[1] - turns[0] > 2 * (turns[-1] - turns[-2])


def test_heavy_tails_have_the_stated_spread_and_more_outliers() -> None:
    errors = {}
    for tails in ("normal", "heavy"):
        environment, randomness = make_env("stationary", horizon=500, dim=2, arms=2, tails=tails), Randomness(5)
        world, residuals = environment.reset(randomness), []
        for _ in range(500):
            mean = world.values[:, 0]
            reward, _, world = environment.step(world, torch.zeros(64, dtype=torch.long), randomness)
            residuals.append(reward - mean)
        errors[tails] = torch.cat(residuals).double() / 1.5
    far = {tails: float((error.abs() > 4).double().mean()) for tails, error in errors.items()}
    # Student's t with 3 degrees of freedom, scaled to unit variance, is beyond 4 with probability 0.0062; N(0,1) 6e-5.
    assert far["heavy"] == pytest.approx(0.0062, abs=5 * math.sqrt(0.0062 / 32000))
    assert far["normal"] < 0.0005
    middle = float((errors["heavy"].abs() < 1).double().mean())  # 0.818 against 0.683
    assert middle == pytest.approx(0.818, abs=0.011)
