"""Drifts whose parameters differ from problem to problem: the worlds that a policy is pretrained on.

Each draws its parameters for every problem at the start. `OneOf` gives every problem a drift of its own out of several.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from driftformer.environments.drift import Drift, Effect, Start, Triple, Walked, scaled, walk
from driftformer.errors import InputError, require_real
from driftformer.randomness import Stream

Range = tuple[float, float]
Pair = tuple[Tensor, Tensor]


def _require_range(field: str, given: Range, least: float = -math.inf) -> None:
    for end in given:
        require_real(field, end, least)
    if given[0] > given[1]:
        raise InputError(f"{field} is {given}; give the lower end first")


def _within(given: Range, uniform: Tensor) -> Tensor:
    return given[0] + (given[1] - given[0]) * uniform


def _turn(t: int, effect: Effect, memory: Pair, rng: Stream) -> tuple[Effect, Pair]:
    speed, phase = memory  # [B] each
    return scaled(effect, torch.cos(speed * t + phase)), memory


@dataclass(frozen=True)
class CosineAmong:
    """Multiplies reward and noise by cos(2πbt + phase) with b one of a few values, each for equally many problems."""

    frequencies: tuple[float, ...] = (0.005, 0.01, 0.015, 0.02)
    phase: float = 0.0
    piecewise_constant: ClassVar[bool] = True
    at = staticmethod(_turn)

    def __post_init__(self) -> None:
        for b in self.frequencies:
            require_real("frequencies", b)

    def start(self, start: Start) -> Pair:
        values = torch.tensor(self.frequencies, device=start.w.device, dtype=start.w.dtype)
        b = values[start.place % len(self.frequencies)]
        return 2 * math.pi * b, torch.full_like(b, self.phase)


@dataclass(frozen=True)
class CosineWithin:
    """Multiplies reward and noise by cos(2πbt + phase) with b and phase anywhere in a range.

    A share of the problems has phase 0, as the High environment does.
    """

    frequencies: Range = (0.002, 0.035)
    phases: Range = (-math.pi, math.pi)
    in_phase: float = 0.5
    piecewise_constant: ClassVar[bool] = True
    at = staticmethod(_turn)

    def __post_init__(self) -> None:
        _require_range("frequencies", self.frequencies)
        _require_range("phases", self.phases)
        require_real("in_phase", self.in_phase, 0.0)

    def start(self, start: Start) -> Pair:
        b = _within(self.frequencies, start.rng.uniform())
        phase = _within(self.phases, start.rng.uniform())
        return 2 * math.pi * b, phase.masked_fill(start.rng.uniform() < self.in_phase, 0.0)


@dataclass(frozen=True)
class Units:
    """Rewards in other units: scale·(⟨a, signal·w⟩ + ε) + shift. A small signal is a loud noise."""

    scale: Range = (1 / 16, 1.5)
    shift: Range = (-0.5, 1.0)
    signal: Range = (0.4, 3.0)
    abrupt: ClassVar[bool] = True  # but not piecewise constant: w is no draw from the prior

    def __post_init__(self) -> None:
        _require_range("scale", self.scale, 1e-6)
        _require_range("shift", self.shift)
        _require_range("signal", self.signal, 1e-6)

    def start(self, start: Start) -> Triple:
        def log_uniform(given: Range) -> Tensor:
            return _within((math.log(given[0]), math.log(given[1])), start.rng.uniform()).exp()

        return log_uniform(self.scale), _within(self.shift, start.rng.uniform()), log_uniform(self.signal)

    def at(self, t: int, effect: Effect, memory: Triple, rng: Stream) -> tuple[Effect, Triple]:
        scale, shift, signal = memory  # [B] each
        w = effect.w * signal.unsqueeze(1)
        return replace(effect, w=w, scale=effect.scale * scale, shift=effect.shift * scale + shift), memory


@dataclass(frozen=True)
class WalkWithin:
    """A random walk of w* whose whole length differs from problem to problem."""

    budget: Range = (0.5, 20.0)
    at = staticmethod(walk)

    def __post_init__(self) -> None:
        _require_range("budget", self.budget, 0.0)

    def start(self, start: Start) -> Walked:
        length = _within(self.budget, start.rng.uniform()) / max(start.horizon - 1, 1)
        return torch.zeros_like(start.w), length.unsqueeze(1)


@dataclass(frozen=True)
class OneOf:
    """Every problem follows one of several drifts, drawn by weight."""

    drifts: tuple[Drift, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        for weight in self.weights:
            require_real("weights", weight, 0.0)
        if len(self.weights) != len(self.drifts) or sum(self.weights) <= 0:
            raise InputError(f"weights is {self.weights}; give one for each of the {len(self.drifts)} drifts")

    def start(self, start: Start) -> tuple[Tensor, tuple[Any, ...]]:
        ends = torch.tensor(self.weights, dtype=torch.double).cumsum(0)
        ends = (ends[:-1] / ends[-1]).to(start.w.device, start.w.dtype)
        choice = (start.rng.uniform().unsqueeze(1) >= ends).sum(dim=1)  # [B]
        return choice, tuple(drift.start(start) for drift in self.drifts)

    def at(self, t: int, effect: Effect, memory: Any, rng: Stream) -> tuple[Effect, Any]:
        choice, memories = memory
        chosen, following = effect, []
        for place, (drift, own) in enumerate(zip(self.drifts, memories, strict=True)):
            candidate, own = drift.at(t, effect, own, rng)
            following.append(own)
            if candidate is not effect:
                chosen = _where(choice == place, candidate, chosen)
        return chosen, (choice, tuple(following))


def _where(mine: Tensor, candidate: Effect, other: Effect) -> Effect:
    """Row by row one effect or the other; what both share is left alone."""

    def pick(new: Tensor, old: Tensor) -> Tensor:
        return old if new is old else torch.where(mine if new.ndim == 1 else mine.unsqueeze(1), new, old)

    return Effect(*(pick(new, getattr(other, name)) for name, new in vars(candidate).items()))
