"""Agents for MDPs: each against the plain version from its paper, and what all of them promise."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import driftformer as df
from driftformer.agents.base import ProblemShape
from driftformer.agents.registry import make_agent
from driftformer.errors import InputError
from driftformer.problem import Traits
from driftformer.randomness import Randomness
from tests.agents.plain_tabular import (
    Plain,
    PlainDoubleRestart,
    PlainQLearning,
    PlainQUCB,
    PlainRestartQUCB,
    PlainUCBVI,
    Sizes,
    Step,
)
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
    rounds, copies = [], []
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
        copies.append((played.clone(), reward.clone()))
    for (_, _, played, reward, _), kept in zip(rounds, copies, strict=True):
        assert torch.equal(played, kept[0]), "what it was given is not its own"
        assert torch.equal(reward, kept[1]), "what it was given is not its own"
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
        agrees(plain(sizes, differ), rounds, stages, b)


def agrees(agent: Plain, rounds: list[tuple[Any, ...]], stages: int, b: int) -> None:
    """Problem b was played as the plain agent says, which is led along it."""
    for t, (state, chosen, played, reward, hope) in enumerate(rounds):
        stage = t % stages
        values = agent.values(stage, int(state[b]))
        assert values[int(chosen[b])] == pytest.approx(max(values), abs=1e-7)
        assert float(hope[b]) == pytest.approx(min(max(values), stages - stage), abs=1e-7)
        following = int(rounds[t + 1][0][b]) if stage < stages - 1 else -1
        agent.learn(Step(stage, int(state[b]), int(played[b]), float(reward[b]), following))


def test_double_restart_chooses_its_epochs_as_exp3p_does() -> None:
    """Ten phases of twelve episodes, 16 problems: all numbers of epochs are chosen, and matter."""
    stages, episodes, phase, problems = 2, 120, 12, 16
    environment = TinyMDP(episodes=episodes, stages=stages, states=3, arms=2, changes=(60,))
    rounds = lives(environment, f"double-restart-q-ucb@phase={phase},scale=0.2", problems)
    flips = Randomness(3, size=problems, dtype=torch.float64).stream("agent")
    uniforms = torch.stack([flips.uniform() for _ in range(episodes)], dim=1)  # [B, episodes]
    found = set()
    for b in range(problems):
        agent = PlainDoubleRestart(Sizes(stages, 3, 2, episodes), phase, 0.2, uniforms[b].tolist())
        agrees(agent, rounds, stages, b)
        found.add(agent.chosen)
    assert found == {0, 1, 2, 3}


EVERY = [
    "random",
    "ucb-vi",
    "ucb-vi@bonus=bernstein",
    "q-ucb",
    "restart-q-ucb",
    "double-restart-q-ucb",
    "sliding-window-ucb-vi@window=40",
    "psrl",
    "q-learning",
    "master-ucb-vi@test_scale=0.004",
    "master-q-ucb",
    "restart@base=q-ucb,every=60",
    "change-point-oracle@base=ucb-vi",
    "optimal",
]


@pytest.mark.parametrize("differ", [True, False])
@pytest.mark.parametrize("spec", EVERY)
def test_nobody_earns_more_than_the_optimum_and_regret_is_what_is_lost_against_it(spec: str, differ: bool) -> None:
    """256 problems: what an episode earns plus its regret is V* of its first state on average, and regret is no gain.

    Five standard errors of a difference whose spread is that of the episodes' returns.
    """
    environment = TinyMDP(episodes=100, stages=3, states=5, arms=3, changes=(30, 70), stages_differ=differ)
    played = df.rollout(environment, spec, chunks=range(4), trajectories=True)
    alone = df.rollout(environment, spec, chunks=[2], trajectories=True)
    seen, other = played.trajectories, alone.trajectories
    assert seen is not None
    assert other is not None
    assert torch.equal(seen.arms[128:192], other.arms), "the same bits in any stack"
    optimum = torch.stack(list(best_returns(environment, 4)), dim=1).double().sum(dim=1)  # [B]
    earned, lost = seen.rewards.double().sum(dim=1), seen.suboptimality.double().sum(dim=1)
    above = earned + lost - optimum  # of mean zero, by the performance-difference lemma
    assert abs(above.mean().item()) < 5 * above.std().item() / 16
    assert (earned - optimum).mean().item() < 5 * above.std().item() / 16
    if spec not in ("random", "optimal"):
        chance = df.rollout(environment, "random", chunks=range(4))
        assert lost.mean() < np.mean([chunk.regret.mean() for chunk in chance.regrets]), "it learns"


@pytest.mark.parametrize("states", [11, 24, 40])
@pytest.mark.parametrize("spec", ["ucb-vi", "ucb-vi@bonus=bernstein", "psrl"])
def test_plans_have_the_same_bits_in_any_stack_whatever_the_number_of_states(spec: str, states: int) -> None:
    """Matrix products choose their code path by size and alignment; hopes show every bit of a plan."""
    environment = TinyMDP(episodes=12, stages=3, states=states, arms=3)
    together = df.rollout(environment, spec, chunks=[4, 9, 2], trajectories=True).trajectories
    alone = df.rollout(environment, spec, chunks=[2], trajectories=True).trajectories
    assert together is not None
    assert alone is not None
    assert together.auxiliary_values is not None
    assert alone.auxiliary_values is not None
    assert torch.equal(together.auxiliary_values[128:], alone.auxiliary_values)


def best_returns(environment: TinyMDP, chunks: int) -> Iterator[torch.Tensor]:
    """V* of the first state of each episode, `[B]`."""
    randomness = Randomness(0, range(chunks))
    world = environment.reset(randomness)
    for t in range(environment.horizon):
        if t % environment.stages == 0:
            yield world.values.amax(dim=1)
        _, _, world = environment.step(world, torch.zeros_like(world.observation.state), randomness)


@pytest.mark.parametrize("spec", ["ucb-vi", "q-ucb", "restart-q-ucb", "psrl", "sliding-window-ucb-vi", "master-ucb-vi"])
def test_bandits_are_refused_in_words_and_so_are_rewards_without_bounds_where_bonuses_need_them(spec: str) -> None:
    with pytest.raises(InputError, match="cannot play 'high': it is made for MDPs and needs states and episodes"):
        df.rollout(df.make_env("high", horizon=10), spec)
    with pytest.raises(InputError, match="cannot play 'tiny-mdp': it needs rewards between 0 and 1"):
        df.rollout(TinyMDP(bounded=False), spec)


def test_agents_for_bandits_refuse_mdps_and_q_learning_takes_any_rewards() -> None:
    with pytest.raises(InputError, match="'master' cannot play 'tiny-mdp': it is made for bandits"):
        df.rollout(TinyMDP(), "master-linucb")
    assert df.rollout(TinyMDP(bounded=False), "q-learning").regrets[0].regret.min() >= 0


class Undeclared(TinyMDP):
    """It has four states, and says that it has three."""

    @property
    def traits(self) -> Traits:
        return dataclasses.replace(super().traits, states=3)


def test_a_state_that_was_not_declared_is_named_when_it_comes() -> None:
    """Tables would read and write the row of another problem."""
    with pytest.raises(InputError, match=r"'tiny-mdp': observation.state contains 3 in round 2; .* the states 0 to 2"):
        df.rollout(Undeclared(), "q-ucb")


def test_a_restart_within_an_episode_is_refused() -> None:
    with pytest.raises(InputError, match="every is 50, not whole episodes of 3 steps; give a multiple of 3"):
        df.rollout(TinyMDP(), "restart@base=ucb-vi,every=50")


def numbers(state: object) -> int:
    """All the numbers that a state holds."""
    if isinstance(state, torch.Tensor):
        return state.numel()
    return sum(numbers(part) for part in vars(state).values()) if dataclasses.is_dataclass(state) else 0


@pytest.mark.parametrize("spec", ["ucb-vi", "q-ucb", "restart-q-ucb", "psrl"])
def test_memory_grows_with_the_tables_that_the_paper_names(spec: str) -> None:
    """S²·A·H numbers for a model, S²·A where the steps of an episode share it, and a few tables of S·A·H."""
    for states, arms, stages in ((10, 2, 5), (30, 4, 10)):
        for differ in (True, False):
            environment = TinyMDP(stages=stages, states=states, arms=arms, stages_differ=differ)
            held = numbers(make_agent(spec).init(shape_of(environment, 64))) / 64
            model = states**2 * arms * (stages if differ else 1) if spec in ("ucb-vi", "psrl") else 0
            assert held <= model + 4 * states * arms * stages + 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("ucb-vi@scale=-1", "scale is -1.0; give a finite number of at least 0"),
        ("ucb-vi@bonus=bernstien", "did you mean 'bernstein'"),
        ("q-ucb@scale=-1", "scale is -1.0"),
        ("restart-q-ucb@epochs=0", "epochs is 0; give a whole number of at least 1"),
        ("double-restart-q-ucb@phase=-1", "phase is -1; give a whole number of at least 0"),
        ("sliding-window-ucb-vi@window=0", "window is 0; give a whole number of at least 1"),
        ("psrl@prior=0", "prior is 0.0; give a finite number of at least 0.001"),
        ("q-learning@epsilon=2", "epsilon is 2.0; give a finite number of at least 0 and at most 1"),
        ("q-learning@rate=0", "rate is 0.0; give a finite number above 0 and at most 1"),
    ],
)
def test_bad_options_are_refused_at_construction(options: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_agent(options)


def test_more_epochs_than_episodes_are_refused() -> None:
    with pytest.raises(InputError, match="epochs is 31, but there are 30 episodes; give at most as many"):
        df.rollout(TinyMDP(), "restart-q-ucb@epochs=31")
