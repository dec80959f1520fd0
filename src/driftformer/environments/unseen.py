"""Drifts that no shipped policy was trained on: how far does what it has learned carry?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.environments.drift import Effect, Start, random_times, scaled
from driftformer.errors import require_count, require_real
from driftformer.problem import pick
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
        return random_times(self.changes, start)  # [B, J]

    def at(self, t: int, effect: Effect, memory: Tensor, rng: Stream) -> tuple[Effect, Tensor]:
        sign = 1.0 - 2.0 * ((memory <= t).sum(dim=1) % 2).to(effect.scale.dtype)  # [B]
        return scaled(effect, sign), memory


@dataclass(frozen=True)
class Rising:
    """One arm of each problem gains steadily, by `height` over all rounds, while the others stay where they are.

    w* moves along the direction that only this arm, of those offered in the first round, can see. With more arms than
    dimensions there is none, and the others move as little as possible; where arms are resampled, whatever looks like
    the rising one gains.
    """

    height: float = 8.0

    def __post_init__(self) -> None:
        require_real("height", self.height)

    def start(self, start: Start) -> tuple[Tensor, int]:
        arms = start.action_set.shape[1]
        which = (start.rng.uniform() * arms).long().clamp(max=arms - 1)  # [B]
        direction = pick(torch.linalg.pinv(start.action_set).mT, which)  # [B, d]
        gain = (pick(start.action_set, which) * direction).sum(1, keepdim=True)
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

    def __post_init__(self) -> None:
        require_real("first", self.first)
        require_real("last", self.last)

    def start(self, start: Start) -> float:
        return (self.last - self.first) / (2 * start.horizon)

    def at(self, t: int, effect: Effect, memory: float, rng: Stream) -> tuple[Effect, float]:
        factor = math.cos(2 * math.pi * (self.first + memory * t) * t)
        return scaled(effect, factor), memory
