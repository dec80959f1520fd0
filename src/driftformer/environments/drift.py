"""How a linear bandit changes over time.

In round t the reward of arm a is scale_t·(⟨a, w_t⟩ + ε) + shift_t. A drift says what scale_t, shift_t and w_t are: it
takes the `Effect` so far (at first w* as drawn, scale 1, shift 0) and returns a changed one, so drifts compose: in
`Compose((Affine(…), Elevated(…)))` the second acts on what the first returned. Rounds count from 1 and are visited in
order, which lets a drift carry a memory of constant size (a random walk's position) instead of a whole path.
"""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, cast

import torch
from torch import Tensor

from driftformer.environments import prior
from driftformer.errors import InputError, require_count, require_real
from driftformer.randomness import Stream


@dataclass(frozen=True)
class Effect:
    """The state of the world's rewards in one round."""

    w: Tensor  # [B, d]
    scale: Tensor  # [B]
    shift: Tensor  # [B]
    redrawn: Tensor  # [B] bool: w is a fresh draw from the prior since the round before


@dataclass(frozen=True)
class Start:
    """What a drift is told before round 1."""

    w: Tensor  # [B, d] w* as drawn
    horizon: int
    prior: prior.PriorName
    rng: Stream


class Drift(Protocol):
    """A way to change. Add one by writing these two methods; a frozen dataclass shows its fields in every config."""

    @property
    def piecewise_constant(self) -> bool:
        """Whether w_t only ever stays the same or is redrawn from the prior (and `redrawn` says so)."""
        ...

    @property
    def abrupt(self) -> bool:
        """Whether w_t, scale_t and shift_t change at single rounds only, if at all."""
        ...

    def start(self, start: Start) -> Any:
        """Draw what this drift needs to know for all rounds; its memory."""
        ...

    def at(self, t: int, effect: Effect, memory: Any, rng: Stream) -> tuple[Effect, Any]:
        """The effect in round t, and the memory for round t+1."""
        ...


@dataclass(frozen=True)
class Stationary:
    """Nothing changes."""

    piecewise_constant: ClassVar[bool] = True
    abrupt: ClassVar[bool] = True

    def start(self, start: Start) -> None:
        return None

    def at(self, t: int, effect: Effect, memory: None, rng: Stream) -> tuple[Effect, None]:
        return effect, None


@dataclass(frozen=True)
class Compose:
    """One drift after another."""

    drifts: tuple[Drift, ...]

    @property
    def piecewise_constant(self) -> bool:
        return all(drift.piecewise_constant for drift in self.drifts)

    @property
    def abrupt(self) -> bool:
        return all(drift.abrupt for drift in self.drifts)

    def start(self, start: Start) -> tuple[Any, ...]:
        return tuple(drift.start(start) for drift in self.drifts)

    def at(self, t: int, effect: Effect, memory: tuple[Any, ...], rng: Stream) -> tuple[Effect, tuple[Any, ...]]:
        memories = []
        for drift, own in zip(self.drifts, memory, strict=True):
            effect, own = drift.at(t, effect, own, rng)
            memories.append(own)
        return effect, tuple(memories)


@dataclass(frozen=True)
class Affine:
    """Maps every reward x to scale·x + shift: a change of units that does not change over time."""

    scale: float
    shift: float
    piecewise_constant: ClassVar[bool] = True
    abrupt: ClassVar[bool] = True

    def start(self, start: Start) -> None:
        return None

    def at(self, t: int, effect: Effect, memory: None, rng: Stream) -> tuple[Effect, None]:
        return replace(effect, scale=effect.scale * self.scale, shift=effect.shift * self.scale + self.shift), None


@dataclass(frozen=True)
class Elevated:
    """Adds `lift` to every reward inside the windows [first, last], both ends included (the Low environment)."""

    windows: tuple[tuple[int, int], ...]
    lift: float
    piecewise_constant: ClassVar[bool] = True
    abrupt: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_real("lift", self.lift)
        for first, last in self.windows:
            require_count("windows' first round", first)
            require_count("windows' last round", last, first)

    def start(self, start: Start) -> None:
        return None

    def at(self, t: int, effect: Effect, memory: None, rng: Stream) -> tuple[Effect, None]:
        inside = any(first <= t <= last for first, last in self.windows)
        return (replace(effect, shift=effect.shift + self.lift) if inside else effect), None


