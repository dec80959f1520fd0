"""A policy played from its cache must say what it says when it reads the whole history."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor

from driftformer.agents.rows import restart
from driftformer.models.configuration import PolicyConfig
from driftformer.models.context import Context, begin, logits_apart, next_logits, read_history, record
from driftformer.models.incontext import InContextPolicy

BATCH, ROUNDS, ARMS, DIM = 5, 12, 4, 6
FORMS = [("paper", "gpt2"), ("pointer", "gpt2"), ("paper", "relu"), ("pointer", "relu")]


def make_policy(form: str, backbone: str) -> InContextPolicy:
    torch.manual_seed(0)
    config = PolicyConfig(form, backbone, DIM, ARMS, ROUNDS, layers=2, heads=2, width=16)  # type: ignore[arg-type]
    policy = InContextPolicy(config)
    with torch.no_grad():
        for parameter in policy.parameters():  # larger than at the start of a training: differences would show
            parameter.mul_(3)
    return policy.requires_grad_(False)


def make_histories() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    features = torch.rand(BATCH, ROUNDS, ARMS, DIM, generator=generator) * 2 - 1
    arms = torch.randint(ARMS, (BATCH, ROUNDS), generator=generator)
    return features, arms, torch.randn(BATCH, ROUNDS, generator=generator)


def after(context: Context, features: Tensor, arm: Tensor, reward: Tensor) -> Context:
    x = features[torch.arange(len(arm)), arm]
    return record(context, x, arm, reward, torch.ones_like(reward))


@pytest.mark.parametrize(("form", "backbone"), FORMS)
def test_cached_logits_equal_those_of_the_whole_history(form: str, backbone: str) -> None:
    policy = make_policy(form, backbone)
    features, arms, rewards = make_histories()
    whole = policy(features, arms, rewards)
    assert float(whole.std()) > 0.01
    context = begin(policy, BATCH, ROUNDS)
    for t in range(ROUNDS):
        logits = next_logits(policy, context, features[:, t])
        assert torch.allclose(logits, whole[:, t], atol=1e-5, rtol=0)
        context = after(context, features[:, t], arms[:, t], rewards[:, t])


@pytest.mark.parametrize(("form", "backbone"), FORMS)
def test_cached_equals_uncached_with_rows_reset_at_staggered_rounds(form: str, backbone: str) -> None:
    policy = make_policy(form, backbone)
    features, arms, rewards = make_histories()
    context, fresh = begin(policy, BATCH, ROUNDS), begin(policy, 1, ROUNDS)
    start = torch.zeros(BATCH, dtype=torch.long)
    apart = 0
    for t in range(ROUNDS):
        signal = torch.tensor([t % (3 + row) == 2 for row in range(BATCH)])
        context, start = restart(context, signal, fresh), torch.where(signal, t, start)
        apart += int(context.rounds.min() != context.rounds.max())
        logits = next_logits(policy, context, features[:, t])
        for row in range(BATCH):
            seen = slice(int(start[row]), t + 1)
            alone = policy(features[row : row + 1, seen], arms[row : row + 1, seen], rewards[row : row + 1, seen])
            assert torch.allclose(logits[row], alone[0, -1], atol=1e-5, rtol=0)
        context = after(context, features[:, t], arms[:, t], rewards[:, t])
    assert apart > ROUNDS // 2, "rows must have stood at different rounds"


@pytest.mark.parametrize(("form", "backbone"), FORMS)
def test_rows_that_stand_together_may_be_played_as_if_apart(form: str, backbone: str) -> None:
    policy = make_policy(form, backbone)
    features, arms, rewards = make_histories()
    whole, context = policy(features, arms, rewards), begin(policy, BATCH, ROUNDS)
    for t in range(ROUNDS):
        assert torch.allclose(logits_apart(policy, context, features[:, t]), whole[:, t], atol=1e-5, rtol=0)
        context = after(context, features[:, t], arms[:, t], rewards[:, t])


@pytest.mark.parametrize(("form", "backbone"), FORMS)
def test_order_and_neighbours_in_the_batch_do_not_matter(form: str, backbone: str) -> None:
    policy = make_policy(form, backbone)
    features, arms, rewards = make_histories()
    order = torch.tensor([3, 0, 4, 1, 2])
    contexts = [begin(policy, BATCH, ROUNDS), begin(policy, BATCH, ROUNDS), begin(policy, 1, ROUNDS)]
    rows = [torch.arange(BATCH), order, torch.tensor([3])]
    for t in range(ROUNDS):
        logits = []
        for place, (context, chosen) in enumerate(zip(contexts, rows, strict=True)):
            logits.append(next_logits(policy, context, features[chosen, t]))
            contexts[place] = after(context, features[chosen, t], arms[chosen, t], rewards[chosen, t])
        assert torch.allclose(logits[0][order], logits[1], atol=1e-5, rtol=0)
        assert torch.allclose(logits[0][3:4], logits[2], atol=1e-5, rtol=0)


def test_pointer_follows_its_arms_when_they_change_places() -> None:
    policy = make_policy("pointer", "gpt2")
    features, arms, rewards = make_histories()
    order = torch.tensor([2, 0, 3, 1])
    moved = policy(features[:, :, order], order.argsort()[arms], rewards)
    assert torch.allclose(policy(features, arms, rewards)[:, :, order], moved, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("form", "backbone"), FORMS)
def test_a_history_read_in_one_pass_leaves_the_same_context(form: str, backbone: str) -> None:
    policy = make_policy(form, backbone)
    features, arms, rewards = make_histories()
    seen = (torch.arange(ROUNDS) % 3 != 1).float().expand(BATCH, -1)  # some rewards never came
    context = begin(policy, BATCH, ROUNDS)
    for t in range(7):
        at_once = read_history(policy, features[:, :t], arms[:, :t], rewards[:, :t], seen[:, :t])
        expected = next_logits(policy, context, features[:, t])
        assert torch.allclose(next_logits(policy, at_once, features[:, t]), expected, atol=1e-5, rtol=0)
        x = features[torch.arange(BATCH), t, arms[:, t]]
        context = record(context, x, arms[:, t], rewards[:, t], seen[:, t])
    assert torch.equal(context.rounds, replace(at_once).rounds + 1)


def test_an_unknown_reward_is_not_looked_at() -> None:
    policy = make_policy("pointer", "gpt2")
    features, arms, rewards = make_histories()
    seen = torch.ones_like(rewards)
    seen[:, 4] = 0
    other = rewards.clone()
    other[:, 4] += 100
    assert torch.equal(policy(features, arms, rewards, seen), policy(features, arms, other, seen))
    assert not torch.allclose(policy(features, arms, rewards), policy(features, arms, rewards, seen))


def test_a_context_is_tensors_with_one_row_a_problem() -> None:
    context = begin(make_policy("paper", "gpt2"), BATCH, ROUNDS)
    plain = [getattr(context, field.name) for field in fields(context) if field.name != "slots"]
    assert all(tensor.shape[0] == BATCH for tensor in (*plain, *context.slots.keys, *context.slots.values))
