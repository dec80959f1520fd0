"""Agents for MDPs: each against the plain version from its paper, and what all of them promise."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch

from driftformer.agents.base import ProblemShape
from driftformer.agents.registry import make_agent
from driftformer.randomness import Randomness
from tests.agents.plain_tabular import Plain, PlainQLearning, PlainQUCB, PlainRestartQUCB, PlainUCBVI, Sizes, Step
from tests.agents.tiny_mdp import TinyMDP


def shape_of(environment: TinyMDP, problems: int) -> ProblemShape:
    sizes = (problems, environment.horizon, environment.arms, environment.dim, torch.device("cpu"), torch.float64)
    return ProblemShape(*sizes, environment.states, environment.stages, environment.stages_differ)


def lives(environment: TinyMDP, spec: str, problems: int, seed: int = 3) -> list[tuple[Any, ...]]:
    """Each round of a batch in float64: state, arm, reward, auxiliary value; inside, the arm is sometimes another's."""
    agent, randomness = make_agent(spec), Randomness(seed, size=problems, dtype=torch.float64)
    state, world, rng = (
        agent.init(shape_of(environment, problems)),
        environment.reset(randomness),
        randomness.stream("agent"),
    )
    rounds = []
    for t in range(environment.horizon):
        observation = world.observation
        if hasattr(agent, "inform"):
            state = agent.inform(state, environment.truth(world))
        arm, info = agent.act(state, observation, rng)
        played = (arm + 1) % environment.arms if t % 11 == 7 else arm  # led along: learn from what was played
        reward, _, world = environment.step(world, played, randomness)
        chosen, hope = arm.clone(), info.auxiliary_value.clone()
        state = agent.update(state, observation, played, reward, info)
        rounds.append((observation.state, chosen, played, reward, hope))
    return rounds


class Restarted:
    """Plain Q-UCB that begins again before some episodes."""

    def __init__(self, sizes: Sizes, before: Iterable[int]) -> None:
        self.sizes, self.before, self.played, self.agent = sizes, set(before), 0, PlainQUCB(sizes, 0.2)

    def values(self, stage: int, state: int) -> list[float]:
        return self.agent.values(stage, state)

    def learn(self, step: Step) -> None:
        self.agent.learn(step)
        self.played += step.following < 0
        if step.following < 0 and self.played in self.before:
            self.agent = PlainQUCB(self.sizes, 0.2)


Make = Callable[[Sizes, bool], Plain]
PLAIN: list[tuple[str, Make]] = [
    ("ucb-vi@bonus=hoeffding,scale=0.3", lambda sizes, differ: PlainUCBVI(sizes, "hoeffding", 0.3, differ)),
    ("ucb-vi@bonus=bernstein,scale=0.3", lambda sizes, differ: PlainUCBVI(sizes, "bernstein", 0.3, differ)),
    ("q-ucb@scale=0.2", lambda sizes, differ: PlainQUCB(sizes, 0.2)),
    ("restart-q-ucb@epochs=3,scale=0.2", lambda sizes, differ: PlainRestartQUCB(sizes, 14, 0.2)),
    ("q-learning@epsilon=0,rate=0.3", lambda sizes, differ: PlainQLearning(sizes, 0.3)),
    (
        "sliding-window-ucb-vi@window=12,bonus=hoeffding,scale=0.3",
        lambda sizes, differ: PlainUCBVI(sizes, "hoeffding", 0.3, differ, window=12),
    ),
    ("change-point-oracle@base=q-ucb+scale=0.2", lambda sizes, differ: Restarted(sizes, (20,))),
    ("restart@base=q-ucb+scale=0.2,every=28", lambda sizes, differ: Restarted(sizes, range(0, 40, 28 // sizes.stages))),
]


@pytest.mark.parametrize(("spec", "plain"), PLAIN, ids=[spec for spec, _ in PLAIN])
@pytest.mark.parametrize("differ", [True, False])
@pytest.mark.parametrize("stages", [1, 4])
def test_it_is_the_plain_algorithm_choice_by_choice(spec: str, plain: Make, differ: bool, stages: int) -> None:
    """To 1e-7: a variance of zero is found to 1e-16 only, and its root to 1e-8."""
    environment = TinyMDP(episodes=40, stages=stages, states=3, arms=3, changes=(20,), stages_differ=differ)
    rounds, sizes = lives(environment, spec, problems=8), Sizes(stages, 3, 3, 40)
    for b in range(8):
        agent = plain(sizes, differ)
        for t, (state, chosen, played, reward, hope) in enumerate(rounds):
            stage = t % stages
            values = agent.values(stage, int(state[b]))
            assert values[int(chosen[b])] == pytest.approx(max(values), abs=1e-7)
            assert float(hope[b]) == pytest.approx(min(max(values), stages - stage), abs=1e-7)
            following = int(rounds[t + 1][0][b]) if stage < stages - 1 else -1
            agent.learn(Step(stage, int(state[b]), int(played[b]), float(reward[b]), following))
