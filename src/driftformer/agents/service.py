"""The rounds of an agent at work, for any number of users: what was decided, what waits for its reward, what is saved.

Arguments are checked already (`online.py`). Features come as `[U, A, columns]`, and every list has an entry for each of
the U users.
"""

from __future__ import annotations

import math
import operator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save
from torch import Tensor

from driftformer.agents.base import Agent, ProblemShape
from driftformer.agents.incontext import InContext
from driftformer.agents.memory import Contexts, Rows
from driftformer.agents.propensity import Coins, stated
from driftformer.agents.registry import full_label
from driftformer.agents.scaling import Scaler
from driftformer.errors import InputError
from driftformer.problem import Observation, Traits, why_not
from driftformer.randomness import one_thread
from driftformer.storage.files import write_atomically
from driftformer.storage.tensors import with_checksum

MOST_OPEN = 10_000
"""Rounds of a user that may wait for their reward; beyond, the oldest is given up."""
LARGEST = 1e15
"""Of rewards and features: float32 holds their squares."""
Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Decision:
    """What was decided in a round."""

    arm: int
    probability: float
    """With which the arm was drawn, uniform exploration included: the propensity to log."""
    round: int
    """Of this user, counted from 1: what `update` takes where a reward comes late."""


@dataclass
class _User:
    """Where a user stands."""

    round: int = 0
    given_up: int = 0  # the latest round that waited too long
    open: dict[int, tuple[Tensor, Tensor | None, int]] = field(default_factory=dict)  # on offer, the mask, the arm


@dataclass(frozen=True)
class Options:
    """How an agent is put to work."""

    seed: int = 0
    explore: float = 0.0
    """Share of the rounds in which an arm is drawn at random, so that every probability has a floor."""
    scale: bool = False
    """Whether features are raw columns, standardised by what was seen of them."""
    horizon: int = 100_000
    """Rounds that agents which plan ahead (MASTER, detectors) prepare for; after so many they begin again."""


