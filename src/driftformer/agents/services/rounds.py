"""The rounds of an agent at work, for any number of users: what was decided, what waits for its reward.

Arguments are checked already (`reading`). Features come as `[U, A, columns]`, and every list has an entry for each of
the U users. Nothing is changed before all that can be refused has been refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from driftformer.agents.base import Agent, ProblemShape
from driftformer.agents.incontext import InContext
from driftformer.agents.services.contexts import Contexts
from driftformer.agents.services.memory import Rows
from driftformer.agents.services.propensity import Coins, counted, drawn, stated
from driftformer.agents.services.reading import Array, Mask, reads_history
from driftformer.agents.services.scaling import Scaler, in_blocks
from driftformer.errors import InputError, require_count, require_real
from driftformer.problem import Observation, Traits, why_not
from driftformer.randomness import one_thread

MOST_OPEN = 10_000
"""Rounds of a user that may wait for their reward; beyond, the oldest is given up."""


@dataclass(frozen=True)
class Decision:
    """What was decided in a round."""

    arm: int
    probability: float
    """With which the arm was drawn, uniform exploration included: the propensity to log."""
    round: int
    """Of this user, counted from 1: what `update` takes where a reward comes late."""


@dataclass(frozen=True)
class Options:
    """How an agent is put to work."""

    seed: int = 0
    explore: float = 0.0
    """Share of the rounds in which an arm is drawn at random, so that every probability has a floor."""
    scale: bool = False
    """Whether features are raw columns, standardised by what was seen of them."""
    horizon: int = 10_000
    """Rounds that agents which plan ahead (MASTER, detectors) prepare for; after so many they begin again."""
    arms: int | None = None
    """So many arms that share one context, which is given in place of features; None: each arm has its own."""

    def __post_init__(self) -> None:
        require_count("seed", self.seed, 0, most=2**63)
        require_real("explore", self.explore, 0.0, most=1.0)
        if not isinstance(self.scale, bool):
            raise InputError(f"scale is {self.scale!r:.60}; give True or False")
        require_count("horizon", self.horizon, most=10**7)
        if self.arms is not None:
            require_count("arms", self.arms, 2, most=1000)


@dataclass(frozen=True)
class Open:
    """A round that waits for its reward."""

    features: Tensor  # [A, d] as the agent saw them
    offered: Tensor | None  # [A] bool
    arm: int


@dataclass
class User:
    """Where a user stands."""

    round: int = 0
    given_up: int = 0  # the latest round that waited too long
    open: dict[int, Open] = field(default_factory=dict)  # by the numbers of the rounds
    arms: Array | None = None  # the same ones in every round, for an agent that needs that


@dataclass(frozen=True)
class _Seen:
    """What is on offer as the agent sees it, and what is remembered of that if the call is not refused."""

    observation: Observation
    memory: Rows | Contexts
    columns: int
    scaler: Scaler | None


class Service:
    """Rounds of many users."""

    def __init__(self, agent: Agent, options: Options) -> None:
        reason = why_not(agent, Traits(one_hot=True, same_arms=True))
        if reason is not None:
            raise InputError(f"agent '{agent.name}' cannot be put to work: {reason}; use another")
        self.only_one_hot = why_not(agent, Traits(same_arms=True)) is not None
        self.same_arms = why_not(agent, Traits(one_hot=True)) is not None
        if self.only_one_hot and options.scale:
            raise InputError(f"scale is True, but agent '{agent.name}' plays arms without features; leave it out")
        if (self.only_one_hot or self.same_arms) and options.arms is not None:
            raise InputError(f"arms is {options.arms}, but agent '{agent.name}' reads no context; leave it out")
        self.agent, self.options = agent, options
        self.dtype = torch.float32 if isinstance(agent, InContext) else torch.float64
        self.users: dict[int, User] = {}
        self.exact: bool | None = None  # whether the agent states its probabilities; None while that is not known
        self.asked = 0  # questions so far: each has random numbers of its own
        self.learned = 0  # rewards taken in so far, likewise
        raw = not (options.scale or options.arms)
        self.columns = agent.config.dim if reads_history(agent) and raw else 0  # of features; 0: unknown
        self.scaler: Scaler | None = None
        self.memory: Rows | Contexts | None = None
        self._latest: tuple[list[tuple[int, int]], Observation | None, Any] = ([], None, None)
        # the last question, unless something was learned since: its users and rounds, what was on offer, the info

    def decide(self, users: list[int], given: Array, mask: Mask | None, tell: bool = True) -> list[Decision]:
        """Choose for some users; unless it is to `tell` them, no probabilities are computed."""
        seen = self._see(users, given, mask)
        observation, number = seen.observation, self.asked + 1
        coins, told, likely = self._coins("service", len(users)), [math.nan] * len(users), None
        with one_thread(), torch.inference_mode():
            arm, info = seen.memory.ask(users, observation, coins)
            if tell:
                likely = stated(self.agent, observation, arm, info, coins)
                self.exact = likely is not None
                if likely is None:  # the arm is drawn from the shares that were counted, so they are what it had
                    likely = self._counted(users, seen)
                    arm = drawn(likely, self._coins("choice", len(users)).uniform())
            arms = self._explored(arm, observation)
            if likely is not None:
                told = self._mixed(likely, observation)[range(len(users)), arms].tolist()
        self._keep(users, seen, given)
        self.asked = number
        at = [self._open(name, observation, place, arms[place]) for place, name in enumerate(users)]
        self._latest = (list(zip(users, at, strict=True)), observation, info)
        return [Decision(*one) for one in zip(arms, told, at, strict=True)]

    def probabilities(self, users: list[int], given: Array, mask: Mask | None) -> Array:
        """How likely each arm is, `[U, A]`; nothing changes."""
        seen = self._see(users, given, mask)
        coins = self._coins("service", len(users))
        with one_thread(), torch.inference_mode():
            arm, info = seen.memory.ask_apart(users, seen.observation, coins)
            likely = stated(self.agent, seen.observation, arm, info, coins)
            self.exact = likely is not None
            return self._mixed(self._counted(users, seen) if likely is None else likely, seen.observation)

    def _counted(self, users: list[int], seen: _Seen) -> Tensor:
        assert isinstance(seen.memory, Rows), "a policy states its probabilities"
        return counted(self.agent, seen.memory.copied(users), seen.observation, self.options.seed, self.asked + 1)

    def _coins(self, purpose: str, users: int) -> Coins:
        """Random numbers of the question that is being answered."""
        return Coins(self.options.seed, self.asked + 1, users, self.dtype, purpose)

    def _explored(self, arm: Tensor, observation: Observation) -> list[int]:
        """A share of the rounds goes to an arm at random."""
        if self.options.explore > 0:
            chance = self._coins("explore", len(arm)).uniform(2)
            arm = torch.where(chance[:, 0] < self.options.explore, observation.drawn(chance[:, 1]), arm)
        chosen: list[int] = arm.tolist()
        return chosen

    def _mixed(self, likely: Tensor, observation: Observation) -> Array:
        """The probabilities with the uniform share mixed in, `[U, A]`."""
        share = self.options.explore
        mixed: Array = ((1 - share) * likely.double() + share * observation.evenly().double()).numpy()
        return mixed

    def _open(self, name: int, observation: Observation, place: int, arm: int) -> int:
        """The number of a round that begins to wait for its reward."""
        user = self.users[name]
        user.round += 1
        offered = None if observation.offered is None else observation.offered[place]
        features = observation.action_set[place].clone()  # not a view, which would keep what all users were offered
        user.open[user.round] = Open(features, offered, arm)
        if len(user.open) > MOST_OPEN:
            user.given_up = next(iter(user.open))
            del user.open[user.given_up]
        return user.round

    def update(self, users: list[int], rewards: list[float], rounds: list[int]) -> list[bool]:
        """Take in rewards of rounds that are open; False for those that waited too long."""
        waiting: dict[int, Open] = {}  # by their places in the lists
        for place, (name, at) in enumerate(zip(users, rounds, strict=True)):
            user = self.users[name]
            if at in user.open:
                waiting[place] = user.open[at]
            elif at > user.given_up:
                raise InputError(f"round {at} has its reward already; give each once")
        asked, observation, info = self._latest
        if list(zip(users, rounds, strict=True)) == asked and observation is not None:  # what was computed still holds
            self._learn(users, observation, [held.arm for held in waiting.values()], rewards, info)
        else:
            for places in _alike(waiting):
                held = [waiting[place] for place in places]
                masks = [one.offered for one in held if one.offered is not None]
                then = Observation(torch.stack([one.features for one in held]), torch.stack(masks) if masks else None)
                paid = [rewards[place] for place in places]
                self._learn([users[place] for place in places], then, [one.arm for one in held], paid, None)
        for place in waiting:
            del self.users[users[place]].open[rounds[place]]
        return [place in waiting for place in range(len(users))]

    def observe(self, users: list[int], given: Array, arms: list[int], rewards: list[float], mask: Mask | None) -> None:
        """Learn from rounds that others decided."""
        seen = self._see(users, given, mask)
        self._keep(users, seen, given)
        self._learn(users, seen.observation, arms, rewards, None)

    def _learn(
        self, users: list[int], observation: Observation, arms: list[int], rewards: list[float], info: Any
    ) -> None:
        assert self.memory is not None, "there was a round"
        self._latest = ([], None, None)
        self.learned += 1
        coins = Coins(self.options.seed, self.learned, len(users), self.dtype, "late")
        with one_thread(), torch.inference_mode():
            paid = torch.tensor(rewards, dtype=self.dtype)
            self.memory.learn(users, observation, torch.tensor(arms), paid, info, coins)

    def _see(self, users: list[int], given: Array, mask: Mask | None) -> _Seen:
        """What is on offer as the agent sees it; refuses what it cannot take."""
        self._check_arms(users, given)
        columns = max(self.columns, given.shape[2])
        if self.columns and given.shape[2] > self.columns:
            before = (
                f"{self.agent.name} takes at most" if reads_history(self.agent) else "in the rounds before there were"
            )
            raise InputError(f"features has {given.shape[2]} dimensions, but {before} {self.columns}; give no more")
        if given.shape[2] < columns:
            missing = math.nan if self.options.scale else 0.0
            given = np.pad(given, ((0, 0), (0, 0), (0, columns - given.shape[2])), constant_values=missing)
        scaler = self.scaler
        if self.options.scale:
            rows = given.reshape(-1, columns) if mask is None or self.options.arms else given[mask]
            scaler = (scaler or Scaler.fresh(columns)).after(rows)
            given = scaler.scale(given)
        elif self.options.arms:
            given = np.pad(given, ((0, 0), (0, 0), (0, 1)), constant_values=1.0)
        if self.options.arms:
            given = in_blocks(given[:, 0], self.options.arms)
        memory = self.memory or self.begun(*given.shape[1:])
        if isinstance(memory, Contexts):
            memory.check(*given.shape[1:])
        offered = None if mask is None else torch.from_numpy(mask)
        return _Seen(Observation(torch.from_numpy(given).to(self.dtype), offered), memory, columns, scaler)

    def _keep(self, users: list[int], seen: _Seen, given: Array) -> None:
        """Remember what was seen."""
        self.memory, self.columns, self.scaler = seen.memory, seen.columns, seen.scaler
        for place, name in enumerate(users):
            user = self.users.setdefault(name, User())
            if self.same_arms and user.arms is None:
                user.arms = given[place].copy()

    def _check_arms(self, users: list[int], given: Array) -> None:
        """Refuse arms that the agent is not made for."""
        hint = "give all of them in every round, and mark with offered= which may be played"
        if self.only_one_hot and not (given == np.eye(*given.shape[1:])).all():
            raise InputError(
                f"features are no unit vectors, but {why_not(self.agent, Traits(same_arms=True))}; give the number of "
                f"arms in place of features, or use another agent than '{self.agent.name}'"
            )
        if self.only_one_hot and isinstance(self.memory, Rows) and self.memory.shape.arms != given.shape[1]:
            raise InputError(f"features has {given.shape[1]} arms, but {self.memory.shape.arms} before; {hint}")
        for place, name in enumerate(users if self.same_arms else []):
            before = self.users[name].arms if name in self.users else None
            if before is not None and not np.array_equal(given[place], before):
                raise InputError(
                    f"features are other arms than in the first round, but {self.agent.name} needs the same; {hint}"
                )

    def arms_of(self, given: Array) -> int:
        """How many arms there are in what was given, `[U, A, columns]`."""
        return self.options.arms or given.shape[1]

    def width(self, columns: int) -> int:
        """How many features an arm has, as the agent sees them."""
        own = Scaler.width(columns) if self.options.scale else columns + (self.options.arms is not None)
        return own * (self.options.arms or 1)

    def begun(self, arms: int, width: int) -> Rows | Contexts:
        """The memory before the first round."""
        if reads_history(self.agent):
            return Contexts(self.agent)
        shape = ProblemShape(1, self.options.horizon, arms, width, torch.device("cpu"), self.dtype)
        with one_thread(), torch.inference_mode():
            return Rows(self.agent, shape)


def _alike(waiting: dict[int, Open]) -> Sequence[list[int]]:
    """Places of rounds that can be learned together: with as many arms, and all or none with a mask."""
    groups: dict[tuple[int, bool], list[int]] = {}
    for place, held in waiting.items():
        groups.setdefault((len(held.features), held.offered is None), []).append(place)
    return list(groups.values())
