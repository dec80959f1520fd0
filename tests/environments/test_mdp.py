"""Tabular MDPs that drift: exact values, the steps they take, how they change, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import driftformer as df
from driftformer.agents.reference import Random
from driftformer.environments.mdp import MDPWorld, Model, TabularMDP, backward_induction
from driftformer.environments.mdp_drift import Cycle, HandOver, Redraws, Swaps, Walk
from driftformer.environments.mdp_families import RandomFamily
from driftformer.errors import InputError
from driftformer.problem import pick
from driftformer.randomness import CHUNK, Randomness


def family(states: int = 3, actions: int = 2, stages: int = 3, *, differ: bool = True) -> RandomFamily:
    return RandomFamily(states, actions, 2, sparse=False, stages_differ=differ, stages=stages)


def drawn(kind: RandomFamily, problems: int = CHUNK) -> Model:
    like = torch.zeros(problems, dtype=torch.double)
    both = kind.draw(1, Randomness(3, dtype=torch.double).stream("drift"), like)
    return Model(both.rewards[0], both.transitions[0])


def value_of(model: Model, stages: int, policy: Tensor) -> Tensor:
    """V^π of state 0, `[B]`, of a policy [B, H, S], by exact evaluation."""
    after = torch.zeros_like(model.rewards[:, 0, :, 0])
    for stage in reversed(range(stages)):
        which = stage if model.rewards.shape[1] > 1 else 0
        action = policy[:, stage]
        reward = model.rewards[:, which].gather(2, action[:, :, None])[:, :, 0]
        moves = model.transitions[:, which].gather(2, action[:, :, None, None].expand(-1, -1, 1, after.shape[1]))[
            :, :, 0
        ]
        after = reward + (moves * after[:, None]).sum(dim=2)
    return after[:, 0]


@pytest.mark.parametrize("differ", [True, False])
def test_backward_induction_finds_the_best_of_all_policies(differ: bool) -> None:
    stages, model = 3, drawn(family(2, 2, 3, differ=differ))
    values = backward_induction(model, stages)
    every = itertools.product(range(2), repeat=2 * stages)  # an action for each step and state
    policies = [torch.tensor(choice).view(stages, 2).expand(CHUNK, -1, -1) for choice in every]
    best = torch.stack([value_of(model, stages, policy) for policy in policies]).amax(dim=0)
    assert torch.allclose(values[:, 0, 0].amax(dim=1), best, atol=1e-12)
    greedy = values.argmax(dim=3)
    assert torch.allclose(value_of(model, stages, greedy), best, atol=1e-12)


def play(environment: TabularMDP, policy: Tensor, randomness: Randomness) -> tuple[Tensor, Tensor]:
    """Sums of suboptimality and reward `[B]` of a policy [B, H, S]."""
    world = environment.reset(randomness)
    lost = earned = torch.zeros(randomness.batch)
    while world.t <= environment.horizon:
        stage = int(world.observation.stage[0])
        arm = policy[:, stage].gather(1, world.observation.state[:, None])[:, 0]
        reward, suboptimality, world = environment.step(world, arm, randomness)
        lost, earned = lost + suboptimality, earned + reward
    return lost, earned


def test_an_episodes_suboptimalities_add_up_to_what_the_policy_is_short_of_the_optimum() -> None:
    """The performance-difference lemma, by playing one policy for many episodes in each of 64 MDPs."""
    kind, episodes = family(differ=True), 400
    environment = TabularMDP(family=kind, stages=3, episodes=episodes, law="bernoulli")
    world = environment.reset(Randomness(5))
    model = Model(*(tensor.double() for tensor in (world.solved.model.rewards, world.solved.model.transitions)))
    policy = (Randomness(1).stream("policy").uniform(3 * 3).view(CHUNK, 3, 3) * 2).long()
    optimum = backward_induction(model, 3)[:, 0, 0].amax(dim=1)
    short = optimum - value_of(model, 3, policy)  # [B] exactly, in each episode
    lost, earned = play(environment, policy, Randomness(5))
    # Each mean is over 64 × 400 episodes whose sums lie in [0, 3]: a standard error below .01.
    assert float(lost.mean() / episodes) == pytest.approx(float(short.mean()), abs=0.02)
    assert float(earned.mean() / episodes) == pytest.approx(float((optimum - short).mean()), abs=0.03)


def test_states_follow_a_plain_walk_with_the_same_chances() -> None:
    environment = df.make_env("random-mdp", episodes=7, stages=4, change="redraws", changes=2, stages_differ=True)
    randomness, again = Randomness(2), Randomness(2)
    world, arms = environment.reset(randomness), Random()
    rng, chances = Randomness(9).stream("agent"), again.stream("transitions")
    for t in range(1, environment.horizon):
        arm = arms.act(None, world.observation, rng)[0]
        before: MDPWorld = world
        reward, gap, world = environment.step(world, arm, randomness)
        chance, stage = chances.uniform(), (t - 1) % 4
        model = before.solved.model
        for problem in range(CHUNK):
            state, action = int(before.observation.state[problem]), int(arm[problem])
            total, following = 0.0, 0
            for other in range(environment.family.states):
                total += float(model.transitions[problem, stage, state, action, other])
                if total <= float(chance[problem]):
                    following = other + 1
            expected = following if t % 4 else 0  # an episode begins in state 0
            assert int(world.observation.state[problem]) == expected
            values = before.solved.values[problem, stage, state]
            assert float(gap[problem]) == pytest.approx(float(values.max() - values[action]))
            assert float(reward[problem]) in (0.0, 1.0)


def test_mdps_change_between_episodes_only_and_oracles_are_told() -> None:
    environment = df.make_env("lock", episodes=6, every=2)
    randomness = Randomness(0)
    world = environment.reset(randomness)
    changed = []
    while world.t <= environment.horizon:
        changed.append(bool(environment.truth(world).changed.all()))
        world = environment.step(world, torch.zeros(CHUNK, dtype=torch.long), randomness)[2]
    assert [t for t, now in enumerate(changed) if now] == [10, 20]  # the first steps of episodes 2 and 4


@pytest.mark.parametrize(
    ("drift", "positions"),
    [
        (Swaps(2), [0, 0, 1, 1, 0, 0]),
        (Redraws(times=(1, 4)), [0, 1, 1, 1, 2, 2]),
        (HandOver(), [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (Cycle(4), [0, 0.5, 1, 0.5, 0, 0.5]),
        (Walk(2), [0, 0.5, 1, 1.5, 2, 2.5]),
    ],
)
def test_a_drift_leads_along_the_mdps_of_its_family(drift: Any, positions: list[float]) -> None:
    environment = TabularMDP(family=family(), stages=3, episodes=6, drift=drift)
    randomness = Randomness(4, dtype=torch.double)
    world = environment.reset(randomness)
    mdps = world.path.mdps
    for episode, position in enumerate(positions):
        if episode:
            world = environment.next_episode(world, 3 * episode + 1, randomness)
        number, share = int(position), position - int(position)
        after = min(number + 1, len(mdps.rewards) - 1)
        wanted = (1 - share) * mdps.transitions[number] + share * mdps.transitions[after]
        assert torch.allclose(world.solved.model.transitions, wanted, atol=1e-12)
        assert torch.equal(world.solved.values, backward_induction(world.solved.model, 3))


def test_random_redraws_come_in_episodes_of_their_own_and_touch_no_other_problem() -> None:
    environment = TabularMDP(family=family(), stages=3, episodes=30, drift=Redraws(3))
    randomness = Randomness(4)
    world, count = environment.reset(randomness), torch.zeros(CHUNK)
    for episode in range(1, 30):
        before, world = world, environment.next_episode(world, 3 * episode + 1, randomness)
        differs = (world.solved.values != before.solved.values).flatten(1).any(dim=1)
        assert torch.equal(differs, world.changed)
        count += world.changed
    assert bool((count == 3).all())


def test_nonstationarity_bounds_how_far_any_policys_value_moves() -> None:
    environment = df.make_env(
        "random-mdp", episodes=5, stages=3, states=3, actions=2, successors=2, change="walk", every=2
    )
    measured = df.nonstationarity(environment, problems=CHUNK, seed=1)
    assert measured.changes.shape == (CHUNK, 4)
    randomness = Randomness(1, dtype=torch.double)
    world = environment.reset(randomness)
    policy = (Randomness(8).stream("policy").uniform(9).view(CHUNK, 3, 3) * 2).long()
    for episode in range(1, 5):
        following = environment.next_episode(world, 3 * episode + 1, randomness)
        moved = value_of(world.solved.model, 3, policy) - value_of(following.solved.model, 3, policy)
        assert bool((moved.abs() <= measured.changes[:, episode - 1]).all())
        world = following
    lock = df.nonstationarity(df.make_env("lock", episodes=9, every=3), problems=1)
    # The two ends' rewards of .98 and .245 are exchanged, counted once for each of five steps.
    assert lock.changes[0].tolist() == pytest.approx([0, 0, 5 * 0.735, 0, 0, 5 * 0.735, 0, 0])
    assert lock.count().tolist() == [3]


def test_the_lock_is_worth_what_dynamic_programming_by_hand_says() -> None:
    """Five actions that must not slip lead to the great end; a first one that slips, and four, to the other. One that
    slips later pays 1/(8H) in its step and in all that are left: 4,567 in 5,000 episodes.
    """
    world = df.make_env("lock").reset(Randomness(0))
    ends = 0.98**5 + 0.02 * 0.98**4 * 0.25
    sunk = sum(0.02 * 0.98 ** (step - 2) * (6 - step) / 40 for step in range(2, 6))
    assert world.values.amax(dim=1).tolist() == pytest.approx([ends + sunk] * CHUNK, rel=1e-6)
    assert round(5000 * (ends + sunk)) == 4567


def test_an_mdp_of_ones_own_with_a_drift_of_ones_own() -> None:
    def fades(episode: int, rewards: Tensor, transitions: Tensor) -> tuple[Tensor, Tensor]:
        return rewards * 0.5**episode, transitions

    mine = df.mdp(np.ones((2, 2)), np.full((2, 2, 2), 0.5), stages=4, episodes=3, drift=fades)
    randomness = Randomness(0)
    world, best = mine.reset(randomness), []
    while world.t <= mine.horizon:
        best.append(float(world.values[0].max()))
        world = mine.step(world, torch.zeros(CHUNK, dtype=torch.long), randomness)[2]
    assert best == [4, 3, 2, 1, 2, 1.5, 1, 0.5, 1, 0.75, 0.5, 0.25]
    assert df.make_env("random-mdp", drift=fades).traits.abrupt is False


def test_several_mdps_of_ones_own_become_one_another() -> None:
    moves = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]
    several = df.mdp([[[0, 0.5], [0, 0]], [[0, 0], [1, 0]]], [moves, moves], stages=2, episodes=3, first=1)
    randomness = Randomness(0)
    world, best = several.reset(randomness), []
    for episode in range(3):
        best.append(float(several.next_episode(world, 2 * episode + 1, randomness).values[0].max()))
    assert best == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("rewards", "transitions", "message"),
    [
        (np.ones((2, 2)), np.ones((2, 2, 3)), r"rewards are \[1, 2, 2\] and transitions \[1, 2, 2, 3\]"),
        (np.ones((3, 2, 2)), np.ones((3, 2, 2, 2)), "rewards have 3 steps, but stages is 2"),
        (np.ones(2), np.ones((2, 2, 2)), "rewards have 1 dimensions; give 2, or 3"),
        ([["a", "b"]], np.ones((1, 2, 1)), "rewards are no arrays of numbers"),
        (np.ones((2, 2)), np.ones((2, 2, 2)), "environment 'mdp': transitions from state 0 .* sum to 2"),
        (np.full((2, 2), 2.0), np.full((2, 2, 2), 0.5), "rewards contain 2; all of them lie in"),
    ],
)
def test_arrays_that_make_no_mdp_are_refused(rewards: Any, transitions: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        df.rollout(df.mdp(rewards, transitions, stages=2, episodes=2), "random")


def wrong_sum(episode: int, rewards: Tensor, transitions: Tensor) -> tuple[Tensor, Tensor]:
    return rewards, transitions * (1.0 if episode == 0 else 1.5)


def negative(episode: int, rewards: Tensor, transitions: Tensor) -> tuple[Tensor, Tensor]:
    return rewards, transitions - 1.0


def too_large(episode: int, rewards: Tensor, transitions: Tensor) -> tuple[Tensor, Tensor]:
    return rewards + 3.0, transitions


def shapeless(episode: int, rewards: Tensor, transitions: Tensor) -> tuple[Tensor, Tensor]:
    return rewards[0], transitions


def nothing(episode: int, rewards: Tensor, transitions: Tensor) -> Any:
    return rewards


def not_numbers(episode: int, rewards: Tensor, transitions: Tensor) -> tuple[Tensor, Tensor]:
    return rewards * torch.nan, transitions


@pytest.mark.parametrize(
    ("drift", "message"),
    [
        (wrong_sum, r"transitions (contain|from state \d+ under action \d+ in step 0 sum to 1.5)"),
        (negative, "transitions contain -1; all of them lie in"),
        (too_large, "rewards contain .* lie in"),
        (shapeless, r"rewards are \[1, 8, 3\]; give floats \[64, 1, 8, 3\]"),
        (nothing, r"drift gives Tensor; return \(rewards, transitions\)"),
        (not_numbers, "rewards contain inf"),
    ],
)
def test_a_drift_that_returns_no_mdp_is_named_at_the_door(drift: Any, message: str) -> None:
    environment = df.make_env("random-mdp", episodes=3, drift=drift)
    with pytest.raises(InputError, match=f"environment 'random-mdp': {message}"):
        df.rollout(environment, "random")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("random-mdp", {"stages": 0}, "stages is 0"),
        ("random-mdp", {"successors": 9}, "successors is 9, but there are 8 states"),
        ("random-mdp", {"episodes": 2}, "changes is 4; at most 1"),
        ("random-mdp", {"states": 9000, "actions": 9000}, "need more than 8 GiB"),
        ("lock", {"variant": "sudden"}, "variant: there is no 'sudden'"),
        ("lock", {"success": 1.5}, "success is 1.5"),
        ("darkroom", {"size": 1}, "size is 1"),
        ("riverswim", {"every": 0}, "every is 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        df.rollout(df.make_env(name, **options), "random")


def test_bandit_agents_refuse_mdps_in_words() -> None:
    with pytest.raises(InputError, match="'linucb' cannot play 'lock': it is made for bandits"):
        df.rollout(df.make_env("lock"), "linucb")


def test_one_chooses_among_actions_not_states() -> None:
    environment = df.make_env("darkroom", episodes=10, size=3)
    world = environment.reset(Randomness(0))
    assert pick(world.values, torch.zeros(CHUNK, dtype=torch.long)).shape == (CHUNK,)
    assert (environment.arms, environment.traits.states, environment.traits.stages) == (5, 9, 20)