class Service:
    """Rounds of many users."""

    def __init__(self, agent: Agent, options: Options) -> None:
        self.agent, self.options = agent, options
        self.users: dict[int, _User] = {}
        self.exact: bool | None = None  # whether the latest probabilities were stated by the agent
        self.columns = 0  # of the features as they come; 0 before the first round
        self._number = 0  # of questions so far: each has random numbers of its own
        self._dtype = torch.float32 if isinstance(agent, InContext) else torch.float64
        self._memory: Rows | Contexts | None = None
        self._scaler: Scaler | None = None
        self._same: Array | None = None  # the arms of every round, for agents that need the same ones
        self._latest: tuple[list[tuple[int, int]], Observation | None, Any] = ([], None, None)
        # the last question, unless something was learned since: its users and rounds, what was on offer, the info

    def user(self, name: int) -> _User:
        return self.users.get(name) or self.users.setdefault(name, _User())

    def decide(self, users: list[int], given: Array, mask: Mask | None, want: bool = True) -> list[Decision]:
        """Choose for some users; without `want`, no probabilities are computed."""
        memory, observation = self._seen(given, mask)
        self._number += 1
        coins = Coins(self.options.seed, self._number, len(users), self._dtype)
        likely, told = None, [math.nan] * len(users)
        with one_thread(), torch.inference_mode():
            arm, info = memory.ask(users, observation, coins)
            if want:
                likely = stated(self.agent, observation, arm, info, coins)
                self.exact = likely is not None
                if likely is None:  # the arm is drawn from the shares that were counted, so they are what it had
                    likely = memory.count(users, observation, self.options.seed, self._number)
                    arm = _drawn(likely, self._chance("choice", len(users)))
            arms = self._explored(arm, observation)
            if likely is not None:
                told = self._mixed(likely, observation)[range(len(users)), arms].tolist()
        at = self._open(users, observation, arms)
        self._latest = (list(zip(users, at, strict=True)), observation, info)
        return [Decision(*one) for one in zip(arms, told, at, strict=True)]

    def _explored(self, arm: Tensor, observation: Observation) -> list[int]:
        """A share of the rounds goes to an arm at random."""
        if self.options.explore > 0:
            chance = self._chance("explore", len(arm), 2)
            arm = torch.where(chance[:, 0] < self.options.explore, observation.drawn(chance[:, 1]), arm)
        chosen: list[int] = arm.tolist()
        return chosen

    def _chance(self, purpose: str, users: int, *shape: int) -> Tensor:
        return Coins(self.options.seed, self._number, users, torch.float64, purpose).uniform(*shape)

    def _mixed(self, likely: Tensor, observation: Observation) -> Array:
        """The probabilities with the uniform share mixed in, `[U, A]`."""
        offered = torch.ones_like(likely) if observation.offered is None else observation.offered.to(likely)
        uniform = offered / offered.sum(dim=1, keepdim=True)
        mixed: Array = ((1 - self.options.explore) * likely + self.options.explore * uniform).double().numpy()
        return mixed

    def _open(self, users: list[int], observation: Observation, arms: list[int]) -> list[int]:
        rounds = []
        for place, (name, arm) in enumerate(zip(users, arms, strict=True)):
            user = self.user(name)
            user.round += 1
            mask = None if observation.offered is None else observation.offered[place]
            user.open[user.round] = (observation.action_set[place], mask, arm)
            if len(user.open) > MOST_OPEN:
                user.given_up = next(iter(user.open))
                del user.open[user.given_up]
            rounds.append(user.round)
        return rounds

    def probabilities(self, users: list[int], given: Array, mask: Mask | None) -> Array:
        """How likely each arm is, `[U, A]`; nothing changes."""
        memory, observation = self._seen(given, mask, look=True)
        coins = Coins(self.options.seed, self._number + 1, len(users), self._dtype)
        with one_thread(), torch.inference_mode():
            apart = memory.copy(users)
            arm, info = apart.ask(users, observation, coins)
            likely = stated(self.agent, observation, arm, info, coins)
            self.exact = likely is not None
            if likely is None:
                likely = apart.count(users, observation, self.options.seed, self._number + 1)
            return self._mixed(likely, observation)

    def update(self, users: list[int], rewards: list[float], rounds: list[int]) -> list[bool]:
        """Take in rewards of rounds that are open; False for those that waited too long."""
        waiting = [self.user(name).open.get(at) for name, at in zip(users, rounds, strict=True)]
        for name, at, held in zip(users, rounds, waiting, strict=True):
            if held is None and at > self.user(name).given_up:
                raise InputError(f"round {at} has its reward already; give each once")
        asked, observation, info = self._latest
        keys = list(zip(users, rounds, strict=True))
        if keys == asked and observation is not None:  # in time: what was computed for the choice still holds
            self._learn(users, observation, [held[2] for held in waiting if held is not None], rewards, info)
        else:
            for name, held, reward in zip(users, waiting, rewards, strict=True):
                if held is not None:
                    features, mask, arm = held
                    then = Observation(features.unsqueeze(0), None if mask is None else mask.unsqueeze(0))
                    self._learn([name], then, [arm], [reward], None)
        for name, at in keys:
            self.user(name).open.pop(at, None)
        return [held is not None for held in waiting]

    def _learn(
        self, users: list[int], observation: Observation, arms: list[int], rewards: list[float], info: Any
    ) -> None:
        assert self._memory is not None
        with one_thread(), torch.inference_mode():
            paid = torch.tensor(rewards, dtype=self._dtype)
            self._memory.learn(users, observation, torch.tensor(arms), paid, info)
        self._latest = ([], None, None)

    def observe(self, users: list[int], given: Array, arms: list[int], rewards: list[float], mask: Mask | None) -> None:
        """Learn from rounds that others decided."""
        _, observation = self._seen(given, mask)
        self._learn(users, observation, arms, rewards, None)

    def _seen(self, given: Array, mask: Mask | None, look: bool = False) -> tuple[Rows | Contexts, Observation]:
        """The memory, and what is on offer as the agent sees it; with `look`, without taking note of it."""
        width = max(self.columns, given.shape[2])
        if given.shape[2] < width:
            given = np.pad(given, ((0, 0), (0, 0), (0, width - given.shape[2])))
        scaler = self._scaler
        if self.options.scale:
            if scaler is None or look:
                fresh = Scaler(width)
                if scaler is not None:
                    fresh.seen, fresh.mean, fresh.squares = (held.copy() for held in vars(scaler).values())
                scaler = fresh
            rows = given.reshape(-1, width) if mask is None else given[mask]
            scaler.learn(rows)
            given = scaler.scale(given)
        memory = self._memory or self._begun(given, mask)
        if isinstance(memory, Contexts):
            memory.check(*given.shape[1:])
        if self._same is not None and not np.array_equal(given[0], self._same):
            raise InputError(
                f"features are other arms than in the first round, but {self.agent.name} needs the same ones in every "
                "round; give all of them, and mark with offered= which are on offer"
            )
        if not look:
            if self._memory is None and self._needs_same():
                self._same = given[0].copy()
            self._memory, self._scaler, self.columns = memory, scaler, width
        offered = None if mask is None else torch.from_numpy(mask)
        return memory, Observation(torch.from_numpy(given).to(self._dtype), offered)

    def _needs_same(self) -> bool:
        return why_not(self.agent, Traits()) is not None

    def _begun(self, given: Array, mask: Mask | None) -> Rows | Contexts:
        """The memory before the first round; refuse an agent for which these features are not made."""
        arms, dim = given.shape[1:]
        one_hot = arms == dim and bool((given == np.eye(arms)).all())
        reason = why_not(self.agent, Traits(one_hot=one_hot, same_arms=True))
        if reason is not None:
            raise InputError(
                f"agent '{self.agent.name}' cannot play these features: {reason}; for arms without features give "
                "numpy.eye(arms), or use another agent"
            )
        if isinstance(self.agent, InContext) and self.agent.config.form != "query":
            return Contexts(self.agent)
        shape = ProblemShape(1, self.options.horizon, arms, dim, torch.device("cpu"), self._dtype)
        with one_thread(), torch.inference_mode():
            return Rows(self.agent, shape)

    def save(self, path: Path, about: dict[str, Any]) -> None:
        """Write everything needed to go on, in one file that is whole or not there."""
        tensors: dict[str, Tensor] = {} if self._memory is None else self._memory.tensors()
        known = [] if self._memory is None else self._memory.known
        for name, user in self.users.items():
            for at, (features, mask, arm) in user.open.items():
                tensors |= {f"open.{name}.{at}": features, f"arm.{name}.{at}": torch.tensor(arm)}
                tensors |= {} if mask is None else {f"mask.{name}.{at}": mask}
        if self._scaler is not None:
            tensors |= {f"scaler.{key}": torch.from_numpy(held) for key, held in vars(self._scaler).items()}
        if self._same is not None:
            tensors["same"] = torch.from_numpy(self._same)
        about = about | {
            "agent": full_label(self.agent),
            "options": asdict(self.options),
            "number": self._number,
            "columns": self.columns,
            "arms": self._memory.arms if isinstance(self._memory, Rows) else 0,
            "known": known,
            "users": [[name, user.round, user.given_up] for name, user in self.users.items()],
        }
        content = {name: value.clone().contiguous() for name, value in tensors.items()}
        write_atomically(path, with_checksum(save(content), about))

    def take(self, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
        """Put what was saved in place; everything is checked, since a state may have been tampered with."""
        self._number, self.columns = _whole(about["number"]), _whole(about["columns"], most=10**6)
        for name, round, given_up in about["users"]:
            self.users[_whole(name)] = _User(_whole(round), _whole(given_up))
        if "same" in tensors:
            self._same = tensors["same"].numpy()
        if self.options.scale and self.columns:
            self._scaler = Scaler(self.columns)
            for key, held in vars(self._scaler).items():
                saved = tensors[f"scaler.{key}"].numpy()
                if saved.shape != held.shape or not np.isfinite(saved).all():
                    raise ValueError("its means of columns cannot be")
                held[:] = saved
        if not self.columns:
            return
        width = Scaler.width(self.columns) if self.options.scale else self.columns
        arms = _whole(about["arms"], most=10**5)
        if isinstance(self.agent, InContext) and self.agent.config.form != "query":
            self._memory = Contexts(self.agent)
        else:
            shape = ProblemShape(1, self.options.horizon, max(arms, 1), width, torch.device("cpu"), self._dtype)
            self._memory = Rows(self.agent, shape)
        with one_thread(), torch.inference_mode():
            self._memory.take([_whole(name) for name in about["known"]], tensors)
        for key in sorted((key for key in tensors if key.startswith("open.")), key=lambda key: int(key.split(".")[2])):
            _, name, at = key.split(".")
            features, arm, mask = tensors[key], int(tensors[f"arm.{name}.{at}"]), tensors.get(f"mask.{name}.{at}")
            sound = features.ndim == 2 and features.shape[1] == width and features.dtype == self._dtype
            sound = sound and 0 <= arm < len(features) and bool((features.abs() <= LARGEST).all())
            sound = sound and (mask is None or (mask.shape == features.shape[:1] and mask.dtype == torch.bool))
            if not sound or not 1 <= int(at) <= self.users[int(name)].round:
                raise ValueError("it holds arms or features that cannot be")
            self.users[int(name)].open[int(at)] = (features, mask, arm)


def _drawn(likely: Tensor, uniform: Tensor) -> Tensor:
    """An arm `[U]` from probabilities `[U, A]` and uniform numbers `[U]`."""
    ends = likely.double().cumsum(dim=1)
    return (uniform.unsqueeze(1) * ends[:, -1:] >= ends).sum(dim=1).clamp(max=likely.shape[1] - 1)


def _whole(value: Any, most: int = 2**62) -> int:
    """A whole number of a saved state."""
    number = operator.index(value)
    if not 0 <= number <= most:
        raise ValueError(f"{number} cannot be")
    return number
