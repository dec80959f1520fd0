"""The query form: any number of arms, in any order, in any unit; what it has seen is never read again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import driftformer as df
from driftformer.environments.drift import Affine
from driftformer.environments.linear import LinearBandit
from driftformer.models.bank import MEMBERS
from driftformer.models.checkpoints import new_policy, read_policy, save_policy
from driftformer.models.configuration import PolicyConfig
from driftformer.models.query import QueryPolicy
from driftformer.models.statistics import PROBLEM, RECORD, Statistics
from driftformer.simulation.rollout import rollout

ROUNDS, ARMS, BEST = 6, 5, 16


def make_policy() -> QueryPolicy:
    torch.manual_seed(0)
    policy = new_policy(PolicyConfig("query", layers=2, heads=2, width=16))
    assert isinstance(policy, QueryPolicy)
    with torch.no_grad():
        layers = (policy.weigh, policy.trust, policy.head, policy.dare[2])
        for weight in (layer.weight for layer in layers):  # they begin with zeros
            weight.normal_(std=0.1)
    return policy.requires_grad_(False)


def make_statistics() -> Statistics:
    generator = torch.Generator().manual_seed(1)
    shapes = ((ARMS, 3 * MEMBERS), (ARMS, BEST), (BEST, RECORD), (PROBLEM,))
    return Statistics(*(torch.randn(ROUNDS, *shape, generator=generator) for shape in shapes))


@pytest.fixture
def stored(tmp_path: Path) -> str:
    save_policy(make_policy(), tmp_path / "policy", torch.float32)
    return str(tmp_path / "policy")


def test_it_begins_with_what_a_filter_of_a_world_at_rest_says() -> None:
    known = make_statistics()
    verdict = new_policy(PolicyConfig("query", layers=2, heads=2, width=16))(known)
    trusted = known.arms[..., 1]
    assert torch.corrcoef(torch.stack([verdict.mean.flatten(), trusted.flatten()]))[0, 1] > 0.9
    assert torch.allclose(verdict.daring, verdict.daring[:1])


def test_the_order_of_arms_plays_no_part() -> None:
    policy, known = make_policy(), make_statistics()
    order = torch.tensor([3, 1, 4, 0, 2])
    shuffled = known._replace(arms=known.arms[:, order], waves=known.waves[:, order])
    one, other = policy(known), policy(shuffled)
    for name in ("mean", "doubt", "logits"):
        assert torch.allclose(getattr(one, name)[:, order], getattr(other, name), atol=1e-5)
    assert torch.allclose(one.daring, other.daring, atol=1e-5)


def test_arms_that_are_not_on_offer_play_no_part() -> None:
    policy, known = make_policy(), make_statistics()
    offered = torch.ones(ROUNDS, ARMS + 2, dtype=torch.bool)
    offered[:, ARMS:] = False
    wider = known._replace(
        arms=torch.cat([known.arms, torch.randn(ROUNDS, 2, 3 * MEMBERS) * 9], dim=1),
        waves=torch.cat([known.waves, torch.randn(ROUNDS, 2, BEST) * 9], dim=1),
    )
    one, other = policy(known), policy(wider, offered)
    for name in ("mean", "doubt", "logits"):
        assert torch.allclose(getattr(one, name), getattr(other, name)[:, :ARMS], atol=1e-5)
    assert torch.allclose(one.daring, other.daring, atol=1e-5)


def test_it_is_stored_and_read_again(stored: str) -> None:
    policy, known = read_policy(Path(stored)), make_statistics()
    assert isinstance(policy, QueryPolicy)
    assert torch.equal(policy(known).logits, make_policy()(known).logits)
    assert torch.equal(QueryPolicy.from_pretrained(stored)(known).logits, policy(known).logits)


def test_it_plays_any_size_and_inside_of_master(stored: str) -> None:
    for size in ({"dim": 1, "arms": 2}, {"dim": 70, "arms": 3}, {"dim": 4, "arms": 40, "offered": 0.5}):
        environment = df.make_env("jumps", horizon=12, **size)
        result = df.evaluate(environment, [f"policy:{stored}", "random"], runs=8)
        assert len(result.finals) == 2
    df.evaluate(df.make_env("bernoulli", horizon=60), [f"master@base=policy:{stored}"], runs=2)


def test_units_of_rewards_change_no_choice(stored: str) -> None:
    plain = LinearBandit(horizon=40, dim=6, arms=4)
    for scale in (4.0, 1 / 1024):  # powers of two: not even a last bit differs
        other = replace(plain, drift=Affine(scale=scale, shift=0.0))
        arms = []
        for environment in (plain, other):
            played = rollout(environment, f"policy:{stored}", trajectories=True).trajectories
            assert played is not None
            arms.append(played.arms)
        assert torch.equal(*arms)


def test_chunks_in_a_stack_do_not_meet(stored: str) -> None:
    environment = LinearBandit(horizon=20, dim=6, arms=4)
    both = rollout(environment, f"policy:{stored}", chunks=(0, 1)).regrets[1].regret
    assert abs(both - rollout(environment, f"policy:{stored}", chunks=(1,)).regrets[0].regret).max() < 1e-3
