"""MASTER: the batched one against the plain loop, and what the algorithm promises."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch

import driftformer as df
from driftformer.agents.base import ProblemShape
from driftformer.agents.linucb import LinUCB
from driftformer.agents.master import Master, MasterInfo, MasterState
from driftformer.agents.reference import Random
from driftformer.agents.thompson import Thompson
from driftformer.environments.linear import LinearBandit
from driftformer.errors import InputError
from driftformer.problem import Observation
from driftformer.randomness import Randomness
from tests.agents.plain_master import plain_master
from tests.plain import PlainRidge, linucb_bounds


def play(
    environment: LinearBandit, agent: Master, seed: int, problems: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor, MasterInfo, MasterState]]:
    """Each round of a batch in float64: action set, arm, reward, info, and the state after it."""
    randomness = Randomness(seed, size=problems, dtype=torch.float64)
    shape = ProblemShape(
        problems, environment.horizon, environment.arms, environment.dim, torch.device("cpu"), torch.float64
    )
    state, world, rng = agent.init(shape), environment.reset(randomness), randomness.stream("agent")
    for _ in range(environment.horizon):
        arm, info = agent.act(state, world.observation, rng)
        reward, _, following = environment.step(world, arm, randomness)
        state = agent.update(state, world.observation, arm, reward, info)
        yield world.observation.action_set, arm, reward, info, state
        world = following


@pytest.mark.parametrize(
    ("env", "test_scale", "c1", "c2"),
    [("high", 1.0, 1.0, 0.0), ("low", 0.001, 1.0, 0.0), ("jumps", 0.01, 1.0, 0.0), ("high", 0.003, 0.7, 0.5)],
)
def test_it_is_the_plain_algorithm_choice_by_choice(env: str, test_scale: float, c1: float, c2: float) -> None:
    """Fifty problems of each kind: schedule, active orders, arms, auxiliary values, U_t, statistics and restarts."""
    problems, horizon, dim = 50, 90, 4
    environment = df.make_env(env, horizon=horizon, dim=dim, arms=3, arm_mode="resampled")
    agent = Master(base=LinUCB(alpha=0.8), c1=c1, c2=c2, test_scale=test_scale)
    rounds = list(play(environment, agent, seed=7, problems=problems))
    flips = Randomness(7, size=problems, dtype=torch.float64).stream("agent")
    coins = torch.stack([flips.uniform(horizon.bit_length()) for _ in range(horizon)], dim=1).numpy()  # [B, T, M]
    restarts = 0
    for b in range(problems):

        def linucb(model: PlainRidge, t: int, b: int = b) -> tuple[int, float, float]:
            arms, reward = rounds[t][0][b].numpy(), float(rounds[t][2][b])
            bounds = linucb_bounds(model, arms, 0.8)
            arm = int(bounds.argmax())
            model.learn(arms[arm], reward)
            return arm, float(bounds[arm]), reward

        log = plain_master(
            horizon, lambda: PlainRidge(dim, ridge=1.0), linucb, coins[b], test_scale=test_scale, c1=c1, c2=c2
        )
        for t, (_, arm, _, info, state) in enumerate(rounds):
            happened = state.happened
            assert int(arm[b]) == log.arms[t]
            assert int(happened.order[b]) == log.orders[t]
            assert set(info.schedule.live[b].nonzero().flatten().tolist()) == log.scheduled[t]
            assert bool(happened.block[b]) == (log.blocks[t] >= 0)
            assert float(info.auxiliary_value[b]) == pytest.approx(log.auxiliary[t], abs=1e-9)
            assert float(happened.ratios[b, 0]) == pytest.approx(log.first[t], abs=1e-9)
            assert float(happened.ratios[b, 1]) == pytest.approx(log.second[t], abs=1e-9)
            assert int(happened.failed[b]) == log.failed[t]
            if math.isfinite(float(state.lowest[b])):
                assert float(state.lowest[b]) == pytest.approx(log.lowest[t], abs=1e-9)
        assert int(rounds[-1][4].happened.restarts[b]) == sum(code > 0 for code in log.failed)
        restarts += sum(code > 0 for code in log.failed)
    assert (restarts == 0) == (test_scale == 1.0), "small scales are here because they restart often"


def test_exactly_one_instance_is_active_and_it_is_the_lowest_scheduled() -> None:
    for _, _, _, info, _ in play(df.make_env("high", dim=3, arms=3), Master(test_scale=0.01), 0, 64):
        live, active = info.schedule.live, info.schedule.active
        assert bool((active >= 0).all())
        below = torch.arange(live.shape[1]) < active.unsqueeze(1)
        assert not bool((live & below).any())
        assert bool(live.gather(1, active.unsqueeze(1)).all())


def test_the_highest_order_always_has_an_instance() -> None:
    n = torch.zeros(64, dtype=torch.long)
    for _, _, _, info, state in play(df.make_env("high", dim=3, arms=3), Master(test_scale=0.01), 1, 64):
        assert bool(info.schedule.live.gather(1, n.unsqueeze(1)).all())
        n = state.n


def test_instances_are_scheduled_as_often_as_rho_says() -> None:
    """In the last block, n = 7, of 512 problems: order m starts 2^(7-m) times with probability 2^((m-7)/2)."""
    starts = torch.zeros(8)
    for t, (_, _, _, info, _) in enumerate(
        play(df.make_env("stationary", horizon=255, dim=2, arms=2), Master(), 3, 512)
    ):
        if t >= 127:
            starts += info.schedule.started.sum(dim=0)
    for m in range(8):
        coins = 512 * 2 ** (7 - m)
        chance = 2 ** ((m - 7) / 2)
        assert abs(float(starts[m]) - coins * chance) <= 5 * math.sqrt(coins * chance * (1 - chance))


def test_after_a_restart_nothing_older_has_any_influence() -> None:
    """Two pasts, one future: from the round after a common restart on, every choice is the same."""
    environment = df.make_env("stationary", horizon=120, dim=4, arms=4)
    agent = Master(test_scale=0.004)
    (shape_source,) = [ProblemShape(64, 120, 4, 4, torch.device("cpu"), torch.float64)]
    randomness = Randomness(5, dtype=torch.float64)
    features = environment.reset(randomness).observation.action_set
    rewards = randomness.stream("rewards").normal(120)  # [B, T]

    def run(past: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        state, rng = agent.init(shape_source), Randomness(6, dtype=torch.float64).stream("agent")
        arms, failed = [], []
        for t in range(120):
            arm, info = agent.act(state, Observation(features), rng)
            state = agent.update(state, Observation(features), arm, past[:, t], info)
            arms.append(arm)
            failed.append(state.happened.failed > 0)
        return arms, failed

    other = rewards.clone()
    other[:, :30] = rewards[:, :30] * 1.7 + 0.3
    (arms, failed), (arms_too, failed_too) = run(rewards), run(other)
    compared = 0
    for b in range(64):
        common = [t for t in range(30, 120) if failed[t][b] and failed_too[t][b]]
        for t in range(common[0] + 1 if common else 120, 120):
            assert int(arms[t][b]) == int(arms_too[t][b])
            compared += 1
    assert compared > 1000


def test_it_restarts_when_rewards_jump_above_what_was_hoped_for() -> None:
    """Test 1's purpose: rewards far above U_t mean that the world has become better than the agent believes."""
    lifted = df.make_env("low", horizon=120, dim=4, arms=4, windows=((60, 120),), lift=50.0)
    failed = [state.happened.failed for *_, state in play(lifted, Master(test_scale=0.05), 0, 64)]
    before, after = torch.stack(failed[:59]), torch.stack(failed[59:])
    assert not bool((before % 2 == 1).any())
    assert bool((after % 2 == 1).any(dim=0).all())


