"""MASTER's rounds where problems have episodes of H steps: a round is an episode, its reward the return over H.

The instance that is active in an episode is taken out of the bank at its first step, plays and learns on its own, and
is put back after its last. r̃ is then the instance's optimistic value of the first state, over H.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from driftformer.agents.master import Happened, MasterInfo
    from driftformer.agents.schedule import Schedule


@dataclass(frozen=True)
class Episode:
    """An episode in play."""

    schedule: Schedule
    rows: Tensor  # [B] where the active instances stand in the bank
    instance: Any  # their states, [B, …]
    hope: Tensor  # [B] r̃ of the first step
    earned: Tensor  # [B] the sum of rewards so far


def take_step(episode: Episode | None, info: MasterInfo, instance: Any, reward: Tensor) -> Episode:
    """The episode after a step, in which the active instances have become `instance`."""
    if episode is None:
        return Episode(info.schedule, info.rows, instance, info.auxiliary_value.double(), reward.double())
    return replace(episode, instance=instance, earned=episode.earned + reward.double())


def in_between(happened: Happened, info: MasterInfo, block: Tensor) -> Happened:
    """What happened in a step after which no tests are held; `block` `[B]`: it is the first of a block."""
    return replace(
        happened,
        order=info.schedule.active,
        block=block,
        failed=torch.zeros_like(happened.failed),
        ratios=torch.full_like(happened.ratios, -torch.inf),
    )
