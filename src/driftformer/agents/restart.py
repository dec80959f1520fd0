"""Restarts that need no test: after a fixed number of rounds, or, by an oracle, where the world truly changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import Agent, ProblemShape, check_base, require_window
from driftformer.agents.linucb import LinUCB
from driftformer.agents.rows import restart
from driftformer.errors import InputError, require_count
from driftformer.problem import Observation, Traits, Truth
from driftformer.randomness import Stream


@dataclass(frozen=True)
class RestartState:
    """Of an agent that begins again now and then."""

    shape: ProblemShape
    memory: Any  # what a restart throws away
    age: Tensor  # [B] rounds since the last restart
    restarts: Tensor  # [B]


def begin(shape: ProblemShape, memory: Any) -> RestartState:
    count = torch.zeros(shape.batch, dtype=torch.long, device=shape.device)
    return RestartState(shape, memory, count, count.clone())


def begin_again(state: RestartState, signal: Tensor, init: Callable[[ProblemShape], Any]) -> RestartState:
    """RM: where the signal `[B]` is set, the memory is as `init` makes it."""
    memory = restart(state.memory, signal, init(replace(state.shape, batch=1)))
    return RestartState(state.shape, memory, state.age.masked_fill(signal, 0), state.restarts + signal)


def restart_events(state: RestartState) -> dict[str, Tensor]:
    """Whether the round just played was the first of a new start."""
    return {"restarted": (state.age == 1) & (state.restarts > 0)}


def restart_diagnostics(state: RestartState) -> dict[str, Tensor]:
    """Restarts that a round has followed: one after the last round changes nothing."""
    return {"restarts": state.restarts - ((state.age == 0) & (state.restarts > 0)).long()}


@dataclass(frozen=True)
class PeriodicRestart:
    """A base agent that begins again every `every` rounds."""

    base: Agent = field(default_factory=LinUCB)
    every: int = 50
    name: ClassVar[str] = "restart"
    learns: ClassVar[bool] = True
    plans_ahead: ClassVar[bool] = False
    episodic: ClassVar[bool] = True
    events = staticmethod(restart_events)
    diagnostics = staticmethod(restart_diagnostics)

    def __post_init__(self) -> None:
        require_count("every", self.every)
        check_base(self.base)

    def init(self, shape: ProblemShape) -> RestartState:
        require_window("every", self.every, shape)
        if shape.stages and self.every % shape.stages:
            raise InputError(
                f"every is {self.every}, not whole episodes of {shape.stages} steps; give a multiple of {shape.stages}"
            )
        shape = replace(shape, horizon=self.every)  # no base agent sees more rounds than that
        return begin(shape, self.base.init(shape))

    def act(self, state: RestartState, observation: Observation, rng: Stream) -> tuple[Tensor, Any]:
        return self.base.act(state.memory, observation, rng)

    def update(
        self, state: RestartState, observation: Observation, arm: Tensor, reward: Tensor, info: Any
    ) -> RestartState:
        memory, age = self.base.update(state.memory, observation, arm, reward, info), state.age + 1
        return begin_again(replace(state, memory=memory, age=age), age == self.every, self.base.init)


@dataclass(frozen=True)
class ChangePointOracle:
    """A base agent that begins again in the very round in which the rewards change."""

    base: Agent = field(default_factory=LinUCB)
    name: ClassVar[str] = "change-point-oracle"
    learns: ClassVar[bool] = True
    episodic: ClassVar[bool] = True
    events = staticmethod(restart_events)
    diagnostics = staticmethod(restart_diagnostics)

    def __post_init__(self) -> None:
        check_base(self.base)

    def why_not(self, traits: Traits) -> str | None:
        return None if traits.abrupt else "rewards change there in every round, so it would never learn"

    def init(self, shape: ProblemShape) -> RestartState:
        return begin(shape, self.base.init(shape))

    def inform(self, state: RestartState, truth: Truth) -> RestartState:
        assert truth.changed is not None, "an environment whose traits say abrupt tells when"
        return begin_again(state, truth.changed, self.base.init)

    def act(self, state: RestartState, observation: Observation, rng: Stream) -> tuple[Tensor, Any]:
        return self.base.act(state.memory, observation, rng)

    def update(
        self, state: RestartState, observation: Observation, arm: Tensor, reward: Tensor, info: Any
    ) -> RestartState:
        memory = self.base.update(state.memory, observation, arm, reward, info)
        return replace(state, memory=memory, age=state.age + 1)