def test_with_the_theorys_constants_the_tests_cannot_fire_at_these_horizons() -> None:
    for name in ("low", "high"):
        environment = df.make_env(name)
        played = df.rollout(environment, Master())
        found = played.regrets[0].diagnostics
        assert not found["restarts"].any()
        assert found["test1_closest_ratio"].max() < 0.1
        assert found["test2_closest_ratio"].max() < 0.1


def test_the_closest_that_tests_come_is_that_of_all_rounds() -> None:
    agent = Master(test_scale=0.01)
    ratios, last = [], None
    for _, _, _, _, last in play(df.make_env("jumps", horizon=60, dim=2, arms=2), agent, 0, 8):
        ratios.append(last.happened.ratios)
    assert last is not None
    found = agent.diagnostics(last)
    closest = torch.stack([found["test1_closest_ratio"], found["test2_closest_ratio"]], dim=1)
    assert torch.equal(closest, torch.stack(ratios).amax(dim=0))
    assert bool((closest > ratios[-1]).any(dim=0).all()), "the last round is not the closest everywhere"


def test_the_smallest_margins_are_what_a_run_meets() -> None:
    """At T=1000 the tests demand at least 256 and 62; where all blocks are complete, a run meets both exactly."""
    first, second = Master().smallest_margins(1000)
    assert (round(first), round(second)) == (256, 62)
    for horizon in (1, 2, 3, 7, 8, 100, 127, 200):
        agent = Master(test_scale=1e6)  # never fails
        thresholds = []
        for _, _, _, info, state in play(df.make_env("high", horizon=horizon, dim=2, arms=2), agent, 0, 4):
            ends = info.schedule.ending.any(dim=0).nonzero().flatten().tolist()
            thresholds.append([9 * agent.rho_hat(2**m, horizon) for m in ends])
            assert int(state.happened.restarts.sum()) == 0
        first, second = agent.smallest_margins(horizon)
        assert first <= min(min(row) for row in thresholds if row) * (1 + 1e-12)
        if horizon in (1, 3, 7, 127):
            assert first == pytest.approx(min(min(row) for row in thresholds if row))
            assert second == pytest.approx(3 * agent.rho_hat((horizon + 1) // 2, horizon))
    # blocks of 1, 2 and 4 rounds, then five rounds of one of eight
    assert Master().smallest_margins(12) == (9 * Master().rho_hat(4, 12), 3 * Master().rho_hat(5, 12))


@pytest.mark.parametrize("base", [LinUCB(), Thompson(), Master(test_scale=0.01)])
def test_any_agent_with_an_auxiliary_value_can_be_wrapped_even_master_itself(base: object) -> None:
    played = df.rollout(df.make_env("high", horizon=40, dim=3, arms=3), Master(base=base), chunks=[0, 3])
    alone = df.rollout(df.make_env("high", horizon=40, dim=3, arms=3), Master(base=base), chunks=[3])
    assert np.array_equal(played.regrets[1].regret, alone.regrets[0].regret)


def test_memory_is_one_base_state_for_each_order() -> None:
    shape = ProblemShape(64, 1000, 10, 32, torch.device("cpu"), torch.float32)
    bank = Master().init(shape).bank
    base = LinUCB().init(shape)
    for field in dataclasses.fields(base):
        assert getattr(bank, field.name).numel() == 10 * getattr(base, field.name).numel()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"c1": -1.0}, r"rho\(1\) is -1.0; give a finite number above 0"),
        ({"c1": 0.0}, r"rho\(1\) is 0.0; give a finite number above 0"),
        ({"c1": 1.0, "c2": -0.9}, "rho must not increase"),
        ({"test_scale": 0.0}, "test_scale is 0.0; give a finite number above 0"),
        ({"base": Random()}, "base is 'random', which has no auxiliary value"),
    ],
)
def test_bad_options_are_refused_at_construction(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Master(**options)
