"""An agent at work: `act(features)` gives an arm, `update(reward)` says what came of it.

Every agent that is not told the truth can be put to work, for one live problem (`Online`) or for many independent ones
at once, its users (`OnlineMany`). Rewards may come late or never; the number of arms may change from round to round;
what is refused changes nothing; `save` writes all that is needed to go on with the same choices. Calls from several
threads wait for each other.
"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors.torch import load

from driftformer.agents.base import Agent, Privileged
from driftformer.agents.incontext import InContext
from driftformer.agents.registry import full_label
from driftformer.agents.service import LARGEST, Array, Decision, Mask, Options, Service
from driftformer.errors import InputError, require_count, require_real, shown
from driftformer.storage.tensors import BrokenFile, parse_object, read_tensors

_MOST_ARMS = 10_000
_MOST_COLUMNS = 100_000
_LARGEST_RAW = 1e6
"""Of rewards and features for policies that read raw history: far beyond what any of them has seen."""
_LARGEST_COLUMN = 1e100
"""Of columns that are scaled: float64 holds their squares."""


def online(
    agent: Agent,
    *,
    problems: int | None = None,
    seed: int = 0,
    explore: float = 0.0,
    scale: bool = False,
    horizon: int = Options.horizon,
    state: Path | str | None = None,
) -> Any:
    """Put an agent to work: an `Online` for one live problem, or an `OnlineMany` for so many `problems`.

    `explore` is the share of rounds in which an arm is drawn at random: it gives every probability a floor. With
    `scale`, features are raw columns in any units, NaN where a value is missing. `horizon` is for agents that plan for
    a number of rounds (MASTER, detectors); after so many they begin again. `state` is a file that `save` wrote; it
    brings its own options.
    """
    if isinstance(agent, Privileged):
        raise InputError(f"agent '{agent.name}' must be told the truth, which no service knows; use another")
    if state is not None:
        return _restored(agent, Path(state))
    require_count("seed", seed, 0, most=2**63)
    require_real("explore", explore, 0.0, most=1.0)
    require_count("horizon", horizon)
    service = Service(agent, Options(seed, float(explore), bool(scale), horizon))
    if problems is None:
        return Online(service)
    require_count("problems", problems)
    return OnlineMany(service, problems)


class Online:
    """One live problem."""

    def __init__(self, service: Service) -> None:
        self._service, self._lock = service, threading.RLock()

    @property
    def round(self) -> int:
        """Rounds acted in so far: the number of the last one, counted from 1."""
        return self._service.user(0).round

    def act(self, features: ArrayLike, offered: ArrayLike | None = None) -> int:
        """The arm to play, given the features `[arms, dim]` of all arms, or the number of arms that have none.

        `offered` marks those that may be played, by default all of them.
        """
        with self._lock:
            return self._service.decide([0], *self._read(features, offered), want=False)[0].arm

    def decide(self, features: ArrayLike, offered: ArrayLike | None = None) -> Decision:
        """The arm to play, the probability with which it was drawn, and the number of the round."""
        with self._lock:
            return self._service.decide([0], *self._read(features, offered))[0]

    def probabilities(self, features: ArrayLike, offered: ArrayLike | None = None) -> Array:
        """How likely each arm is in the coming round; asking changes nothing.

        `exact` says whether the agent could tell them, or whether they are the shares of 1,000 draws.
        """
        with self._lock:
            likely: Array = self._service.probabilities([0], *self._read(features, offered))[0]
            return likely

    @property
    def exact(self) -> bool | None:
        """Whether the latest probability was exact; otherwise it was counted. None before the first."""
        return self._service.exact

    def update(self, reward: float, round: int | None = None) -> bool:
        """What came of a round, by default the last one; False if it waited for too long."""
        with self._lock:
            given = read_number(reward, largest(self._service))
            return self._service.update([0], [given], [_round(round, self.round)])[0]

    def observe(self, features: ArrayLike, arm: int, reward: float, offered: ArrayLike | None = None) -> None:
        """Learn from a round that somebody else decided."""
        with self._lock:
            given, mask = self._read(features, offered)
            chosen, paid = _arm(arm, given[0], mask), read_number(reward, largest(self._service))
            self._service.observe([0], given, [chosen], [paid], mask)

    def save(self, path: Path | str) -> None:
        """Write everything needed to go on, in one file that is whole or not there."""
        with self._lock:
            self._service.save(Path(path), {"problems": None})

    def _read(self, features: ArrayLike, offered: ArrayLike | None) -> tuple[Array, Mask | None]:
        given = read_features(features, self._service, 2)[np.newaxis]
        return given, None if offered is None else _mask(offered, given.shape[1:2])[np.newaxis]


class OnlineMany:
    """Many independent problems, its users, named 0, 1, …; memory grows with those that have been seen."""

    def __init__(self, service: Service, problems: int) -> None:
        self.problems = problems
        self._service, self._lock = service, threading.RLock()

    @property
    def exact(self) -> bool | None:
        """Whether the latest probabilities were exact; otherwise they were counted. None before the first."""
        return self._service.exact

    def round(self, user: int) -> int:
        """Rounds of a user so far."""
        return self._service.user(self._users([user], 1)[0]).round

    def act(
        self, features: ArrayLike, users: Sequence[int] | None = None, offered: ArrayLike | None = None
    ) -> NDArray[np.int64]:
        """The arms to play for some users, by default all of them, given the features `[users, arms, dim]`."""
        with self._lock:
            who, given, mask = self._read(features, users, offered)
            return np.array([one.arm for one in self._service.decide(who, given, mask, want=False)])

    def decide(
        self, features: ArrayLike, users: Sequence[int] | None = None, offered: ArrayLike | None = None
    ) -> list[Decision]:
        """The same, with the probabilities and the numbers of the rounds."""
        with self._lock:
            return self._service.decide(*self._read(features, users, offered))

    def probabilities(
        self, features: ArrayLike, users: Sequence[int] | None = None, offered: ArrayLike | None = None
    ) -> Array:
        """How likely each arm is, `[users, arms]`; asking changes nothing."""
        with self._lock:
            return self._service.probabilities(*self._read(features, users, offered))

    def update(
        self, rewards: ArrayLike, users: Sequence[int] | None = None, rounds: Sequence[int] | None = None
    ) -> list[bool]:
        """What came of a round of each of some users, by default the last one."""
        with self._lock:
            given = [read_number(reward, largest(self._service)) for reward in _listed("rewards", rewards)]
            who = self._users(users, len(given))
            when = [None] * len(who) if rounds is None else _listed("rounds", rounds)
            if len(when) != len(who):
                raise InputError(f"rounds has {len(when)} entries for {len(who)} users; give one for each")
            played = [self._service.user(user).round for user in who]
            return self._service.update(who, given, [_round(at, last) for at, last in zip(when, played, strict=True)])

    def observe(
        self,
        features: ArrayLike,
        arms: ArrayLike,
        rewards: ArrayLike,
        users: Sequence[int] | None = None,
        offered: ArrayLike | None = None,
    ) -> None:
        """Learn from rounds that somebody else decided."""
        with self._lock:
            who, given, mask = self._read(features, users, offered)
            paid = [read_number(reward, largest(self._service)) for reward in _listed("rewards", rewards)]
            named = _listed("arms", arms)
            if not len(who) == len(paid) == len(named):
                raise InputError(f"arms has {len(named)} and rewards {len(paid)} entries for {len(who)} users")
            chosen = [
                _arm(arm, rows, None if mask is None else mask[place, None])
                for place, (arm, rows) in enumerate(zip(named, given, strict=True))
            ]
            self._service.observe(who, given, chosen, paid, mask)

    def save(self, path: Path | str) -> None:
        """Write everything needed to go on, for all users, in one file that is whole or not there."""
        with self._lock:
            self._service.save(Path(path), {"problems": self.problems})

    def _read(
        self, features: ArrayLike, users: Sequence[int] | None, offered: ArrayLike | None
    ) -> tuple[list[int], Array, Mask | None]:
        given = read_features(features, self._service, 3)
        return self._users(users, len(given)), given, None if offered is None else _mask(offered, given.shape[:2])

    def _users(self, users: Sequence[int] | None, count: int) -> list[int]:
        if users is None and count != self.problems:
            raise InputError(f"users is missing for {count} of {self.problems} problems; say which ones they are")
        named = list(range(self.problems)) if users is None else [_whole(user) for user in _listed("users", users)]
        for user in named:
            if not 0 <= user < self.problems:
                raise InputError(f"user {shown(user)} is unknown; there are {self.problems}, from 0")
        if len(named) != count or len(set(named)) != count:
            raise InputError(f"users names {len(set(named))} different users for {count} rows; name one for each")
        return named


def _restored(agent: Agent, path: Path) -> Online | OnlineMany:
    """Go on where `save` left off, with the same agent."""
    try:
        tensors, text = read_tensors(path, load)
        about = parse_object(text)
        if about.get("agent") != full_label(agent):
            raise InputError(
                f"state {path} is of agent '{about.get('agent')!s:.200}', not of '{full_label(agent)}'; make that agent"
            )
        try:
            options = Options(**about["options"])
            require_count("seed", options.seed, 0, most=2**63)
            require_real("explore", options.explore, 0.0, most=1.0)
            require_count("horizon", options.horizon, most=10**7)
            service = Service(agent, options)
            service.take(tensors, about)
            problems = about["problems"]
            if problems is not None:
                require_count("problems", problems)
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError, RuntimeError) as error:
            raise BrokenFile(f"{error!s:.80}: missing or of another kind") from None
    except (BrokenFile, OSError) as error:
        raise InputError(f"state {path} is broken ({error}); begin anew with online()") from None
    return Online(service) if problems is None else OnlineMany(service, problems)


def largest(service: Service) -> float:
    """The largest reward that an agent takes."""
    agent = service.agent
    return _LARGEST_RAW if isinstance(agent, InContext) and agent.config.form != "query" else LARGEST


def read_features(features: ArrayLike, service: Service, ndim: int) -> Array:
    """An array `[arms, columns]`, or `[users, arms, columns]`, of numbers, or an error that says what is wrong."""
    if isinstance(features, int) and not isinstance(features, bool) and ndim == 2:
        require_count("features, as a number of arms,", features, most=_MOST_ARMS)
        return np.eye(features)
    most = service.columns or _MOST_COLUMNS
    form = "[arms, dim], one row for each arm" if ndim == 2 else "[users, arms, dim], a table for each user"
    shape = getattr(features, "shape", ())
    if len(shape) == ndim and math.prod(shape[-2:]) > _MOST_ARMS * most:
        raise InputError(f"features has shape {tuple(shape)}; give at most {_MOST_ARMS} arms of {most} numbers")
    try:
        given = np.asarray(features)
        if given.dtype.kind not in "biufO":
            raise TypeError
        given = given.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise InputError("features is no array of numbers; give one row of features for each arm") from None
    if given.ndim != ndim or 0 in given.shape:
        raise InputError(f"features has shape {given.shape}; give {form}")
    arms, columns = given.shape[-2:]
    if arms > _MOST_ARMS:
        raise InputError(f"features has {arms} arms; give at most {_MOST_ARMS} in a round")
    if columns > most:
        before = f"but {most} in the rounds before; give at most those" if service.columns else "too many"
        raise InputError(f"features has {columns} dimensions, {before}")
    scale = service.options.scale
    most_size = _LARGEST_COLUMN if scale else largest(service)
    size = np.abs(given)
    if not (size <= most_size).all() and not (scale and ((size <= most_size) | np.isnan(given)).all()):
        hint = "give finite ones" if scale else "give finite ones, or raw columns with online(scale=True)"
        raise InputError(f"features has NaN or numbers beyond {most_size:g}; {hint}")
    return given


def _mask(offered: ArrayLike, shape: tuple[int, ...]) -> Mask:
    try:
        mask = np.asarray(offered)
        if mask.dtype != np.bool_ or mask.shape != shape:
            raise ValueError
    except (TypeError, ValueError):
        raise InputError(f"offered is not True or False for each arm; give an array {list(shape)} of them") from None
    if not mask.any(axis=-1).all():
        raise InputError("offered has no arm; offer at least one")
    return mask


def _arm(arm: Any, rows: Array, mask: Mask | None) -> int:
    chosen = _whole(arm)
    if not 0 <= chosen < len(rows):
        raise InputError(f"arm is {shown(arm)}; give one of 0..{len(rows) - 1}")
    if mask is not None and not mask[0, chosen]:
        raise InputError(f"arm is {chosen}, which was not on offer; give one that was")
    return chosen


def _round(round: Any, played: int) -> int:
    at = played if round is None else _whole(round)
    if not 1 <= at <= played:
        raise InputError(f"round is {shown(round)}; {played} rounds have been played: give the number of one")
    return at


def _whole(value: Any) -> int:
    """A whole number, Python's or NumPy's; -1 for anything else."""
    try:
        return operator.index(value)
    except TypeError:
        return -1


def _listed(name: str, values: Any) -> list[Any]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise InputError(f"{name} is {shown(values)}; give a list with one entry for each user")
    return list(values)


def read_number(reward: float, largest: float = LARGEST) -> float:
    """A reward as a plain number: Python's, NumPy's, a click as True or False."""
    try:
        plain = not isinstance(reward, (str, bytes)) and getattr(reward, "ndim", 0) == 0
        number = float(reward) if plain else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not abs(number) <= largest:
        raise InputError(
            f"reward is {shown(reward)}; give a finite number up to {largest:g}, or no update at all if it is unknown"
        )
    return number
