"""An agent at work: `act(features)` gives an arm, `update(reward)` says what came of it.

Every agent that is not told the truth can be put to work, for one live problem (`Online`) or for many independent ones
at once, its users (`OnlineMany`). Rewards may come late or never; the number of arms may change from round to round;
what is refused changes nothing; `save` writes all that is needed to go on with the same choices. Calls from several
threads wait for each other.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from driftformer.agents.base import Agent, Privileged
from driftformer.agents.services import reading
from driftformer.agents.services.reading import Array, Mask
from driftformer.agents.services.rounds import Decision, Options, Service, User
from driftformer.agents.services.saved import restore_service, save_service
from driftformer.errors import InputError, require_count


def online(
    agent: Agent,
    *,
    problems: int | None = None,
    seed: int = 0,
    explore: float = 0.0,
    scale: bool = False,
    arms: int | None = None,
    horizon: int = Options.horizon,
    state: Path | str | None = None,
) -> Any:
    """Put an agent to work: an `Online` for one live problem, or an `OnlineMany` for so many `problems`.

    `explore` is the share of rounds in which an arm is drawn at random: it gives every probability a floor. With
    `scale`, features are raw columns in any units, NaN where a value is missing. With `arms`, so many arms share one
    context `[dim]`, which is given in place of features: an agent then learns a model for each arm. `horizon` is for
    agents that plan for a number of rounds (MASTER, detectors); after so many they begin again. `state` is a file that
    `save` wrote; it brings its own options.
    """
    if isinstance(agent, Privileged):
        raise InputError(f"agent '{agent.name}' must be told the truth, which no service knows; use another")
    options = Options(seed, explore, scale, horizon, arms)
    if state is None:
        service = Service(agent, options)
    elif options != Options() or problems is not None:
        raise InputError(f"state {state} brings its own options; leave out all others")
    else:
        service, problems = restore_service(agent, Path(state))
    if problems is None:
        return Online(service)
    require_count("problems", problems)
    return OnlineMany(service, problems)


class Online:
    """One live problem."""

    def __init__(self, service: Service) -> None:
        self._service, self._lock = service, threading.Lock()

    @property
    def round(self) -> int:
        """Rounds acted in so far: the number of the last one, counted from 1."""
        return self._service.users.get(0, User()).round

    @property
    def exact(self) -> bool | None:
        """Whether the agent states its probabilities, or they are shares of 1,000 draws; None if not yet known."""
        return self._service.exact

    def act(self, features: ArrayLike, offered: ArrayLike | None = None) -> int:
        """The arm to play, given the features `[arms, dim]` of all arms, or the number of arms that have none; with
        `online(arms=…)` the context `[dim]` that they share.

        `offered` marks those that may be played, by default all of them.
        """
        given, mask = self._read(features, offered)
        with self._lock:
            return self._service.decide([0], given, mask, tell=False)[0].arm

    def decide(self, features: ArrayLike, offered: ArrayLike | None = None) -> Decision:
        """The arm to play, the probability with which it was drawn, and the number of the round."""
        given, mask = self._read(features, offered)
        with self._lock:
            return self._service.decide([0], given, mask)[0]

    def probabilities(self, features: ArrayLike, offered: ArrayLike | None = None) -> Array:
        """How likely each arm is in the coming round; asking changes nothing."""
        given, mask = self._read(features, offered)
        with self._lock:
            likely: Array = self._service.probabilities([0], given, mask)[0]
            return likely

    def update(self, reward: float, round: int | None = None) -> bool:
        """What came of a round, by default the last one; False if it waited for too long."""
        paid = reading.read_reward(reward, reading.largest(self._service.agent))
        with self._lock:
            return self._service.update([0], [paid], [reading.read_round(round, self.round)])[0]

    def observe(self, features: ArrayLike, arm: int, reward: float, offered: ArrayLike | None = None) -> None:
        """Learn from a round that somebody else decided."""
        given, mask = self._read(features, offered)
        chosen = reading.read_arm(arm, None if mask is None else mask[0], self._service.arms_of(given))
        paid = reading.read_reward(reward, reading.largest(self._service.agent))
        with self._lock:
            self._service.observe([0], given, [chosen], [paid], mask)

    def save(self, path: Path | str) -> None:
        """Write everything needed to go on, in one file that is whole or not there."""
        with self._lock:
            save_service(self._service, None, Path(path))

    def _read(self, features: ArrayLike, offered: ArrayLike | None) -> tuple[Array, Mask | None]:
        options = self._service.options
        if reading.is_count(features) and options.arms is None:
            given = reading.arms_without_features(features)[np.newaxis]
        else:
            most = reading.largest(self._service.agent)
            given = reading.read_features(features, False, options.arms is not None, most, options.scale)[np.newaxis]
        arms = (self._service.arms_of(given),)
        return given, None if offered is None else reading.read_offered(offered, arms)[np.newaxis]


class OnlineMany:
    """Many independent problems, its users, named 0, 1, …; memory grows with those that have been seen."""

    def __init__(self, service: Service, problems: int) -> None:
        self.problems = problems
        self._service, self._lock = service, threading.Lock()

    @property
    def exact(self) -> bool | None:
        """Whether the agent states its probabilities, or they are shares of 1,000 draws; None if not yet known."""
        return self._service.exact

    def round(self, user: int) -> int:
        """Rounds of a user so far."""
        return self._round(reading.read_users([user], 1, self.problems)[0])

    def _round(self, user: int) -> int:
        return self._service.users.get(user, User()).round

    def act(
        self, features: ArrayLike, users: Sequence[int] | None = None, offered: ArrayLike | None = None
    ) -> NDArray[np.int64]:
        """The arms to play for some users, by default all, given features `[users, arms, dim]` or a number of arms."""
        who, given, mask = self._read(features, users, offered)
        with self._lock:
            return np.array([one.arm for one in self._service.decide(who, given, mask, tell=False)])

    def decide(
        self, features: ArrayLike, users: Sequence[int] | None = None, offered: ArrayLike | None = None
    ) -> list[Decision]:
        """The same, with the probabilities and the numbers of the rounds."""
        who, given, mask = self._read(features, users, offered)
        with self._lock:
            return self._service.decide(who, given, mask)

    def probabilities(
        self, features: ArrayLike, users: Sequence[int] | None = None, offered: ArrayLike | None = None
    ) -> Array:
        """How likely each arm is, `[users, arms]`; asking changes nothing."""
        who, given, mask = self._read(features, users, offered)
        with self._lock:
            return self._service.probabilities(who, given, mask)

    def update(
        self, rewards: ArrayLike, users: Sequence[int] | None = None, rounds: Sequence[int | None] | None = None
    ) -> list[bool]:
        """What came of a round of each of some users, by default the last one; False for those that waited too long."""
        paid = self._rewards(rewards)
        who = reading.read_users(users, len(paid), self.problems)
        when = [None] * len(who) if rounds is None else reading.read_list("rounds", rounds)
        if len(when) != len(who):
            raise InputError(f"rounds has {len(when)} entries for {len(who)} users; give one for each")
        with self._lock:
            at = [reading.read_round(round, self._round(user)) for round, user in zip(when, who, strict=True)]
            return self._service.update(who, paid, at)

    def observe(
        self,
        features: ArrayLike,
        arms: ArrayLike,
        rewards: ArrayLike,
        users: Sequence[int] | None = None,
        offered: ArrayLike | None = None,
    ) -> None:
        """Learn from rounds that somebody else decided."""
        who, given, mask = self._read(features, users, offered)
        paid, named = self._rewards(rewards), reading.read_list("arms", arms)
        if not len(who) == len(paid) == len(named):
            raise InputError(
                f"arms has {len(named)} and rewards {len(paid)} entries for {len(who)} users; give as many"
            )
        masks = [None] * len(who) if mask is None else list(mask)
        arms_there = self._service.arms_of(given)
        chosen = [reading.read_arm(arm, own, arms_there) for arm, own in zip(named, masks, strict=True)]
        with self._lock:
            self._service.observe(who, given, chosen, paid, mask)

    def save(self, path: Path | str) -> None:
        """Write everything needed to go on, for all users, in one file that is whole or not there."""
        with self._lock:
            save_service(self._service, self.problems, Path(path))

    def _rewards(self, rewards: ArrayLike) -> list[float]:
        most = reading.largest(self._service.agent)
        return [reading.read_reward(reward, most) for reward in reading.read_list("rewards", rewards)]

    def _read(
        self, features: ArrayLike, users: Sequence[int] | None, offered: ArrayLike | None
    ) -> tuple[list[int], Array, Mask | None]:
        options = self._service.options
        if reading.is_count(features) and options.arms is None:
            count = self.problems if users is None else len(reading.read_list("users", users))
            arms = reading.arms_without_features(features)
            given = np.broadcast_to(arms, (count, *arms.shape)).copy()
        else:
            most = reading.largest(self._service.agent)
            given = reading.read_features(features, True, options.arms is not None, most, options.scale)
        shape = (len(given), self._service.arms_of(given))
        mask = None if offered is None else reading.read_offered(offered, shape)
        return reading.read_users(users, len(given), self.problems), given, mask
