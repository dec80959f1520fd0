"""The MDPs of pretraining: each a proper one, of many kinds, and changing in the ways that are meant."""

from __future__ import annotations

import torch

from driftformer.environments.broad_mdp import BroadFamily
from driftformer.environments.mdp import Model, check_model
from driftformer.pretraining.worlds import worlds_of
from driftformer.randomness import Randomness

SIZES = (7, 3, 5)
MDPS = BroadFamily(*SIZES).draw(3, Randomness(0, range(8)).stream("drift"), torch.zeros(512))


def test_every_one_is_an_mdp() -> None:
    for rewards, transitions in zip(MDPS.rewards, MDPS.transitions, strict=True):
        check_model("broad", Model(rewards, transitions), (512, 1, 7, 3))


def test_kinds_are_drawn_for_each_problem() -> None:
    successors = (MDPS.transitions[0] > 0.02).sum(-1).flatten(1).double().mean(1)
    assert float((successors < 1.6).double().mean()) > 0.2  # where an action leads is certain, or nearly so
    assert float((successors > 4).double().mean()) > 0.05
    paying = (MDPS.rewards[0] > 0.3).flatten(1).sum(1)
    assert float((paying <= 1).double().mean()) > 0.1
    assert float((paying > 8).double().mean()) > 0.1


def test_sometimes_only_rewards_change_sometimes_only_moves_sometimes_a_few_pairs() -> None:
    pays = (MDPS.rewards[1] != MDPS.rewards[0]).flatten(1).any(1)
    moves = (MDPS.transitions[1] != MDPS.transitions[0]).flatten(1).any(1)
    for one, other in ((pays, ~moves), (~pays, moves), (pays, moves)):
        assert 0.1 < float((one & other).double().mean()) < 0.8
    assert not torch.equal(MDPS.rewards[1], MDPS.rewards[2])


def test_no_world_of_pretraining_is_one_of_those_kept_for_tests() -> None:
    kept = {"lock", "riverswim", "darkroom"}
    for world in worlds_of("mdps"):
        config = world.environment.config()
        assert config["name"] not in kept
        assert config["family"]["kind"] == "BroadFamily"
        assert config["drift"]["kind"] != "Cycle"
