"""The named linear bandits and their options. Nothing here imports torch, so that help texts come at once.

A preset is a frozen dataclass whose fields are the options of `df.make_env(name, …)` and of the command line; the
texts under the fields are its help; `build` makes the environment. `registry.py` names them all.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

from driftformer.errors import require_choice

if TYPE_CHECKING:
    from driftformer.environments.base import Environment
    from driftformer.environments.drift import Drift
    from driftformer.environments.linear import LinearBandit


class Preset(Protocol):
    """A named environment with options."""

    name: ClassVar[str]

    def build(self) -> Environment: ...


@dataclass(frozen=True, kw_only=True)
class Linear:
    """What every linear bandit has."""

    name: ClassVar[str] = "linear-bandit"
    changes_by: ClassVar[str] = "drift.Stationary"
    """The module and class of its drift, whose fields are the options that not every linear bandit has."""

    horizon: int = 1000
    """Rounds T."""
    dim: int = 32
    """Length d of each arm's feature vector."""
    arms: int = 10
    """Arms A."""
    noise: float = 1.5
    """Standard deviation of the noise, before any scaling of the reward."""
    tails: Literal["normal", "heavy"] = "normal"
    """Normal noise, or Student's t with three degrees of freedom and the same standard deviation."""
    prior: Literal["uniform", "normal", "sphere"] = "uniform"
    """Where w* comes from: Unif[0,1]^d (the paper), N(0,I), or the unit sphere."""
    arm_mode: Literal["fixed", "resampled"] = "fixed"
    """Draw the arms once for each problem, or anew in every round."""
    offered: float = 1.0
    """Probability that an arm is on offer in a round; at least one always is."""

    def drift(self) -> Drift:
        """How this environment changes."""
        module, _, kind = self.changes_by.partition(".")
        own = {name: value for name, value in vars(self).items() if name not in SHARED}
        made: Drift = getattr(import_module(f"driftformer.environments.{module}"), kind)(**own)
        return made

    def build(self, drift: Drift | None = None) -> LinearBandit:
        """The environment, under its own drift or another."""
        from driftformer.environments.drift import drift_name
        from driftformer.environments.linear import LinearBandit

        require_choice("tails", self.tails, ("normal", "heavy"))
        require_choice("arm_mode", self.arm_mode, ("fixed", "resampled"))
        shared = {name: getattr(self, name) for name in SHARED if name != "tails"}
        name = self.name if drift is None else f"{self.name}+{drift_name(drift)}"
        return LinearBandit(name=name, drift=drift or self.drift(), law=self.tails, **shared)


SHARED = tuple(field.name for field in dataclasses.fields(Linear))
"""The options of every linear bandit; the others belong to its drift."""


@dataclass(frozen=True, kw_only=True)
class Stationary(Linear):
    """A linear bandit that never changes."""

    name: ClassVar[str] = "stationary"


@dataclass(frozen=True, kw_only=True)
class Low(Linear):
    """The paper's Low environment: rewards in about [0,1], lifted to about [3,4] in two windows."""

    name: ClassVar[str] = "low"

    windows: tuple[tuple[int, int], ...] = ((50, 100), (350, 400))
    """First and last round of each elevated window, both included."""
    lift: float = 3.0
    """Added to every reward inside the windows."""

    def drift(self) -> Drift:
        from driftformer.environments import drift

        # ⟨a, w*⟩ + ε has mean 0 and standard deviation 2.4: six to either side hold 98.7% of it.
        return drift.Compose((drift.Affine(scale=1 / 12, shift=0.5), drift.Elevated(self.windows, self.lift)))


@dataclass(frozen=True, kw_only=True)
class High(Linear):
    """The paper's High environment: reward and noise are multiplied by cos(2πbt + phase)."""

    name: ClassVar[str] = "high"
    changes_by: ClassVar[str] = "drift.Cosine"

    horizon: int = 200
    """Rounds T."""
    b: float = 0.018
    """Frequency; the paper trains on .005, .01, .015, .02 and tests on .018 and .025."""
    phase: float = 0.0
    """Phase of the cosine in radians."""


