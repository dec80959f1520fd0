"""Play a policy round by round. A cache holds what it has seen, so a round costs one or two tokens, not all of them.

In the paper's form the outcome of a round is read together with the next state: two tokens in one pass. Rows may be at
different rounds and may restart at any time: a row of zeros is a problem that has seen nothing. A row in its first
round has no outcome to read; the placeholder goes to the slot after the state, which nothing reads until the true
outcome is written there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from driftformer.models.cache import ApartCache, Slots, TogetherCache, empty_slots
from driftformer.models.relu_transformer import causal

if TYPE_CHECKING:
    from driftformer.models.incontext import InContextPolicy


@dataclass(frozen=True)
class Context:
    """What a batch of problems has shown so far, one row per problem."""

    slots: Slots  # keys and values of the tokens read so far
    rounds: Tensor  # [B] rounds played
    x: Tensor  # [B, d] the last arm's features
    arm: Tensor  # [B] its place in the action set
    reward: Tensor  # [B]
    seen: Tensor  # [B] 1 where that reward is known, else 0


def begin(policy: InContextPolicy, batch: int, rounds: int) -> Context:
    """Empty contexts with space for so many rounds."""
    config, device, dtype = policy.config, policy.head.weight.device, policy.head.weight.dtype
    count = torch.zeros(batch, dtype=torch.long, device=device)
    zero = torch.zeros(batch, dtype=dtype, device=device)
    x = torch.zeros(batch, config.dim, dtype=dtype, device=device)
    slots = empty_slots(config, batch, max(config.tokens_in(rounds), config.tokens_per_round), device, dtype)
    return Context(slots, count, x, count.clone(), zero, zero.clone())


def read_history(policy: InContextPolicy, played: Tensor, arms: Tensor, rewards: Tensor, seen: Tensor) -> Context:
    """The context after n rounds, read in one pass: offered arms `[B, n, A, d]` and their outcomes `[B, n]`."""
    batch, rounds = arms.shape
    context = begin(policy, batch, rounds + 1)
    if rounds == 0:
        return context
    tokens = policy.trajectory_tokens(played, arms, rewards, seen)
    places = torch.arange(tokens.shape[1], device=tokens.device).unsqueeze(0)
    policy.run(tokens, places, None, TogetherCache(context.slots, 0))
    x = played[torch.arange(batch, device=arms.device), -1, arms[:, -1]]
    last = (x, arms[:, -1], rewards[:, -1], seen[:, -1])
    return record(replace(context, rounds=context.rounds + rounds - 1), *last)


def record(context: Context, x: Tensor, arm: Tensor, reward: Tensor, seen: Tensor) -> Context:
    """The context after a round, whose outcome is read together with the next round."""
    return replace(context, rounds=context.rounds + 1, x=x, arm=arm, reward=reward, seen=seen)


def logits_together(policy: InContextPolicy, context: Context, features: Tensor, t: int) -> Tensor:
    """Logits `[B, A]` of round t, from 1, at which all rows are; fills the slots of the context."""
    tokens = _tokens(policy, context, features)
    if policy.config.form == "paper" and t == 1:  # there is no outcome yet
        tokens = tokens[:, 1:]
    stop = policy.config.tokens_in(t)
    start = stop - tokens.shape[1]
    places = torch.arange(start, stop, device=tokens.device).unsqueeze(0)
    visible = causal(tokens.shape[1], stop, tokens.device) if _needs_mask(policy, tokens) else None
    hidden = policy.run(tokens, places, visible, TogetherCache(context.slots, start))
    return policy.logits(hidden[:, -1], features)


def logits_apart(policy: InContextPolicy, context: Context, features: Tensor) -> Tensor:
    """Logits `[B, A]` of each row's own next round; fills the slots of the context."""
    tokens = _tokens(policy, context, features)
    if policy.config.form == "paper":
        state = 2 * context.rounds
        outcome = torch.where(context.rounds == 0, 1, state - 1)  # nothing to read yet: hidden behind the state
        places = torch.stack([outcome, state], dim=1)  # [B, 2]
    else:
        places = context.rounds.unsqueeze(1)
    filled = int(places.max()) + 1
    keys = torch.arange(filled, device=tokens.device)
    visible = (keys <= places.unsqueeze(2)).unsqueeze(1)  # [B, 1, q, n]
    hidden = policy.run(tokens, places, visible, ApartCache(context.slots, places, filled))
    return policy.logits(hidden[:, -1], features)


def next_logits(policy: InContextPolicy, context: Context, features: Tensor) -> Tensor:
    """Logits `[B, A]` of the next round, whether or not all rows are at the same one."""
    if (first := int(context.rounds.min())) == int(context.rounds.max()):
        return logits_together(policy, context, features, first + 1)
    return logits_apart(policy, context, features)


def _needs_mask(policy: InContextPolicy, tokens: Tensor) -> bool:
    """A single new token sees every filled slot."""
    return tokens.shape[1] > 1 or policy.config.backbone == "relu"


def _tokens(policy: InContextPolicy, context: Context, features: Tensor) -> Tensor:
    """The tokens of a round, `[B, q, D]`."""
    outcome = policy.outcome_token(context.x, context.arm, context.reward, context.seen)
    if policy.config.form == "pointer":
        return outcome.unsqueeze(1)
    return torch.stack([outcome, policy.state_token(features)], dim=1)
