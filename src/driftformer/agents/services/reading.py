"""What callers of a service give, checked: anything comes in, arrays and plain numbers come out, or a line in words."""

from __future__ import annotations

import math
import operator
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from driftformer.agents.base import Agent
from driftformer.agents.incontext import InContext
from driftformer.errors import InputError, require_count, shown

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

LARGEST = 1e15
"""Of rewards and features: float32 holds their squares."""
_LARGEST_RAW = 1e6
"""Of the same for policies that read raw history: far beyond what any of them has seen."""
LARGEST_COLUMN = 1e100
"""Of columns that are scaled: float64 holds their squares."""
_MOST_ARMS = 10_000
_MOST_COLUMNS = 100_000


def reads_history(agent: Agent) -> TypeGuard[InContext]:
    """Whether it is a policy of the paper's or the pointer form, which reads raw rounds."""
    return isinstance(agent, InContext) and agent.config.form in ("paper", "pointer")


def largest(agent: Agent) -> float:
    """The largest reward, or feature that is not scaled, which an agent takes."""
    return _LARGEST_RAW if reads_history(agent) else LARGEST


def is_count(features: Any) -> bool:
    """Whether features are only a number of arms, which have none."""
    return isinstance(features, (int, np.integer)) and not isinstance(features, (bool, np.bool_))


def arms_without_features(count: Any) -> Array:
    """So many unit vectors."""
    require_count("features, as a number of arms,", int(count), most=_MOST_ARMS)
    return np.eye(int(count))


_FORMS = {
    (False, False): "[arms, dim], one row for each arm",
    (True, False): "[users, arms, dim], a table for each user",
    (False, True): "[dim], the context that all arms share",
    (True, True): "[users, dim], a context for each user",
}
"""Of features, by whether they are of several users, and whether their arms share a context."""


def read_features(features: ArrayLike, many: bool, shared: bool, most: float, raw: bool) -> Array:
    """An array `[arms, columns]`, or `[users, arms, columns]`, of numbers up to `most`; `raw` ones may be missing.

    A context that arms share is that of a single arm.
    """
    ndim = 2 + many - shared
    shape = getattr(features, "shape", ())
    if len(shape) == ndim:  # before anything is copied
        _check_sizes((*shape[:-1], 1, *shape[-1:]) if shared else shape)
    try:
        given = np.asarray(features)
        if given.dtype.kind not in "biufO":
            raise TypeError
        given = given.astype(np.float64)  # a copy: the caller may use the array again before the reward comes
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise InputError(f"features is no array of numbers; give {_FORMS[many, shared]}") from None
    if given.ndim != ndim or 0 in given.shape:
        raise InputError(f"features has shape {given.shape}; give {_FORMS[many, shared]}")
    if shared:
        given = given[..., np.newaxis, :]
    _check_sizes(given.shape)
    most = LARGEST_COLUMN if raw else most
    small = np.abs(given) <= most
    if not small.all() and not (raw and (small | np.isnan(given)).all()):
        hint = "give finite ones" if raw else "give finite ones, or raw columns with online(scale=True)"
        raise InputError(f"features has {'' if raw else 'NaN or '}numbers beyond {most:g}; {hint}")
    return given


def _check_sizes(shape: tuple[int, ...]) -> None:
    arms, columns = shape[-2:]
    if arms > _MOST_ARMS:
        raise InputError(f"features has {arms} arms; give at most {_MOST_ARMS} in a round")
    if columns > _MOST_COLUMNS:
        raise InputError(f"features has {columns} dimensions; give at most {_MOST_COLUMNS}")
    if math.prod(shape) > _MOST_ARMS * _MOST_COLUMNS:
        raise InputError(f"features has shape {tuple(shape)}; give fewer numbers at once")


def read_offered(offered: ArrayLike, shape: tuple[int, ...]) -> Mask:
    """True or False for each arm."""
    try:
        mask = np.array(offered)
        if mask.dtype != np.bool_ or mask.shape != shape:
            raise ValueError
    except (TypeError, ValueError):
        raise InputError(f"offered is not True or False for each arm; give an array {list(shape)} of them") from None
    if not mask.any(axis=-1).all():
        raise InputError("offered has no arm; offer at least one")
    return mask


def read_arm(arm: Any, offered: Mask | None, arms: int) -> int:
    """One of the arms, and one that was `offered`."""
    chosen = whole(arm)
    if not 0 <= chosen < arms:
        raise InputError(f"arm is {shown(arm)}; give one of 0..{arms - 1}")
    if offered is not None and not offered[chosen]:
        raise InputError(f"arm is {chosen}, which was not on offer; give one that was")
    return chosen


def read_round(round: Any, played: int) -> int:
    """The number of a round that was played, by default the last one."""
    at = played if round is None else whole(round)
    if not 1 <= at <= played:
        raise InputError(f"round is {shown(round)}; {played} rounds have been played: give the number of one")
    return at


def read_reward(reward: Any, most: float) -> float:
    """A reward as a plain number: Python's, NumPy's, a click as True or False."""
    try:
        plain = not isinstance(reward, (str, bytes)) and getattr(reward, "ndim", 0) == 0
        number = float(reward) if plain else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not abs(number) <= most:
        raise InputError(
            f"reward is {shown(reward)}; give a finite number up to {most:g}, or no update at all if it is unknown"
        )
    return number


def read_users(users: Any, count: int, problems: int) -> list[int]:
    """The users that rows belong to, by default all."""
    if users is None and count != problems:
        raise InputError(f"users is missing for {count} of {problems} problems; say which ones they are")
    named = list(range(problems)) if users is None else [whole(user) for user in read_list("users", users)]
    for place, user in enumerate(named):
        if not 0 <= user < problems:
            raise InputError(f"user {shown(users[place])} is unknown; there are {problems}, from 0")
    if len(named) != count or len(set(named)) != count:
        raise InputError(f"users names {len(set(named))} different users for {count} rows; name one for each")
    return named


def read_list(name: str, values: Any) -> list[Any]:
    """One entry for each user."""
    try:
        if isinstance(values, (str, bytes)):
            raise TypeError
        return list(values)
    except TypeError:
        raise InputError(f"{name} is {shown(values)}; give a list with one entry for each user") from None


def whole(value: Any) -> int:
    """A whole number, Python's or NumPy's; -1 for anything else."""
    try:
        return -1 if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        return -1