@dataclass(frozen=True, kw_only=True)
class Jumps(Linear):
    """w* is redrawn from its prior in a few rounds and constant in between."""

    name: ClassVar[str] = "jumps"
    changes_by: ClassVar[str] = "drift.Jumps"

    changes: int = 4
    """How many changes, in random rounds that differ from problem to problem."""
    times: tuple[int, ...] = ()
    """Rounds that bring a change in every problem; if given, `changes` is ignored."""


@dataclass(frozen=True, kw_only=True)
class Walk(Linear):
    """w* moves a little in every round, along a path of given length."""

    name: ClassVar[str] = "walk"

    budget: float = 6.0
    """Length of w*'s whole path: the sum over rounds of how far it moves (w* itself has a length near 3.2)."""
    motion: Literal["random", "rotate"] = "random"
    """A random walk, or a steady turn in a random plane."""

    def drift(self) -> Drift:
        from driftformer.environments import drift

        require_choice("motion", self.motion, ("random", "rotate"))
        return drift.RandomWalk(self.budget) if self.motion == "random" else drift.Rotation(self.budget)


@dataclass(frozen=True, kw_only=True)
class Seasonal(Linear):
    """w* is a mixture of several seasons' parameters that come and go with a period."""

    name: ClassVar[str] = "seasonal"
    changes_by: ClassVar[str] = "drift.Seasonal"

    period: float = 250.0
    """Rounds from one season to its return."""
    seasons: int = 2
    """How many seasons share a period, each with its own parameter."""


@dataclass(frozen=True, kw_only=True)
class Flips(Linear):
    """Rewards change sign in a few random rounds: the best arm is suddenly the worst."""

    name: ClassVar[str] = "flips"
    changes_by: ClassVar[str] = "unseen.Flips"

    horizon: int = 200
    """Rounds T."""
    changes: int = 4
    """How often the sign changes."""


@dataclass(frozen=True, kw_only=True)
class Rising(Linear):
    """One arm of each problem gains steadily while the others stay where they are."""

    name: ClassVar[str] = "rising"
    changes_by: ClassVar[str] = "unseen.Rising"

    horizon: int = 200
    """Rounds T."""
    height: float = 8.0
    """How much it gains over all rounds (means of arms have a standard deviation near 1.9)."""


@dataclass(frozen=True, kw_only=True)
class Chirp(Linear):
    """Like high, with a frequency that goes steadily from one value to another."""

    name: ClassVar[str] = "chirp"
    changes_by: ClassVar[str] = "unseen.Chirp"

    horizon: int = 200
    """Rounds T."""
    first: float = 0.005
    """Frequency at the start."""
    last: float = 0.03
    """Frequency at the end."""


@dataclass(frozen=True, kw_only=True)
class Wave(Linear):
    """Like high, with a wave that is no cosine."""

    name: ClassVar[str] = "wave"
    changes_by: ClassVar[str] = "unseen.Wave"

    horizon: int = 200
    """Rounds T."""
    shape: Literal["sawtooth", "square", "beats"] = "sawtooth"
    """A steady fall from 1 to -1 and a jump back; 1 and -1 in turn; or the product of two cosines."""
    b: float = 0.018
    """Frequency."""


@dataclass(frozen=True, kw_only=True)
class Outage(Linear):
    """The best arm pays like the worst one for a while."""

    name: ClassVar[str] = "outage"
    changes_by: ClassVar[str] = "unseen.Outage"

    horizon: int = 200
    """Rounds T."""
    share: float = 0.25
    """Share of the rounds in which it does."""


@dataclass(frozen=True, kw_only=True)
class Bursts(Linear):
    """The noise is larger in every other stretch of rounds; nothing else changes."""

    name: ClassVar[str] = "bursts"
    changes_by: ClassVar[str] = "unseen.Bursts"

    horizon: int = 200
    """Rounds T."""
    factor: float = 4.0
    """How many times as large."""
    length: int = 25
    """Rounds in a stretch."""


LINEAR = (Stationary, Low, High, Jumps, Walk, Seasonal, Flips, Rising, Chirp, Wave, Outage, Bursts)
