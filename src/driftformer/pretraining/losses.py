"""What a training descends on: minus the log-likelihood of labels, then the policy's own dynamic regret.

Labels of the optimal arm teach posterior sampling at best; what is left to the limit is exploration, and that can only
be learned from consequences. Each problem is played several times with the same chance. One step then follows the
gradient of Σ_t Σ_k π_t(k)·suboptimality_t(k), the exact expected regret of each round on the histories that were seen,
and a score-function term: log π_t(a_t) times the regret still to come, less its mean over the rollouts of the same
problem, scaled to unit spread in every round.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

Average = Callable[[Tensor], Tensor]
"""A tensor's mean over all processes."""


def label_loss(
    model: Callable[..., Tensor],
    features: Tensor,
    arms: Tensor,
    rewards: Tensor,
    labels: Tensor,
    offered: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Minus the log-likelihood of the labels, per round (sup-train-goal)."""
    logits = model(features, arms, rewards).float()
    if offered is not None:
        logits = logits.masked_fill(~offered, -torch.inf)
    loss = functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
    return loss, loss


def tuning_loss(
    rollouts: int,
    future: float,
    average: Average,
    model: Callable[..., Tensor],
    features: Tensor,
    arms: Tensor,
    rewards: Tensor,
    suboptimality: Tensor,
    offered: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Regret, as `regret_loss` has it."""
    logits = model(features, arms, rewards).float()
    if offered is not None:
        logits = logits.masked_fill(~offered, -1e9)  # finite: such an arm's suboptimality is 0, and 0·∞ is no number
    return regret_loss(logits, arms, suboptimality, rollouts, future, average)


def regret_loss(
    logits: Tensor, arms: Tensor, suboptimality: Tensor, count: int, future: float, average: Average
) -> tuple[Tensor, Tensor]:
    """What to descend on, and the expected regret of a trajectory in units of the uniform policy's per round."""
    log_policy = logits.float().log_softmax(dim=2)
    expected = (log_policy.exp() * suboptimality).sum(dim=2)  # [R·P, T]
    cost = advantages(expected.detach(), count, average)
    taken = log_policy.gather(2, arms.unsqueeze(2)).squeeze(2)
    return expected.mean() + future * (cost * taken).mean(), expected.detach().mean()


def advantages(expected: Tensor, count: int, average: Average) -> Tensor:
    """How much more than usual is still to come after each round, `[R·P, T]`, with unit spread in every round."""
    to_come = expected.flip(1).cumsum(1).flip(1) - expected  # [R·P, T] rounds after t
    grouped = to_come.view(count, -1, to_come.shape[1])  # [R, P, T]
    centred = (grouped - grouped.mean(dim=0)).flatten(0, 1)
    spread = average(centred.square().mean(dim=0, keepdim=True)).sqrt()
    return centred / spread.clamp(min=1e-6)
