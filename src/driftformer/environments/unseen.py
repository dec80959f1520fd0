"""Drifts that no shipped policy was trained on: how far does what it has learned carry?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.environments.drift import Effect, Start, random_subset
from driftformer.errors import InputError, require_count, require_real
from driftformer.randomness import Stream


@dataclass(frozen=True)
class Flips:
    """Reward and noise change their sign at a few random rounds of each problem: the best arm is suddenly the worst."""

    changes: int = 4
    piecewise_constant: ClassVar[bool] = True
    abrupt: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_count("changes", self.changes, 0)

    def start(self, start: Start) -> Tensor:
        if self.changes > start.horizon - 1:
            raise InputError(
                f"changes is {self.changes}; at most horizon - 1 = {start.horizon - 1} rounds can bring one"
            )
        return random_subset(self.changes, start.horizon - 1, start) + 2  # [B, J] among rounds 2..T

    def at(self, t: int, effect: Effect, memory: Tensor, rng: Stream) -> tuple[Effect, Tensor]:
        sign = 1.0 - 2.0 * ((memory <= t).sum(dim=1) % 2).to(effect.scale.dtype)  # [B]
        return replace(effect, scale=effect.scale * sign, shift=effect.shift * sign), memory


@dataclass(frozen=True)
class Rising:
    """One arm of each problem gains steadily, by `height` over all rounds, while the others stay where they are.

    w* moves along the direction that only this arm, of those offered in the first round, can see. With more arms than
    dimensions there is none, and the others move as little as possible; where arms are resampled, whatever looks like
    the rising one gains.
    """

    height: float = 8.0
    piecewise_constant: ClassVar[bool] = False
    abrupt: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_real("height", self.height)

    def start(self, start: Start) -> tuple[Tensor, int]:
        batch, arms, _ = start.action_set.shape
        which = (start.rng.uniform() * arms).long().clamp(max=arms - 1)  # [B]
        inverses = torch.linalg.pinv(start.action_set)  # [B, d, A]
        direction = inverses[torch.arange(batch, device=which.device), :, which]  # [B, d]
        gain = (start.action_set[torch.arange(batch, device=which.device), which] * direction).sum(1, keepdim=True)
        return direction / gain.clamp(min=1e-6), start.horizon

    def at(self, t: int, effect: Effect, memory: tuple[Tensor, int], rng: Stream) -> tuple[Effect, tuple[Tensor, int]]:
        direction, horizon = memory
        height = self.height * (t - 1) / max(horizon - 1, 1)
        return replace(effect, w=effect.w + height * direction), memory


@dataclass(frozen=True)
class Chirp:
    """Multiplies reward and noise by a cosine whose frequency goes steadily from `first` to `last`."""

    first: float = 0.005
    last: float = 0.03
    piecewise_constant: ClassVar[bool] = True
    abrupt: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_real("first", self.first)
        require_real("last", self.last)

    def start(self, start: Start) -> float:
        return (self.last - self.first) / (2 * start.horizon)

    def at(self, t: int, effect: Effect, memory: float, rng: Stream) -> tuple[Effect, float]:
        factor = math.cos(2 * math.pi * (self.first + memory * t) * t)
        return replace(effect, scale=effect.scale * factor, shift=effect.shift * factor), memory
