"""Agents that forget, each against the plain formula of its paper, round by round."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import driftformer as df
from driftformer.agents.base import ProblemShape
from driftformer.agents.discounted import DiscountedThompson
from driftformer.agents.sliding_window import SlidingWindowLinUCB
from driftformer.errors import InputError
from driftformer.problem import Observation
from driftformer.randomness import Randomness

Vector = NDArray[np.float64]
Scores = Callable[[Vector, Vector, Vector], Vector]  # (X seen [t, d], rewards [t], arms [A, d]) -> bounds [A]

GAMMA, ALPHA, RIDGE, WINDOW = 0.9, 0.7, 2.0, 12


def weighted(seen: Vector, rewards: Vector, arms: Vector) -> Vector:
    """LB-WeightUCB: an observation s rounds before the last counts γ^s."""
    weights = GAMMA ** np.arange(len(seen))[::-1]
    inverse = np.linalg.inv(RIDGE * np.eye(arms.shape[1]) + (seen.T * weights) @ seen)
    theta = inverse @ (seen.T @ (weights * rewards))
    return arms @ theta + ALPHA * np.sqrt(np.einsum("ai,ij,aj->a", arms, inverse, arms))


def discounted(seen: Vector, rewards: Vector, arms: Vector) -> Vector:
    """D-LinUCB: the same means, but widths in V⁻¹ṼV⁻¹, where Ṽ has the squared weights."""
    weights = GAMMA ** np.arange(len(seen))[::-1]
    eye = np.eye(arms.shape[1])
    inverse = np.linalg.inv(RIDGE * eye + (seen.T * weights) @ seen)
    second = RIDGE * eye + (seen.T * weights**2) @ seen
    theta = inverse @ (seen.T @ (weights * rewards))
    return arms @ theta + ALPHA * np.sqrt(np.einsum("ai,ij,aj->a", arms, inverse @ second @ inverse, arms))


def window(seen: Vector, rewards: Vector, arms: Vector) -> Vector:
    """Ridge regression on the last WINDOW observations."""
    seen, rewards = seen[-WINDOW:], rewards[-WINDOW:]
    inverse = np.linalg.inv(RIDGE * np.eye(arms.shape[1]) + seen.T @ seen)
    theta = inverse @ (seen.T @ rewards)
    return arms @ theta + ALPHA * np.sqrt(np.einsum("ai,ij,aj->a", arms, inverse, arms))


def periodic(seen: Vector, rewards: Vector, arms: Vector) -> Vector:
    """Ridge regression on what came since the last multiple of WINDOW."""
    begin = len(seen) // WINDOW * WINDOW
    seen, rewards = seen[begin:], rewards[begin:]
    inverse = np.linalg.inv(RIDGE * np.eye(arms.shape[1]) + seen.T @ seen)
    theta = inverse @ (seen.T @ rewards)
    return arms @ theta + ALPHA * np.sqrt(np.einsum("ai,ij,aj->a", arms, inverse, arms))


@pytest.mark.parametrize(
    ("spec", "plain"),
    [
        (f"weighted-linucb@gamma={GAMMA},alpha={ALPHA},ridge={RIDGE}", weighted),
        (f"discounted-linucb@gamma={GAMMA},alpha={ALPHA},ridge={RIDGE}", discounted),
        (f"sliding-window-linucb@window={WINDOW},alpha={ALPHA},ridge={RIDGE}", window),
        (f"restart@base=linucb+alpha={ALPHA}+ridge={RIDGE},every={WINDOW}", periodic),
    ],
)
@pytest.mark.parametrize("mode", ["fixed", "resampled"])
def test_it_makes_the_choices_of_the_plain_formula(spec: str, plain: Scores, mode: str) -> None:
    environment = df.make_env("high", horizon=80, dim=5, arms=4, arm_mode=mode)
    played = df.rollout(environment, df.make_agent(spec), seed=4, dtype=torch.float64, trajectories=True)
    seen = played.trajectories
    assert seen is not None
    assert seen.auxiliary_values is not None
    randomness = Randomness(4, dtype=torch.float64)
    world, sets = environment.reset(randomness), []
    for _ in range(80):
        sets.append(world.observation.action_set.numpy())
        world = environment.advance(world, randomness)
    for b in range(8):
        features = np.array([sets[t][b][seen.arms[b, t]] for t in range(80)])
        for t in range(80):
            bounds = plain(features[:t], seen.rewards[b, :t].numpy(), sets[t][b])
            assert bounds[seen.arms[b, t]] == pytest.approx(bounds.max(), abs=1e-9)
            assert seen.auxiliary_values[b, t].item() == pytest.approx(bounds.max(), abs=1e-9)


def test_discounted_thompson_samples_with_the_covariance_of_its_paper() -> None:
    """N(θ̂, v·V⁻¹ṼV⁻¹), from 40,000 draws after the same twenty observations: five standard errors."""
    rng, problems = np.random.default_rng(0), 40_000
    agent = DiscountedThompson(gamma=GAMMA, variance=0.3, ridge=RIDGE)
    state = agent.init(ProblemShape(problems, 20, 1, 3, torch.device("cpu"), torch.float64))
    draws = Randomness(1, size=problems, dtype=torch.float64).stream("agent")
    seen, rewards = rng.uniform(-1, 1, (20, 3)), rng.normal(size=20)
    for x, reward in zip(seen, rewards, strict=True):
        offered = torch.tensor(x).expand(problems, 1, 3).contiguous()
        arm, info = agent.act(state, Observation(offered), draws)
        state = agent.update(
            state, Observation(offered), arm, torch.full((problems,), reward, dtype=torch.float64), info
        )
    # a single arm e_i is always chosen, and its auxiliary value is the i-th coordinate of the sample
    weights = GAMMA ** np.arange(20)[::-1]
    inverse = np.linalg.inv(RIDGE * np.eye(3) + (seen.T * weights) @ seen)
    covariance = 0.3 * inverse @ (RIDGE * np.eye(3) + (seen.T * weights**2) @ seen) @ inverse
    theta = inverse @ (seen.T @ (weights * rewards))
    for direction in (*np.eye(3), np.ones(3), np.array([1.0, -2.0, 0.5])):
        offered = torch.tensor(direction).expand(problems, 1, 3).contiguous()
        _, info = agent.act(state, Observation(offered), draws)
        values = info.auxiliary_value.numpy()
        variance = direction @ covariance @ direction
        assert abs(values.mean() - direction @ theta) < 5 * math.sqrt(variance / problems)
        assert abs(values.var() / variance - 1) < 5 * math.sqrt(2 / problems)


def test_the_windows_inverse_does_not_drift_over_many_rounds() -> None:
    """In float32, 3,000 rounds with a window of 20: the refresh keeps A⁻¹ within 1e-5 of the closed form."""
    environment = df.make_env("stationary", horizon=3000, dim=8, arms=5, arm_mode="resampled")
    agent, randomness = SlidingWindowLinUCB(window=20), Randomness(0, size=16)
    state = agent.init(ProblemShape(16, 3000, 5, 8, torch.device("cpu"), torch.float32))
    world, rng, worst = environment.reset(randomness), randomness.stream("agent"), 0.0
    for t in range(3000):
        arm, info = agent.act(state, world.observation, rng)
        reward, _, following = environment.step(world, arm, randomness)
        state = agent.update(state, world.observation, arm, reward, info)
        world = following
        if t % 100 == 54:
            gram = torch.bmm(state.features.mT.double(), state.features.double())
            worst = max(
                worst,
                float(
                    (state.model.inverse.double() - torch.linalg.inv(gram + torch.eye(8, dtype=torch.double)))
                    .abs()
                    .max()
                ),
            )
    assert worst < 1e-5


def test_a_window_longer_than_the_horizon_is_refused() -> None:
    with pytest.raises(InputError, match="window is 50, longer than the horizon of 20"):
        df.rollout(df.make_env("high", horizon=20), "sliding-window-linucb")
    with pytest.raises(InputError, match="every is 50, longer than the horizon of 20"):
        df.rollout(df.make_env("high", horizon=20), "restart-linucb")


def test_restarts_are_counted_where_a_round_follows_them() -> None:
    played = df.rollout(df.make_env("high", horizon=60, dim=3, arms=3), "restart-linucb@every=20", trajectories=True)
    assert (played.regrets[0].diagnostics["restarts"] == 2).all()
    assert played.trajectories is not None
    assert (played.trajectories.events["restarted"][0].nonzero().flatten() + 1).tolist() == [21, 41]


@pytest.mark.parametrize("ridge", [0.001, 0.1])
@pytest.mark.parametrize(
    "name", ["linucb", "sliding-window-linucb", "discounted-linucb", "weighted-linucb", "thompson"]
)
def test_a_small_ridge_is_as_good_in_float32_as_in_float64(name: str, ridge: float) -> None:
    """Fixed arms, the hard case: mean regret over 64 problems within 5%."""
    environment, agent = df.make_env("stationary", horizon=200, dim=8), df.make_agent(f"{name}@ridge={ridge}")
    single, double = (
        df.rollout(environment, agent, dtype=dtype).regrets[0].regret.mean() for dtype in (torch.float32, torch.float64)
    )
    assert single == pytest.approx(double, rel=0.05)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("weighted-linucb@gamma=0", "gamma is 0.0; give a finite number above 0 and at most 1"),
        ("discounted-linucb@gamma=1.1", "gamma is 1.1; give a finite number above 0 and at most 1"),
        ("sliding-window-linucb@window=0", "window is 0; give a whole number of at least 1"),
        ("restart-linucb@every=0", "every is 0; give a whole number of at least 1"),
        ("restart@base=random", "base is 'random', which has no auxiliary value"),
        ("restart@base=oracle", "base is 'oracle', which must be told the truth"),
        ("master@base=linubc", "there is no 'linubc'; did you mean 'linucb'?"),
        ("master@base=linucb+alhpa=2", "option: there is no 'alhpa'; did you mean 'alpha'?"),
    ],
)
def test_bad_options_are_refused(spec: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        df.make_agent(spec)
    assert message in str(caught.value)


def test_without_discount_both_discounted_agents_are_linucb() -> None:
    environment = df.make_env("stationary", horizon=60, dim=4, arms=4)
    arms = []
    for spec in ("linucb", "weighted-linucb@gamma=1", "discounted-linucb@gamma=1", "sliding-window-linucb@window=60"):
        played = df.rollout(environment, df.make_agent(spec), dtype=torch.float64, trajectories=True)
        assert played.trajectories is not None
        arms.append(played.trajectories.arms)
    assert all(torch.equal(arms[0], other) for other in arms[1:])


def test_the_change_point_oracle_restarts_exactly_where_rewards_change() -> None:
    jumps = df.make_env("jumps", horizon=50, dim=3, arms=3, times=(11, 40))
    for environment, times in ((jumps, [11, 40]), (df.make_env("low", horizon=120, dim=3, arms=3), [50, 101])):
        played = df.rollout(environment, df.make_agent("change-point-oracle"), trajectories=True)
        assert played.trajectories is not None
        restarted = played.trajectories.events["restarted"]  # the first round of each new start
        assert (restarted[0].nonzero().flatten() + 1).tolist() == times
        assert (played.regrets[0].diagnostics["restarts"] == 2).all()


def test_the_change_point_oracle_refuses_a_world_that_changes_in_every_round() -> None:
    with pytest.raises(InputError, match="rewards change there in every round, so it would never learn"):
        df.rollout(df.make_env("high", horizon=5), df.make_agent("change-point-oracle"))
