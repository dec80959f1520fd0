"""The named environments and their options. Nothing here imports torch, so that help texts come at once.

A preset is a frozen dataclass whose fields are the options of `df.make_env(name, …)` and of the command line; the
texts under the fields are its help. To add one, write the dataclass and name it in `PRESETS`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from driftformer.errors import InputError, require_choice, unknown_name

if TYPE_CHECKING:
    from torch import Tensor

    from driftformer.environments.drift import Drift
    from driftformer.environments.linear import LinearBandit


@dataclass(frozen=True, kw_only=True)
class Preset:
    """What every linear bandit has."""

    horizon: int = 1000
    """Rounds T."""
    dim: int = 32
    """Length d of each arm's feature vector."""
    arms: int = 10
    """Arms offered in each round, A."""
    noise: float = 1.5
    """Standard deviation of the noise, before any scaling of the reward."""
    tails: Literal["normal", "heavy"] = "normal"
    """Normal noise, or Student's t with three degrees of freedom and the same standard deviation."""
    prior: Literal["uniform", "normal", "sphere"] = "uniform"
    """Where w* comes from: Unif[0,1]^d (the paper), N(0,I), or the unit sphere."""
    arm_mode: Literal["fixed", "resampled"] = "fixed"
    """Draw the arms once for each problem, or anew in every round."""

    def drift(self) -> Drift:
        """How this environment changes."""
        from driftformer.environments import drift

        return drift.Stationary()


@dataclass(frozen=True, kw_only=True)
class Stationary(Preset):
    """A linear bandit that stands still."""


@dataclass(frozen=True, kw_only=True)
class Low(Preset):
    """The paper's Low environment: rewards in about [0,1], lifted to about [3,4] in two windows."""

    windows: tuple[tuple[int, int], ...] = ((50, 100), (350, 400))
    """First and last round of each elevated window, both included."""
    lift: float = 3.0
    """Added to every reward inside the windows."""

    def drift(self) -> Drift:
        from driftformer.environments import drift

        # ⟨a, w*⟩ + ε has mean 0 and standard deviation 2.4: six to either side hold 98.7% of it.
        return drift.Compose((drift.Affine(scale=1 / 12, shift=0.5), drift.Elevated(self.windows, self.lift)))


@dataclass(frozen=True, kw_only=True)
class High(Preset):
    """The paper's High environment: reward and noise are multiplied by cos(2πbt + phase)."""

    horizon: int = 200
    """Rounds T."""
    b: float = 0.018
    """Frequency; the paper trains on .005, .01, .015, .02 and tests on .018 and .025."""
    phase: float = 0.0
    """Phase of the cosine in radians."""

    def drift(self) -> Drift:
        from driftformer.environments import drift

        return drift.Cosine(self.b, self.phase)


@dataclass(frozen=True, kw_only=True)
class Jumps(Preset):
    """w* is redrawn from its prior at a few rounds and constant in between."""

    changes: int = 4
    """How many changes, at random rounds that differ from problem to problem."""
    times: tuple[int, ...] = ()
    """Rounds that bring a change in every problem; if given, `changes` is not used."""

    def drift(self) -> Drift:
        from driftformer.environments import drift

        return drift.Jumps(self.changes, self.times)


@dataclass(frozen=True, kw_only=True)
class Walk(Preset):
    """w* moves a little in every round, along a path of given length."""

    budget: float = 6.0
    """Length of w*'s whole path: the sum over rounds of how far it moves (w* itself has a length near 3.2)."""
    motion: Literal["random", "rotate"] = "random"
    """A random walk, or a steady turn in a random plane."""

    def drift(self) -> Drift:
        from driftformer.environments import drift

        require_choice("motion", self.motion, ("random", "rotate"))
        return drift.RandomWalk(self.budget) if self.motion == "random" else drift.Rotation(self.budget)


@dataclass(frozen=True, kw_only=True)
class Seasonal(Preset):
    """w* is a mixture of several seasons' parameters that come and go with a period."""

    period: float = 250.0
    """Rounds from one season to its return."""
    seasons: int = 2
    """How many seasons share a period, each with its own parameter."""

    def drift(self) -> Drift:
        from driftformer.environments import drift

        return drift.Seasonal(self.period, self.seasons)


@dataclass(frozen=True, kw_only=True)
class Flips(Preset):
    """Rewards change their sign at a few random rounds: the best arm is suddenly the worst."""

    horizon: int = 200
    """Rounds T."""
    changes: int = 4
    """How often the sign changes."""

    def drift(self) -> Drift:
        from driftformer.environments import unseen

        return unseen.Flips(self.changes)


@dataclass(frozen=True, kw_only=True)
class Rising(Preset):
    """One arm of each problem gains steadily while the others stay where they are."""

    horizon: int = 200
    """Rounds T."""
    height: float = 8.0
    """How much it gains over all rounds (means of arms have a standard deviation near 1.9)."""

    def drift(self) -> Drift:
        from driftformer.environments import unseen

        return unseen.Rising(self.height)


@dataclass(frozen=True, kw_only=True)
class Chirp(Preset):
    """As high, with a frequency that goes steadily from one value to another."""

    horizon: int = 200
    """Rounds T."""
    first: float = 0.005
    """Frequency at the start."""
    last: float = 0.03
    """Frequency at the end."""

    def drift(self) -> Drift:
        from driftformer.environments import unseen

        return unseen.Chirp(self.first, self.last)


PRESETS: dict[str, type[Preset]] = {
    "stationary": Stationary,
    "low": Low,
    "high": High,
    "jumps": Jumps,
    "walk": Walk,
    "seasonal": Seasonal,
    "flips": Flips,
    "rising": Rising,
    "chirp": Chirp,
}


def name_of(preset: Preset) -> str:
    """The registered name of a preset."""
    return next(name for name, kind in PRESETS.items() if type(preset) is kind)


def build(preset: Preset, drift: Drift | None = None) -> LinearBandit:
    """The environment that a preset describes, under its own drift or another."""
    from driftformer.environments.drift import drift_name
    from driftformer.environments.linear import LinearBandit

    shared = {field.name: getattr(preset, field.name) for field in dataclasses.fields(Preset)}
    if drift is None:
        return LinearBandit(name=name_of(preset), drift=preset.drift(), **shared)
    return LinearBandit(name=f"{name_of(preset)}+{drift_name(drift)}", drift=drift, **shared)


def make_env(
    name: str, *, drift: Drift | Callable[[int, Tensor], Tensor] | None = None, **options: Any
) -> LinearBandit:
    """A named environment with some of its options changed.

    `drift` replaces the preset's own: a function `f(t, w) -> w_t` on tensors `[B, d]`, or a `Drift` object.
    """
    if name not in PRESETS:
        raise unknown_name("environment", str(name), PRESETS)
    options = {key: value.item() if _is_numpy_scalar(value) else value for key, value in options.items()}
    known = [field.name for field in dataclasses.fields(PRESETS[name])]
    for option in options:
        if option not in known:
            raise unknown_name(f"environment '{name}', option", option, known)
    if drift is None:
        return build(PRESETS[name](**options))
    own = [option for option in options if option not in {field.name for field in dataclasses.fields(Preset)}]
    if own:
        raise InputError(f"{own[0]} belongs to the drift of '{name}', which drift= replaces; drop one of the two")
    from driftformer.environments.drift import as_drift

    return build(PRESETS[name](**options), as_drift(drift))


def _is_numpy_scalar(value: Any) -> bool:
    return hasattr(value, "dtype") and getattr(value, "shape", None) == ()
