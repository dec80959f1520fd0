"""MASTER where problems have episodes: against the plain loop over plain Q-UCB, and what it promises."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import driftformer as df
from driftformer.agents.base import ProblemShape
from driftformer.agents.master import Master
from driftformer.agents.q_ucb import QUCB
from driftformer.agents.registry import make_agent
from driftformer.agents.ucb_vi import UCBVI
from driftformer.randomness import Randomness
from tests.agents.plain_master import plain_master
from tests.agents.plain_tabular import PlainQUCB, Sizes, Step
from tests.agents.tiny_mdp import TinyMDP


def test_it_is_the_plain_algorithm_over_plain_q_ucb_episode_by_episode() -> None:
    """Orders, arms, auxiliary values, statistics and restarts of twenty problems that restart at different times."""
    problems, stages, episodes = 20, 3, 60
    environment = TinyMDP(episodes=episodes, stages=stages, changes=(31,))
    agent = Master(base=QUCB(scale=0.2), test_scale=0.004)
    randomness = Randomness(7, size=problems, dtype=torch.float64)
    sizes = (problems, environment.horizon, 2, 2, torch.device("cpu"), torch.float64)
    state, world = agent.init(ProblemShape(*sizes, 4, stages, True)), environment.reset(randomness)
    rng, steps = randomness.stream("agent"), []
    for _ in range(environment.horizon):
        observation = world.observation
        arm, info = agent.act(state, observation, rng)
        reward, _, world = environment.step(world, arm, randomness)
        hope = info.auxiliary_value.clone()
        state = agent.update(state, observation, arm, reward, info)
        steps.append((observation.state, arm, reward, hope, state.happened))

    flips = Randomness(7, size=problems, dtype=torch.float64).stream("agent")
    coins = torch.stack([flips.uniform(episodes.bit_length()) for _ in range(episodes)], dim=1).numpy()
    restarts: list[int] = []
    for b in range(problems):

        def play(model: PlainQUCB, m: int, b: int = b) -> tuple[int, float, float]:
            """One episode; the arm that counts is that of its first step."""
            mine = steps[m * stages : (m + 1) * stages]
            hope = model.value(0, int(mine[0][0][b])) / stages
            for h, (state, arm, reward, r, _) in enumerate(mine):
                values = model.values(h, int(state[b]))
                assert values[int(arm[b])] == pytest.approx(max(values), abs=1e-9)
                assert float(r[b]) == pytest.approx(model.value(h, int(state[b])), abs=1e-9)
                following = int(mine[h + 1][0][b]) if h + 1 < stages else -1
                model.learn(Step(h, int(state[b]), int(arm[b]), float(reward[b]), following))
            return int(mine[0][1][b]), hope, sum(float(step[2][b]) for step in mine) / stages

        def fresh() -> PlainQUCB:
            return PlainQUCB(Sizes(stages, 4, 2, episodes), 0.2)

        log = plain_master(episodes, fresh, play, coins[b], test_scale=0.004, c1=1.0, c2=0.0)
        for m in range(episodes):
            happened = [step[4] for step in steps[m * stages : (m + 1) * stages]]
            assert [int(one.order[b]) for one in happened] == [log.orders[m]] * stages
            assert [bool(one.block[b]) for one in happened] == [log.blocks[m] >= 0, False, False]
            assert [int(one.failed[b]) for one in happened] == [0, 0, log.failed[m]]
            assert float(happened[-1].ratios[b, 0]) == pytest.approx(log.first[m], abs=1e-9)
            assert float(happened[-1].ratios[b, 1]) == pytest.approx(log.second[m], abs=1e-9)
        restarts.append(sum(code > 0 for code in log.failed))
        assert int(state.happened.restarts[b]) == restarts[-1]
    assert len(set(restarts)) > 2, "problems keep their own time"


@pytest.mark.parametrize(
    "spec", ["master-ucb-vi", "master@base=q-ucb", "master@base=master+base=q-ucb+test_scale=0.01"]
)
def test_problems_that_restart_at_different_times_do_not_depend_on_their_neighbours(spec: str) -> None:
    environment = TinyMDP(episodes=40, changes=(15,))
    player = make_agent(spec, test_scale=0.004)
    together = df.rollout(environment, player, chunks=[4, 9, 2])
    alone = df.rollout(environment, player, chunks=[2])
    assert np.array_equal(together.regrets[2].regret, alone.regrets[0].regret)
    assert len(set(alone.regrets[0].diagnostics["restarts"].tolist())) > 2


def test_its_orders_count_episodes() -> None:
    environment = TinyMDP(episodes=100, stages=4)
    sizes = (64, environment.horizon, 2, 2, torch.device("cpu"), torch.float32)
    shape = ProblemShape(*sizes, 4, 4, True)
    bank, alone = Master(base=UCBVI()).init(shape).bank, UCBVI().init(shape)
    assert bank.q.shape == (64, 7, *alone.q.shape[1:])
    for field in dataclasses.fields(alone.model):
        assert getattr(bank.model, field.name).numel() == 7 * getattr(alone.model, field.name).numel()
