"""What agents for K arms without features share: how often each arm was played and what it paid.

Such an agent plays each offered arm once before it compares any two, the first of them first. An arm that was never
played, or is all but forgotten, has no finite index; the auxiliary value is then the largest that an arm played once
could have. Equal indices go to the first arm.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo
from driftformer.agents.ridge import precise
from driftformer.problem import Traits, place_of


@dataclass
class Counts:
    plays: Tensor  # [B, A] N_k, perhaps discounted
    paid: Tensor  # [B, A] the sum of an arm's rewards, weighted alike
    rounds: Tensor  # [B] the sum of all plays


@dataclass(frozen=True)
class IndexInfo(ValueInfo):
    """An index for each arm, infinite where it must be played first, and the largest that a played one can have."""

    most: Tensor  # [B]

    @property
    def auxiliary_value(self) -> Tensor:
        return torch.minimum(super().auxiliary_value, self.most)


def no_features(traits: Traits) -> str | None:
    """Why an agent that counts plays cannot play such a problem; None if it can."""
    return None if traits.one_hot else "it counts how often each arm pays, so arms must have no features"


def begin(shape: ProblemShape) -> Counts:
    shape = precise(shape)
    plays = torch.zeros(shape.batch, shape.arms, device=shape.device, dtype=shape.dtype)
    return Counts(plays, torch.zeros_like(plays), torch.zeros_like(plays[:, 0]))


def count(counts: Counts, arm: Tensor, reward: Tensor) -> Counts:
    """Take in the reward of one arm, in place."""
    add(counts.plays, arm, torch.ones_like(counts.rounds))
    add(counts.paid, arm, reward.to(counts.paid.dtype))
    counts.rounds.add_(1)
    return counts


def add(values: Tensor, arm: Tensor, amount: Tensor) -> None:
    """Add an amount `[B]` to the entry of each problem's arm in `[B, A]`, in place."""
    values.view(-1).index_add_(0, place_of(arm, values.shape[1]), amount)


def mean(counts: Counts) -> Tensor:
    """What each arm has paid on average, `[B, A]`; 0 where it was never played."""
    return counts.paid / counts.plays.clamp_min(torch.finfo(counts.plays.dtype).tiny)


def log_rounds(rounds: Tensor) -> Tensor:
    """ln t, `[B]`, of at least two rounds: with fewer, or where old ones fade fast, an index would have no width."""
    return rounds.clamp_min(2).log_()
