"""How a linear bandit changes over time.

In round t the reward of arm a is scale_t·(⟨a, w_t⟩ + ε) + shift_t. A drift says what scale_t, shift_t and w_t are: it
takes the `Effect` so far (at first w* as drawn, scale 1, shift 0) and returns a changed one, so drifts compose: in
`Compose((Affine(…), Elevated(…)))` the second acts on what the first returned. Rounds count from 1 and are visited in
order, which lets a drift carry a memory of constant size (a random walk's position) instead of a whole path.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, cast

import torch
from torch import Tensor

from driftformer.errors import InputError, require_count, require_real, shown
from driftformer.problem import pick
from driftformer.randomness import Stream

PriorName = Literal["uniform", "normal", "sphere"]


def draw(prior: PriorName, dim: int, rng: Stream) -> Tensor:
    """One w* for every problem, `[B, d]`: Unif[0,1]^d (the paper's), N(0, I), or uniform on the unit sphere."""
    if prior == "uniform":
        return rng.uniform(dim)
    w = rng.normal(dim)
    return w if prior == "normal" else w / w.norm(dim=1, keepdim=True)


def moments(prior: PriorName, dim: int) -> tuple[float, float]:
    """Mean and variance of each coordinate of w*."""
    return {"uniform": (0.5, 1 / 12), "normal": (0.0, 1.0), "sphere": (0.0, 1 / dim)}[prior]


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
    prior: PriorName
    rng: Stream
    action_set: Tensor  # [B, A, d] of the first round
    place: Tensor  # [B] of each problem in its chunk


class Drift(Protocol):
    """A way to change: two methods, best on a frozen dataclass, whose fields then stand in every config.

    A drift may also say what privileged agents want to know, as class attributes that are False where they are missing:
    `piecewise_constant` (w_t only ever stays the same or is redrawn from the prior, and `redrawn` says so) and `abrupt`
    (w_t, scale_t and shift_t change at single rounds only, if at all).
    """

    def start(self, start: Start) -> Any:
        """Draw what this drift needs to know for all rounds; its memory."""

    def at(self, t: int, effect: Effect, memory: Any, rng: Stream) -> tuple[Effect, Any]:
        """The effect in round t, and the memory for round t+1."""


Triple = tuple[Tensor, Tensor, Tensor]


def no_memory(start: Start) -> None:
    """The `start` of a drift that knows all it needs."""


def scaled(effect: Effect, factor: Tensor | float) -> Effect:
    """Reward and noise times a factor, a number or `[B]`."""
    return replace(effect, scale=effect.scale * factor, shift=effect.shift * factor)


def declares(drift: Drift, attribute: Literal["piecewise_constant", "abrupt"]) -> bool:
    return bool(getattr(drift, attribute, False))


@dataclass(frozen=True)
class Stationary:
    """Nothing changes."""

    piecewise_constant: ClassVar[bool] = True
    abrupt: ClassVar[bool] = True
    start = staticmethod(no_memory)

    def at(self, t: int, effect: Effect, memory: None, rng: Stream) -> tuple[Effect, None]:
        return effect, None


@dataclass(frozen=True)
class Compose:
    """One drift after another."""

    drifts: tuple[Drift, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "drifts", tuple(as_drift(drift) for drift in self.drifts))

    @property
    def piecewise_constant(self) -> bool:
        jumps = sum(isinstance(drift, Jumps) for drift in self.drifts)  # two of them do not give a draw from the prior
        return jumps <= 1 and all(declares(drift, "piecewise_constant") for drift in self.drifts)

    @property
    def abrupt(self) -> bool:
        return all(declares(drift, "abrupt") for drift in self.drifts)

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
    start = staticmethod(no_memory)

    def at(self, t: int, effect: Effect, memory: None, rng: Stream) -> tuple[Effect, None]:
        return replace(effect, scale=effect.scale * self.scale, shift=effect.shift * self.scale + self.shift), None


@dataclass(frozen=True)
class Elevated:
    """Adds `lift` to every reward inside the windows [first, last], both ends included (the Low environment)."""

    windows: tuple[tuple[int, int], ...]
    lift: float
    piecewise_constant: ClassVar[bool] = True
    abrupt: ClassVar[bool] = True
    start = staticmethod(no_memory)

    def __post_init__(self) -> None:
        require_real("lift", self.lift)
        try:
            windows = tuple((first, last) for first, last in self.windows)
        except TypeError:
            raise InputError(f"windows is {self.windows!r}; give pairs of a first and a last round") from None
        object.__setattr__(self, "windows", windows)
        for first, last in windows:
            require_count("windows' first round", first)
            require_count("windows' last round", last, first)

    def at(self, t: int, effect: Effect, memory: None, rng: Stream) -> tuple[Effect, None]:
        inside = any(first <= t <= last for first, last in self.windows)
        return (replace(effect, shift=effect.shift + self.lift) if inside else effect), None


@dataclass(frozen=True)
class Cosine:
    """Multiplies reward and noise by cos(2πbt + phase) (the High environment)."""

    b: float
    phase: float = 0.0
    piecewise_constant: ClassVar[bool] = True
    start = staticmethod(no_memory)

    def __post_init__(self) -> None:
        require_real("b", self.b)
        require_real("phase", self.phase)

    def at(self, t: int, effect: Effect, memory: None, rng: Stream) -> tuple[Effect, None]:
        factor = math.cos(2 * math.pi * self.b * t + self.phase)
        if abs(factor) < 1e-12:  # cos(π/2) is 6e-17 in floating point: dividing by it would reveal the reward
            factor = 0.0
        return scaled(effect, factor), None


@dataclass(frozen=True)
class Jumps:
    """Redraws w* from the prior at some rounds: `times`, the same in all problems, or `changes` random ones in each."""

    changes: int = 4
    times: tuple[int, ...] = ()
    piecewise_constant: ClassVar[bool] = True
    abrupt: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_count("changes", self.changes, 0)
        object.__setattr__(self, "times", change_times(self.times))

    def start(self, start: Start) -> Triple:
        if not self.times:
            times = random_times(self.changes, start)  # [B, J]
        elif max(self.times) > start.horizon:
            raise InputError(f"times is {self.times}; the last round is {start.horizon}, so no change comes after it")
        else:
            times = torch.tensor(sorted(self.times), device=start.w.device).expand(len(start.w), -1)
        fresh = [draw(start.prior, start.w.shape[1], start.rng) for _ in range(times.shape[1])]
        return times, torch.stack([start.w, *fresh], dim=1), start.w  # [B, J+1, d] in the middle

    def at(self, t: int, effect: Effect, memory: Triple, rng: Stream) -> tuple[Effect, Triple]:
        times, epochs, drawn = memory
        w = pick(epochs, (times <= t).sum(dim=1))
        if effect.w is not drawn:  # another drift came before: keep how far it has moved w
            w = w + (effect.w - drawn)
        return replace(effect, w=w, redrawn=effect.redrawn | (times == t).any(dim=1)), memory


def change_times(times: Sequence[int], horizon: int = 10**9) -> tuple[int, ...]:
    """Rounds that bring a change, checked: each once, none of them the first."""
    if isinstance(times, str) or not isinstance(times, Sequence):
        raise InputError(f"times is {shown(times)}; give a list of rounds")
    for time in times:
        require_count("times (a change)", time, 2, most=horizon)
    if len(set(times)) != len(times):
        raise InputError(f"times is {shown(times)}; give each round of a change once")
    return tuple(times)


def random_times(size: int, start: Start) -> Tensor:
    """So many of rounds 2..T for each problem, `[B, size]`, uniformly random and in any order (Floyd's algorithm)."""
    total = start.horizon - 1
    if size > total:
        raise InputError(f"changes is {size}; at most horizon - 1 = {total} rounds can bring a change")
    chosen = torch.full((len(start.w), size), -1, dtype=torch.long, device=start.w.device)
    for place, last in enumerate(range(total - size, total)):
        candidate = (start.rng.uniform().double() * (last + 1)).long()  # [B] in 0..last
        taken = (chosen == candidate.unsqueeze(1)).any(dim=1)
        chosen[:, place] = torch.where(taken, last, candidate)
    return chosen + 2


Walked = tuple[Tensor, Tensor | float]
"""How far w has come `[B, d]`, and the length of a step, `[B, 1]` or a number."""


def walk(t: int, effect: Effect, memory: Walked, rng: Stream) -> tuple[Effect, Walked]:
    """A step further in a random direction, from round 2 on."""
    displacement, length = memory
    if t > 1:
        direction = rng.normal(displacement.shape[1])  # [B, d]
        displacement = displacement + direction * (length / direction.norm(dim=1, keepdim=True))
    return replace(effect, w=effect.w + displacement), (displacement, length)


@dataclass(frozen=True)
class RandomWalk:
    """w* takes a step of fixed length in a random direction each round; all steps together have length `budget`."""

    budget: float
    at = staticmethod(walk)

    def __post_init__(self) -> None:
        require_real("budget", self.budget, 0.0)

    def start(self, start: Start) -> Walked:
        return torch.zeros_like(start.w), self.budget / max(start.horizon - 1, 1)


@dataclass(frozen=True)
class Rotation:
    """w* turns at constant speed in a random plane through it; its path over all rounds has length `budget`.

    After another drift that moves w, what has been moved turns with it, and the length is that of w* as drawn.
    """

    budget: float

    def __post_init__(self) -> None:
        require_real("budget", self.budget, 0.0)

    def start(self, start: Start) -> Triple:
        if start.w.shape[1] < 2:
            raise InputError(f"dim is {start.w.shape[1]}; a rotation needs a plane, so at least 2")
        length, steps = start.w.norm(dim=1, keepdim=True), max(start.horizon - 1, 1)  # [B, 1]
        chord = self.budget / steps / (2 * length)
        if bool((chord > 1).any()):
            raise InputError(
                f"budget is {self.budget}; w* of length {float(length.min()):.3g} cannot turn that far in "
                f"{start.horizon} rounds: at most {float(2 * length.min()) * steps:.3g}"
            )
        first = start.w / length
        second = start.rng.normal(start.w.shape[1])
        second = second - (second * first).sum(1, keepdim=True) * first
        return first, second / second.norm(dim=1, keepdim=True), 2 * torch.asin(chord)

    def at(self, t: int, effect: Effect, memory: Triple, rng: Stream) -> tuple[Effect, Triple]:
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

    def __post_init__(self) -> None:
        require_real("period", self.period, 1e-6)
        require_count("seasons", self.seasons, 2)

    def start(self, start: Start) -> Tensor:
        others = [draw(start.prior, start.w.shape[1], start.rng) for _ in range(self.seasons - 1)]
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
    start = staticmethod(no_memory)

    def at(self, t: int, effect: Effect, memory: None, rng: Stream) -> tuple[Effect, None]:
        given, call = effect.w, f"drift: {drift_name(self)}({t}, w) returned"
        w = self.function(t, given.clone())  # its own copy: w* as drawn must survive a function that works in place
        if not isinstance(w, Tensor) or (w.shape, w.dtype, w.device) != (given.shape, given.dtype, given.device):
            got = f"a {w.dtype} tensor {list(w.shape)}" if isinstance(w, Tensor) else type(w).__name__
            raise InputError(f"{call} {got}; return w_t as a {given.dtype} tensor {list(given.shape)}, like w")
        if not bool(w.isfinite().all()):
            raise InputError(f"{call} NaN or infinite numbers; return finite ones")
        return replace(effect, w=w), None


def as_drift(drift: Drift | Callable[[int, Tensor], Tensor]) -> Drift:
    """A `Drift` as it is; a plain function as one."""
    if isinstance(drift, type):
        raise InputError(f"drift is the class {drift.__name__}; give an object of it, {drift.__name__}(…)")
    if hasattr(drift, "start") and hasattr(drift, "at"):
        return cast(Drift, drift)
    if callable(drift):
        return FunctionDrift(drift)
    raise InputError(f"drift is {drift!r}; give a Drift object or a function f(t, w) -> w_t")


def drift_name(drift: Drift) -> str:
    """A word for a drift: its class, or the name of a user's function."""
    thing = drift.function if isinstance(drift, FunctionDrift) else drift
    return getattr(thing, "__name__", type(thing).__name__)
