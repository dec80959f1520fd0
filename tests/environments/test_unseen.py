"""Drifts to test policies with."""

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


def test_waves_have_their_shapes() -> None:
    def scales(shape: str) -> list[float]:
        problems = problems_of(make_env("wave", horizon=20, shape=shape, b=0.1), Randomness(0, size=1))
        return [round(float(truth.linear.scale[0]), 6) for truth in problems.truths]

    assert scales("sawtooth")[:10] == [0.8, 0.6, 0.4, 0.2, 0.0, -0.2, -0.4, -0.6, -0.8, 1.0]
    assert scales("square") == [1, 1, 1, 1, -1, -1, -1, -1, -1, 1] * 2
    turns = [0.1 * t for t in range(1, 21)]
    beats = [math.cos(2 * math.pi * x) * math.cos(0.46 * math.pi * x) for x in turns]
    assert scales("beats") == pytest.approx(beats, abs=1e-5)
    with pytest.raises(InputError, match="shape"):
        make_env("wave", shape="round")


def test_the_best_arm_pays_like_the_worst_for_a_while() -> None:
    values = problems_of(make_env("outage", horizon=40, share=0.25), Randomness(0, dtype=torch.float64)).values
    first, best = values[:, 0], values[:, 0].argmax(dim=1)
    changed = (values - first.unsqueeze(1)).abs() > 1e-6  # [B, T, A]
    assert torch.equal(changed.any(dim=1).sum(dim=1), torch.ones(64))
    assert torch.equal(changed.any(dim=1).long().argmax(dim=1), best)
    out = changed.any(dim=2)
    assert set(out.sum(dim=1).tolist()) <= {10, 11}
    assert not bool(out[:, :8].any())
    assert torch.allclose(values[out].gather(1, best.repeat_interleave(out.sum(1)).unsqueeze(1)).squeeze(1),
                          first.amin(dim=1).repeat_interleave(out.sum(1)))  # fmt: skip


def test_bursts_change_the_noise_alone() -> None:
    problems = problems_of(make_env("bursts", horizon=12, factor=3.0, length=4), Randomness(0))
    assert torch.allclose(problems.values, problems.values[:, :1].expand_as(problems.values), atol=1e-5)
    spread = problems.spread[0] / problems.spread[0, 0]
    assert torch.allclose(spread, torch.tensor([1.0] * 4 + [3.0] * 4 + [1.0] * 4))


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
