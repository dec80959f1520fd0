"""The policy for MDPs: trained as recipes say, played by the training as by an evaluation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import driftformer as df
from driftformer.errors import InputError
from driftformer.models.checkpoints import new_policy, read_policy, save_policy
from driftformer.models.configuration import PolicyConfig
from driftformer.models.tabular import TabularPolicy
from driftformer.pretraining.players import player_of
from driftformer.pretraining.recipes import recipe_of
from driftformer.pretraining.run import train
from driftformer.pretraining.worlds import worlds_of
from driftformer.randomness import Randomness, one_thread
from driftformer.simulation.tape import problems_of

FEW = replace(
    recipe_of("mdp"),
    worlds="few-mdps",
    width=16,
    heads=2,
    steps=4,
    tokens=3_840,
    tuning_steps=2,
    tuning_tokens=7_680,
    tuning_rollouts=4,
    tuning_updates=2,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy with weights of no use, but all of them in play."""
    torch.manual_seed(0)
    policy = new_policy(PolicyConfig("tabular", layers=1, heads=2, width=16, dim=2, arms=2, horizon=60))
    assert isinstance(policy, TabularPolicy)
    for layer in (policy.head, policy.trust, policy.dare[2]):
        torch.nn.init.normal_(layer.weight, std=0.3)  # type: ignore[union-attr, arg-type]
    path = tmp_path_factory.mktemp("policy")
    save_policy(policy, path, torch.float32)
    return path


def test_training_plays_it_as_an_evaluation_does(folder: Path) -> None:
    environment = df.make_env("random-mdp", episodes=12, changes=2)
    seen = df.rollout(
        environment, df.make_agent(f"policy:{folder}@mode=greedy"), seed=3, trajectories=True
    ).trajectories
    problems = problems_of(environment, Randomness(3))
    with one_thread():
        played = player_of(read_policy(folder)).play(problems, torch.zeros(64, 60, 3))
    assert seen is not None
    assert torch.equal(seen.arms.long(), played.arms)
    assert torch.equal(seen.rewards, played.rewards)


@pytest.mark.parametrize(("states", "actions", "differ"), [(8, 3, False), (11, 4, True), (24, 2, False), (7, 5, True)])
def test_a_chunk_gives_the_same_bits_alone_as_in_a_stack(folder: Path, states: int, actions: int, differ: bool) -> None:
    """The probabilities of choices show every bit of what the network says."""
    agent = df.make_agent(f"policy:{folder}")
    sizes = {"states": states, "actions": actions, "stages_differ": differ}
    environment = df.make_env("random-mdp", episodes=12, changes=2, **sizes)
    together = df.rollout(environment, agent, chunks=[4, 9, 2], trajectories=True).trajectories
    alone = df.rollout(environment, agent, chunks=[2], trajectories=True).trajectories
    assert together is not None
    assert alone is not None
    assert together.auxiliary_values is not None
    assert alone.auxiliary_values is not None
    assert torch.equal(together.arms[128:], alone.arms)
    assert torch.equal(together.auxiliary_values[128:], alone.auxiliary_values)


def test_it_plays_mdps_of_any_size_and_refuses_bandits_in_words(folder: Path) -> None:
    agent = df.make_agent(f"policy:{folder}")
    for name, options in (("darkroom", {"size": 3}), ("lock", {}), ("random-mdp", {"stages_differ": True})):
        played = df.rollout(df.make_env(name, episodes=6, **options), agent)
        assert played.regrets[0].regret.min() >= 0
    with pytest.raises(InputError, match="cannot play 'high': it is made for MDPs with states and episodes"):
        df.rollout(df.make_env("high", horizon=5), agent)
    with pytest.raises(InputError, match="cannot play 'lock': it is made for bandits"):
        df.rollout(df.make_env("lock", episodes=6), "policy:drift")
    with pytest.raises(InputError, match="cannot be put to work"):
        agent.online()


def test_a_training_goes_on_exactly_where_it_was_stopped(tmp_path: Path) -> None:
    options = {"evaluate_every": 100, "evaluate_problems": 4}
    whole = train(FEW, tmp_path / "whole", **options)  # type: ignore[arg-type]
    assert (whole.step, whole.tuning_step) == (4, 2)
    part = train(FEW, tmp_path / "parts", max_minutes=1e-6, **options)  # type: ignore[arg-type]
    assert part.step < 4
    train(FEW, tmp_path / "parts", **options)  # type: ignore[arg-type]
    losses = [
        [json.loads(line)["loss"] for line in (tmp_path / name / "log.jsonl").read_text().splitlines()]
        for name in ("whole", "parts")
    ]
    assert losses[0] == losses[1]
    assert read_policy(tmp_path / "parts" / "best").config.form == "tabular"


def test_beliefs_fit_better_after_a_few_steps() -> None:
    """Minus the log-likelihood of Q* on fresh problems, before and after some steps of the recipe in small."""
    from driftformer.pretraining.query import value_loss

    policy = new_policy(PolicyConfig("tabular", layers=1, heads=2, width=16, dim=2, arms=2, horizon=60))
    assert isinstance(policy, TabularPolicy)
    optimizer = torch.optim.Adam(policy.parameters(), 3e-3)
    environment, losses = worlds_of("few-mdps")[0].environment, []
    for step in range(15):
        watched = player_of(policy).watch(  # type: ignore[union-attr]
            problems_of(environment, Randomness(step)), torch.zeros(64, environment.horizon, environment.arms)
        )
        values = watched.trajectories.on_offer.values.transpose(0, 1)
        target = (values - values.mean(2, keepdim=True)) / watched.spread.unsqueeze(2)
        verdict = policy(type(watched.known)(*(held.flatten(0, 1) for held in watched.known)))
        loss = value_loss(verdict, target.flatten(0, 1), torch.ones_like(target).flatten(0, 1))
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert sum(losses[-3:]) < sum(losses[:3])
