"""How MDPs change from episode to episode: a position on a path of MDPs, for each problem and episode.

A family draws MDPs number 0, 1, 2, …, and a drift leads each problem along them: at position 2.25 rewards and
transitions are three quarters those of number 2 and one quarter those of number 3. So swaps, hand-overs, cycles and
walks are a formula each, whatever the family. Episodes count from 0. `Own` is for changes that are no such path.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, cast

from torch import Tensor

from driftformer.environments.relabelling import draw_times
from driftformer.errors import InputError, require_count, require_real, shown
from driftformer.randomness import Stream


class MDPDrift(Protocol):
    """A way to change."""

    @property
    def abrupt(self) -> bool:
        """Whether positions are whole numbers: an MDP stays until another takes its place."""

    def mdps(self, episodes: int) -> int:
        """How many MDPs of the family the path passes."""

    def plan(self, episodes: int, rng: Stream, like: Tensor) -> Any:
        """What is drawn before episode 0, with a row for each of `like` `[B]`."""

    def position(self, episode: int, plan: Any) -> Tensor | float:
        """Where the problems are in an episode, `[B]` or the same number for all."""

    def describe(self) -> str:
        """How it changes, in a few words."""


@dataclass(frozen=True)
class Same:
    """Nothing changes."""

    abrupt: ClassVar[bool] = True

    def mdps(self, episodes: int) -> int:
        return 1

    def plan(self, episodes: int, rng: Stream, like: Tensor) -> None: ...

    def position(self, episode: int, plan: None) -> float:
        return 0.0

    def describe(self) -> str:
        return "at rest"


@dataclass(frozen=True)
class Swaps:
    """Two MDPs in turn: the other one takes over every `every` episodes."""

    every: int = 1000
    abrupt: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_count("every", self.every)

    def mdps(self, episodes: int) -> int:
        return 2

    def plan(self, episodes: int, rng: Stream, like: Tensor) -> None: ...

    def position(self, episode: int, plan: None) -> float:
        return float(episode // self.every % 2)

    def describe(self) -> str:
        return f"two in turn, {self.every} episodes each"


@dataclass(frozen=True)
class Redraws:
    """Another MDP from some episodes on: `changes` random ones in each problem, or `times`, the same in all of them."""

    changes: int = 4
    times: tuple[int, ...] = ()
    abrupt: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_count("changes", self.changes, 0)
        for time in self.times:
            require_count("times (a change)", time)

    def mdps(self, episodes: int) -> int:
        return 1 + (len(self.times) or self.changes)

    def plan(self, episodes: int, rng: Stream, like: Tensor) -> Tensor:
        changes = 0 if self.times else self.changes
        if changes > episodes - 1:
            raise InputError(f"changes is {changes}; at most {episodes - 1} can come after episode 0")
        if self.times and max(self.times) >= episodes:
            raise InputError(f"times is {self.times}; the last episode is {episodes - 1}")
        return draw_times(
            rng, like, changes, tuple(time + 1 for time in self.times), 0, episodes
        )  # rounds count from 1

    def position(self, episode: int, plan: Tensor) -> Tensor:
        return (plan <= episode + 1).sum(dim=1).double()

    def describe(self) -> str:
        return f"others from episodes {', '.join(map(str, self.times))} on" if self.times else f"changes={self.changes}"


@dataclass(frozen=True)
class HandOver:
    """One MDP becomes another, steadily, from the first episode to the last."""

    abrupt: ClassVar[bool] = False

    def mdps(self, episodes: int) -> int:
        return 2

    def plan(self, episodes: int, rng: Stream, like: Tensor) -> int:
        return max(episodes - 1, 1)

    def position(self, episode: int, plan: int) -> float:
        return episode / plan

    def describe(self) -> str:
        return "one becomes another"


@dataclass(frozen=True)
class Cycle:
    """One MDP becomes another and itself again, over and over, as a cosine does."""

    period: float = 1000.0
    abrupt: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_real("period", self.period, 0.0, above=True)

    def mdps(self, episodes: int) -> int:
        return 2

    def plan(self, episodes: int, rng: Stream, like: Tensor) -> None: ...

    def position(self, episode: int, plan: None) -> float:
        return (1 - math.cos(2 * math.pi * episode / self.period)) / 2

    def describe(self) -> str:
        return f"a cycle of {self.period:g} episodes"


@dataclass(frozen=True)
class Walk:
    """From MDP to MDP without ever resting: each becomes the next one within `every` episodes."""

    every: int = 500
    abrupt: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_count("every", self.every)

    def mdps(self, episodes: int) -> int:
        return 2 + (episodes - 1) // self.every

    def plan(self, episodes: int, rng: Stream, like: Tensor) -> None: ...

    def position(self, episode: int, plan: None) -> float:
        return episode / self.every

    def describe(self) -> str:
        return f"a walk, {self.every} episodes from one to the next"


Change = Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]]
"""From (episode, rewards [B, H', S, A], transitions [B, H', S, A, S]) of episode 0 to those of the episode."""


@dataclass(frozen=True)
class Own:
    """A function of one's own: it is given rewards and transitions as drawn and returns those of the episode."""

    change: Change
    abrupt: ClassVar[bool] = False

    def mdps(self, episodes: int) -> int:
        return 1

    def plan(self, episodes: int, rng: Stream, like: Tensor) -> None: ...

    def position(self, episode: int, plan: None) -> float:
        return 0.0

    def describe(self) -> str:
        return f"changes by {getattr(self.change, '__name__', 'a function')}"


def as_mdp_drift(drift: Any) -> MDPDrift:
    """A drift as it is, or a function as one."""
    if hasattr(drift, "position"):
        return cast(MDPDrift, drift)
    if callable(drift):
        return Own(drift)
    raise InputError(
        f"drift is {shown(drift)}; give a function f(episode, rewards, transitions), or one of environments.mdp_drift"
    )
