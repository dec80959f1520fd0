"""What every environment and every agent must keep to, over all that are registered."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch

from driftformer.agents.base import Privileged, ProblemShape
from driftformer.agents.registry import AGENTS, BaseAgent, full_label, label, make_agent
from driftformer.environments.registry import PRESETS
from driftformer.errors import InputError
from driftformer.problem import Observation, Traits, why_not
from driftformer.randomness import CHUNK, Randomness
from driftformer.simulation.rollout import rollout
from tests.small import small

OURS = [name for name, preset in PRESETS.items() if preset.__module__.startswith("driftformer.")]
SMALL = {"horizon": 60, "dim": 4, "arms": 3}  # the longest default window is 50
USED_BY = {"b": {"change": "cosine"}, "budget": {"change": "walk"}, "width": {"change": "handover"}}
USED_BY |= {(name, "changes"): {"change": "permute"} for name in ("table", "items")}
USED_BY |= {("items", "noise"): {"pays": "linear"}, "period": {"change": "cycle"}}
USED_BY |= {("random-mdp", "every"): {"change": "walk"}}
"""Options that count only where another is set."""
OF_DATA = ("fill",)
"""Options that show in the data themselves, by which a config knows them."""
UP_TO_ONE = ("offered", "share", "success", "small", "gain")
MODES = {env: ("fixed", "resampled") if hasattr(PRESETS[env], "arm_mode") else ("as it is",) for env in OURS}
CASES = [(env, agent, mode) for env in OURS for agent in AGENTS for mode in MODES[env]]


@pytest.mark.parametrize(("env", "agent", "mode"), CASES)
def test_agent_plays_environment_by_the_rules(env: str, agent: str, mode: str) -> None:
    environment, player = small(env, arm_mode=mode, **SMALL), make_agent(agent)
    assert isinstance(player, Privileged) == AGENTS[agent].privileged
    if why_not(player, environment.traits) is not None:
        with pytest.raises(InputError, match=f"'{agent}' cannot play '{env}'"):
            rollout(environment, player)
        return
    first = rollout(environment, player, chunks=[0, 1], trajectories=True)
    again = rollout(environment, player, chunks=[0, 1], trajectories=True)
    seen, repeated = first.trajectories, again.trajectories
    assert seen is not None
    assert repeated is not None
    assert seen.arms.shape == seen.rewards.shape == seen.suboptimality.shape == (2 * CHUNK, SMALL["horizon"])
    assert bool((seen.arms >= 0).all())
    assert bool((seen.arms < environment.arms).all())
    assert bool((seen.suboptimality >= 0).all())
    assert bool(seen.rewards.isfinite().all())
    assert torch.equal(seen.rewards, repeated.rewards)
    assert torch.equal(seen.arms, repeated.arms)
    totals = np.concatenate([chunk.regret for chunk in first.regrets])
    assert np.allclose(totals, seen.suboptimality.double().sum(dim=1).numpy(), rtol=1e-12)
    assert (seen.auxiliary_values is not None) == player.learns
    if seen.auxiliary_values is not None:
        assert bool(seen.auxiliary_values.isfinite().all())


def row_counts(state: object) -> list[int]:
    """The leading dimension of every tensor in a state, however nested."""
    if isinstance(state, torch.Tensor):
        return [state.shape[0]]
    if not dataclasses.is_dataclass(state):
        return []
    return [rows for value in vars(state).values() for rows in row_counts(value)]


@pytest.mark.parametrize("agent", [name for name, entry in AGENTS.items() if not entry.privileged])
def test_ordinary_agent_learns_from_any_arm_and_keeps_problems_apart(agent: str) -> None:
    """Replaying other arms than it chose must work (experts relabel histories), and no problem may see another's."""
    player, randomness = make_agent(agent), Randomness(0)
    for_mdps = why_not(player, Traits(one_hot=True, same_arms=True)) is not None
    rounds = 240 if for_mdps else 20
    shape = ProblemShape(CHUNK, max(rounds, 60), 3, 4, torch.device("cpu"), torch.float32)
    features, rewards = randomness.stream("x").symmetric(rounds, 3, 4), randomness.stream("r").uniform(rounds).round()
    arms = (randomness.stream("a").uniform(rounds) * 3).long()
    seen = [Observation(features[:, t].contiguous()) for t in range(rounds)]
    if for_mdps:  # two states, episodes of two steps
        shape = dataclasses.replace(shape, states=2, stages=2)
        stages = (torch.arange(rounds) % 2).expand(CHUNK, -1)
        states = (randomness.stream("s").uniform(rounds) * 2).long() * stages
        seen = [dataclasses.replace(one, state=states[:, t], stage=stages[:, t]) for t, one in enumerate(seen)]

    def play(rewards: torch.Tensor) -> list[torch.Tensor]:
        state, rng, chosen = player.init(shape), Randomness(1).stream("agent"), []
        for t in range(rounds):
            arm, info = player.act(state, seen[t], rng)
            chosen.append(arm)
            state = player.update(state, seen[t], arms[:, t], rewards[:, t], info)
        assert all(rows == CHUNK for rows in row_counts(state)), "a state is tensors with one row per problem"
        return chosen

    other = rewards.clone()
    other[0] = 1 - other[0]
    before, after = torch.stack(play(rewards), 1), torch.stack(play(other), 1)
    assert torch.equal(before[1:], after[1:])
    if agent != "random":
        assert not torch.equal(before[0], after[0])


@pytest.mark.parametrize("env", OURS)
def test_environment_config_is_plain_data_that_tells_settings_apart(env: str) -> None:
    config = small(env, **SMALL).config()
    assert json.loads(json.dumps(config)) == json.loads(json.dumps(small(env, **SMALL).config()))
    assert config["name"] == env
    for field in dataclasses.fields(PRESETS[env]):
        if isinstance(field.default, (int, float)) and field.name not in OF_DATA:
            other = 0.5 if field.name in UP_TO_ONE else SMALL.get(field.name, field.default) + 1
            change = USED_BY.get((env, field.name), USED_BY.get(field.name, {}))
            before, after = (small(env, **SMALL | change | more).config() for more in ({}, {field.name: other}))
            assert before != after, f"{field.name} is missing from the config"


@pytest.mark.parametrize("agent", AGENTS)
def test_listed_options_are_the_true_ones(agent: str) -> None:
    player = make_agent(agent)
    assert player.name == agent == label(player)
    fields = [field.name for field in dataclasses.fields(player)]  # type: ignore[arg-type]
    assert fields == list(AGENTS[agent].options)
    for option, listed in AGENTS[agent].options.items():
        value = getattr(player, option)
        assert value == (make_agent(listed) if isinstance(listed, BaseAgent) else listed)
    assert make_agent(full_label(player)) == player