@dataclass(frozen=True)
class Cosine:
    """Multiplies reward and noise by cos(2πbt + phase) (the High environment)."""

    b: float
    phase: float = 0.0
    piecewise_constant: ClassVar[bool] = True
    abrupt: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_real("b", self.b)
        require_real("phase", self.phase)

    def start(self, start: Start) -> None:
        return None

    def at(self, t: int, effect: Effect, memory: None, rng: Stream) -> tuple[Effect, None]:
        factor = math.cos(2 * math.pi * self.b * t + self.phase)
        if abs(factor) < 1e-12:  # cos(π/2) is 6e-17 in floating point: dividing by it would reveal the reward
            factor = 0.0
        return replace(effect, scale=effect.scale * factor, shift=effect.shift * factor), None


@dataclass(frozen=True)
class Jumps:
    """Redraws w* from the prior at some rounds: `times`, the same in all problems, or `changes` random ones in each."""

    changes: int = 4
    times: tuple[int, ...] = ()
    piecewise_constant: ClassVar[bool] = True
    abrupt: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_count("changes", self.changes, 0)
        for time in self.times:
            require_count("times (a change)", time, 2)
        if len(set(self.times)) != len(self.times):
            raise InputError(f"times is {self.times}; give each round of a change once")

    def start(self, start: Start) -> tuple[Tensor, Tensor]:
        batch, dim = start.w.shape
        if self.times:
            times = torch.tensor(sorted(self.times), device=start.w.device).expand(batch, -1)  # [B, J]
        else:
            if self.changes > start.horizon - 1:
                raise InputError(
                    f"changes is {self.changes}; at most horizon - 1 = {start.horizon - 1} rounds can bring a change"
                )
            times = _random_subset(self.changes, start.horizon - 1, start) + 2  # [B, J] among rounds 2..T
        fresh = [prior.draw(start.prior, dim, start.rng) for _ in range(times.shape[1])]
        epochs = torch.stack([start.w, *fresh], dim=1)  # [B, J+1, d]
        return times, epochs

    def at(
        self, t: int, effect: Effect, memory: tuple[Tensor, Tensor], rng: Stream
    ) -> tuple[Effect, tuple[Tensor, Tensor]]:
        times, epochs = memory
        epoch = (times <= t).sum(dim=1)  # [B]
        w = epochs[torch.arange(len(epoch), device=epoch.device), epoch]
        return replace(effect, w=w, redrawn=effect.redrawn | (times == t).any(dim=1)), memory


def _random_subset(size: int, total: int, start: Start) -> Tensor:
    """A uniformly random subset of 0..total-1 for each problem, `[B, size]`, in any order (Floyd's algorithm)."""
    chosen = torch.full((len(start.w), size), -1, dtype=torch.long, device=start.w.device)
    for place, last in enumerate(range(total - size, total)):
        candidate = (start.rng.uniform().double() * (last + 1)).long()  # [B] in 0..last
        taken = (chosen == candidate.unsqueeze(1)).any(dim=1)
        chosen[:, place] = torch.where(taken, last, candidate)
    return chosen


@dataclass(frozen=True)
class RandomWalk:
    """w* takes a step of fixed length in a random direction each round; all steps together have length `budget`."""

    budget: float
    piecewise_constant: ClassVar[bool] = False
    abrupt: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_real("budget", self.budget, 0.0)

    def start(self, start: Start) -> tuple[Tensor, float]:
        return torch.zeros_like(start.w), self.budget / max(start.horizon - 1, 1)

    def at(
        self, t: int, effect: Effect, memory: tuple[Tensor, float], rng: Stream
    ) -> tuple[Effect, tuple[Tensor, float]]:
        displacement, length = memory
        if t > 1:
            direction = rng.normal(displacement.shape[1])  # [B, d]
            displacement = displacement + direction * (length / direction.norm(dim=1, keepdim=True))
        return replace(effect, w=effect.w + displacement), (displacement, length)


