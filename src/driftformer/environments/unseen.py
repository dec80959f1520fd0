"""Drifts to test policies with. `Wave`, `Outage` and `Bursts` are in no policy's training: how far does what it has
learned carry?
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from driftformer.environments.drift import Effect, Start, Triple, no_memory, random_times, scaled
from driftformer.errors import require_choice, require_count, require_real
from driftformer.problem import pick
from driftformer.randomness import Stream

WaveShape = Literal["sawtooth", "square", "beats"]


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


def _seen_by(action_set: Tensor, arm: Tensor) -> Tensor:
    """A direction `[B, d]` along which w* moves for one arm by 1 and for the others not at all, if there is one."""
    direction = pick(torch.linalg.pinv(action_set).mT, arm)
    gain = (pick(action_set, arm) * direction).sum(1, keepdim=True)
    return direction / gain.clamp(min=1e-6)


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
        return _seen_by(start.action_set, which), start.horizon

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


@dataclass(frozen=True)
class Wave:
    """Multiplies reward and noise by a wave of another shape than a cosine."""

    shape: WaveShape = "sawtooth"
    b: float = 0.018
    piecewise_constant: ClassVar[bool] = True
    start = staticmethod(no_memory)

    def __post_init__(self) -> None:
        require_choice("shape", self.shape, get_args(WaveShape))
        require_real("b", self.b)

    def at(self, t: int, effect: Effect, memory: None, rng: Stream) -> tuple[Effect, None]:
        turns = self.b * t
        if self.shape == "sawtooth":
            factor = 1 - 2 * (turns % 1)
        elif self.shape == "square":
            factor = 1.0 if turns % 1 < 0.5 else -1.0
        else:
            factor = math.cos(2 * math.pi * turns) * math.cos(2 * math.pi * 0.23 * turns)
        return scaled(effect, factor), None


@dataclass(frozen=True)
class Outage:
    """The arm that is best at first pays like the worst one for a while, at a time that differs between problems."""

    share: float = 0.25
    abrupt: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_real("share", self.share, 0.0, most=1.0)

    def start(self, start: Start) -> tuple[Tensor, Tensor, Tensor]:
        values = torch.bmm(start.action_set, start.w.unsqueeze(2)).squeeze(2)  # [B, A]
        fall = (values.amax(1) - values.amin(1)).unsqueeze(1) * _seen_by(start.action_set, values.argmax(1))
        begin = (0.2 + (0.8 - self.share) * start.rng.uniform()) * start.horizon
        return fall, begin, begin + self.share * start.horizon

    def at(self, t: int, effect: Effect, memory: Triple, rng: Stream) -> tuple[Effect, Triple]:
        fall, begin, end = memory
        out = ((begin < t) & (t <= end)).unsqueeze(1)
        return replace(effect, w=effect.w - fall * out), memory


@dataclass(frozen=True)
class Bursts:
    """Every other stretch of rounds has noise that is many times as large; what arms are worth stays."""

    factor: float = 4.0
    length: int = 25
    abrupt: ClassVar[bool] = True
    start = staticmethod(no_memory)

    def __post_init__(self) -> None:
        require_real("factor", self.factor, 0.0, above=True)
        require_count("length", self.length)

    def at(self, t: int, effect: Effect, memory: None, rng: Stream) -> tuple[Effect, None]:
        if (t - 1) // self.length % 2 == 0:
            return effect, None
        return replace(effect, w=effect.w / self.factor, scale=effect.scale * self.factor), None
