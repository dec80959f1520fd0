"""What happened over all rounds of a batch of problems: what was on offer, what was played, what it brought."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape
from driftformer.problem import Observation, Truth


@dataclass(frozen=True)
class Laid:
    """What was on offer in every round. Fixed arms are one row of memory seen T times."""

    features: Tensor  # [B, T, A, d]
    values: Tensor  # [B, T, A] what each arm was worth
    offered: Tensor | None  # [B, T, A] bool
    observations: tuple[Observation, ...]  # of each round, as agents saw them
    truths: tuple[Truth, ...]  # of each round, for privileged agents only

    @property
    def suboptimality(self) -> Tensor:
        """That of every arm, `[B, T, A]`; 0 for arms that were not on offer."""
        if self.offered is None:
            return self.values.amax(dim=2, keepdim=True) - self.values
        best = self.values.masked_fill(~self.offered, -torch.inf).amax(dim=2, keepdim=True)
        return (best - self.values) * self.offered

    @property
    def best(self) -> Tensor:
        """The optimal arm of every round, `[B, T]`."""
        values = self.values if self.offered is None else self.values.masked_fill(~self.offered, -torch.inf)
        return values.argmax(dim=2)

    @property
    def shape(self) -> ProblemShape:
        batch, horizon, arms, dim = self.features.shape
        return ProblemShape(batch, horizon, arms, dim, self.values.device, self.values.dtype)


@dataclass(frozen=True)
class Trajectories:
    """Everything that was done, for those who ask for it: it grows with batch times horizon."""

    arms: Tensor  # [B, T] whole numbers
    rewards: Tensor  # [B, T]
    suboptimality: Tensor  # [B, T]
    auxiliary_values: Tensor | None = None  # [B, T]
    events: dict[str, Tensor] = field(default_factory=dict)  # [B, T] each: what the agent tells of every round
    laid: Laid | None = None

    def tensors(self) -> dict[str, Tensor]:
        """What is stored, by name."""
        own = {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
        return own | self.events

    @property
    def on_offer(self) -> Laid:
        """What was on offer; only rollouts for evaluations do not keep it."""
        assert self.laid is not None
        return self.laid


def played(laid: Laid, arms: Tensor, rewards: Tensor) -> Trajectories:
    """Trajectories of some arms `[B, T]` and what they brought."""
    suboptimality = laid.suboptimality.gather(2, arms.unsqueeze(2)).squeeze(2)
    return Trajectories(arms, rewards, suboptimality, laid=laid)