@dataclass(frozen=True)
class Rotation:
    """w* turns at constant speed in a random plane through it; its path over all rounds has length `budget`."""

    budget: float
    piecewise_constant: ClassVar[bool] = False
    abrupt: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_real("budget", self.budget, 0.0)

    def start(self, start: Start) -> tuple[Tensor, Tensor, Tensor]:
        if start.w.shape[1] < 2:
            raise InputError(f"dim is {start.w.shape[1]}; a rotation needs a plane, so at least 2")
        length = start.w.norm(dim=1, keepdim=True)  # [B, 1]
        chord = self.budget / max(start.horizon - 1, 1) / (2 * length)
        if bool((chord > 1).any()):
            raise InputError(
                f"budget is {self.budget}; w* of length {float(length.min()):.3g} cannot turn that far in "
                f"{start.horizon} rounds: at most {float(2 * length.min()) * max(start.horizon - 1, 1):.3g}"
            )
        first = start.w / length
        second = start.rng.normal(start.w.shape[1])
        second = second - (second * first).sum(1, keepdim=True) * first
        return first, second / second.norm(dim=1, keepdim=True), 2 * torch.asin(chord)

    def at(
        self, t: int, effect: Effect, memory: tuple[Tensor, Tensor, Tensor], rng: Stream
    ) -> tuple[Effect, tuple[Tensor, Tensor, Tensor]]:
        first, second, speed = memory  # [B, d], [B, d], [B, 1]
        angle = (t - 1) * speed
        along, across = (effect.w * first).sum(1, keepdim=True), (effect.w * second).sum(1, keepdim=True)  # [B, 1]
        turned_first = along * (angle.cos() - 1) - across * angle.sin()
        turned_second = along * angle.sin() + across * (angle.cos() - 1)
        return replace(effect, w=effect.w + first * turned_first + second * turned_second), memory


@dataclass(frozen=True)
class Seasonal:
    """w_t is a mixture of one w* for each season, whose weight (1 + cos(2π(t/period − k/K)))/K comes and goes."""

    period: float
    seasons: int = 2
    piecewise_constant: ClassVar[bool] = False
    abrupt: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_real("period", self.period, 0.0, above=True)
        require_count("seasons", self.seasons, 2)

    def start(self, start: Start) -> Tensor:
        others = [prior.draw(start.prior, start.w.shape[1], start.rng) for _ in range(self.seasons - 1)]
        return torch.stack(others, dim=1)  # [B, K-1, d]; the first season is w* itself

    def at(self, t: int, effect: Effect, memory: Tensor, rng: Stream) -> tuple[Effect, Tensor]:
        phases = [2 * math.pi * (t / self.period - k / self.seasons) for k in range(self.seasons)]
        first, *rest = [(1 + math.cos(phase)) / self.seasons for phase in phases]
        w = effect.w * first
        for k, weight in enumerate(rest):
            w = w + memory[:, k] * weight
        return replace(effect, w=w), memory


@dataclass(frozen=True)
class FunctionDrift:
    """A user's own function: `function(t, w) -> w_t`, tensors `[B, d]`, with w the parameter drawn at the start."""

    function: Callable[[int, Tensor], Tensor]
    piecewise_constant: ClassVar[bool] = False
    abrupt: ClassVar[bool] = False

    def start(self, start: Start) -> None:
        return None

    def at(self, t: int, effect: Effect, memory: None, rng: Stream) -> tuple[Effect, None]:
        w = self.function(t, effect.w)
        name = getattr(self.function, "__name__", type(self.function).__name__)
        if not isinstance(w, Tensor) or w.shape != effect.w.shape:
            got = f"a tensor {list(w.shape)}" if isinstance(w, Tensor) else f"{type(w).__name__}"
            raise InputError(f"drift: {name}({t}, w) returned {got}; return w_t as a tensor {list(effect.w.shape)}")
        if not bool(w.isfinite().all()):
            raise InputError(f"drift: {name}({t}, w) returned NaN or infinite numbers; return finite ones")
        return replace(effect, w=w), None


def as_drift(drift: Drift | Callable[[int, Tensor], Tensor]) -> Drift:
    """A `Drift` as it is; a plain function as one."""
    if hasattr(drift, "start") and hasattr(drift, "at"):
        return cast(Drift, drift)
    if callable(drift):
        return FunctionDrift(drift)
    raise InputError(f"drift is {drift!r}; give a Drift object or a function f(t, w) -> w_t")


def config(value: Any) -> Any:
    """A drift as plain JSON data; a function is known by its name and a fingerprint of its code."""
    if isinstance(value, tuple):
        return [config(item) for item in value]
    if dataclasses.is_dataclass(value):
        fields = {field.name: config(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"kind": type(value).__name__, **fields}
    if callable(value) and hasattr(value, "__code__"):
        code = value.__code__
        fingerprint = zlib.crc32(repr((code.co_code, code.co_names, _constants(code.co_consts))).encode())
        return f"{value.__module__}.{value.__qualname__}#{fingerprint:08x}"
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _constants(constants: tuple[Any, ...]) -> list[Any]:
    """A function's constants without the addresses of nested code."""
    return [constant.co_code if hasattr(constant, "co_code") else repr(constant) for constant in constants]
