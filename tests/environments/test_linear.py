"""The linear bandit: what is offered, what is paid, and the paper's two settings."""

from __future__ import annotations

import math

import pytest
import torch

from driftformer.environments.linear import LinearWorld
from driftformer.environments.registry import make_env
from driftformer.errors import InputError
from driftformer.randomness import Randomness


def worlds(name: str, seed: int = 0, **options: object) -> list[LinearWorld]:
    """Every round of one chunk of problems."""
    environment = make_env(name, **options)
    randomness = Randomness(seed, dtype=torch.float64)
    seen = [environment.reset(randomness)]
    while seen[-1].t < environment.horizon:
        seen.append(environment.advance(seen[-1], randomness))
    return seen


def test_low_and_high_have_the_papers_settings() -> None:
    for name, horizon in (("low", 1000), ("high", 200)):
        environment = make_env(name)
        assert (environment.horizon, environment.dim, environment.arms) == (horizon, 32, 10)
        assert (environment.noise, environment.prior, environment.arm_mode) == (1.5, "uniform", "fixed")
    w, arms = worlds("low", horizon=1)[0].origin.w, worlds("low", horizon=1)[0].observation.action_set
    assert 0 <= w.min() < 0.01 < 0.99 < w.max() <= 1
    assert -1 <= arms.min() < -0.99 < 0.99 < arms.max() <= 1
    # 2,048 draws of Unif[0,1] and 20,480 of Unif[-1,1]: five standard errors each
    assert abs(w.mean() - 0.5) < 5 * math.sqrt(1 / 12 / w.numel())
    assert abs(arms.mean()) < 5 * math.sqrt(1 / 3 / arms.numel())


def test_low_maps_rewards_to_a_unit_range_and_lifts_them_inside_both_windows() -> None:
    rounds = worlds("low", horizon=450)
    raw = torch.bmm(rounds[0].observation.action_set, rounds[0].origin.w.unsqueeze(2)).squeeze(2)
    for world in rounds:
        lift = 3.0 if 50 <= world.t <= 100 or 350 <= world.t <= 400 else 0.0
        assert torch.allclose(world.values, (raw + 6) / 12 + lift, atol=1e-12)


def test_about_one_in_eighty_of_lows_rewards_leaves_the_unit_range() -> None:
    environment, randomness = make_env("low", horizon=49, arm_mode="resampled"), Randomness(0, range(8))
    world, outside = environment.reset(randomness), 0
    for _ in range(49):
        reward, _, world = environment.step(world, torch.zeros(512, dtype=torch.long), randomness)
        outside += int(((reward < 0) | (reward > 1)).sum())
    assert 0.011 < outside / (49 * 512) < 0.015  # 25,088 rewards: three standard errors around 1.3%


def test_high_multiplies_mean_and_noise_by_the_cosine() -> None:
    environment = make_env("high", b=0.018, horizon=30)
    quiet = make_env("stationary", horizon=30)
    ours, still = Randomness(3, dtype=torch.float64), Randomness(3, dtype=torch.float64)
    world, same = environment.reset(ours), quiet.reset(still)
    arm = torch.zeros(64, dtype=torch.long)
    for t in range(1, 31):
        factor = math.cos(2 * math.pi * 0.018 * t)
        assert torch.allclose(world.values, same.values * factor, atol=1e-12)
        reward, _, world = environment.step(world, arm, ours)
        plain, _, same = quiet.step(same, arm, still)
        assert torch.allclose(reward, plain * factor, atol=1e-12)


def test_a_round_whose_cosine_is_zero_pays_exactly_nothing() -> None:
    environment, randomness = make_env("high", b=0.025, horizon=12), Randomness(0)
    world = environment.reset(randomness)
    while world.t < 10:
        world = environment.advance(world, randomness)
    reward, _, _ = environment.step(world, torch.zeros(64, dtype=torch.long), randomness)
    assert torch.count_nonzero(reward) == 0


def test_rewards_scatter_around_the_exact_means_with_the_stated_noise() -> None:
    environment, randomness = make_env("stationary", horizon=400, dim=3, arms=4), Randomness(5)
    world, residuals = environment.reset(randomness), []
    for t in range(400):
        arm = torch.full((64,), t % 4)
        mean = world.values[:, t % 4]
        reward, _, world = environment.step(world, arm, randomness)
        residuals.append(reward - mean)
    errors = torch.cat(residuals).double()  # 25,600 of them
    assert abs(errors.mean()) < 5 * 1.5 / math.sqrt(errors.numel())
    assert abs(errors.std() - 1.5) < 5 * 1.5 / math.sqrt(2 * errors.numel())


def test_fixed_arms_stay_and_resampled_arms_are_new_in_every_round() -> None:
    fixed, resampled = worlds("stationary", horizon=3), worlds("stationary", horizon=3, arm_mode="resampled")
    assert fixed[0].observation.action_set is fixed[2].observation.action_set
    assert torch.equal(fixed[0].observation.action_set, resampled[0].observation.action_set)
    assert not bool(
        (resampled[0].observation.action_set == resampled[1].observation.action_set).any(dim=-1).any(dim=-1).all()
    )
    expected = torch.bmm(resampled[2].observation.action_set, resampled[2].effect.w.unsqueeze(2)).squeeze(2)
    assert torch.allclose(resampled[2].values, expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "horizon is 0; give a whole number of at least 1"),
        ({"dim": -1}, "dim is -1; give a whole number of at least 1"),
        ({"arms": 2.5}, "arms is 2.5; give a whole number of at least 1"),
        ({"noise": -0.1}, "noise is -0.1; give a finite number of at least 0"),
        ({"noise": math.nan}, "noise is nan; give a finite number of at least 0"),
        ({"prior": "unifrom"}, "prior: there is no 'unifrom'; did you mean 'uniform'?"),
        ({"arm_mode": "random"}, "arm_mode: there is no 'random'; choose from fixed, resampled"),
        ({"horizn": 5}, "option: there is no 'horizn'; did you mean 'horizon'?"),
    ],
)
def test_bad_options_are_refused_with_field_value_and_remedy(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        make_env("stationary", **options)
    assert message in str(caught.value)


def test_an_unknown_environment_names_the_nearest() -> None:
    with pytest.raises(InputError, match="there is no 'hihg'; did you mean 'high'"):
        make_env("hihg")
