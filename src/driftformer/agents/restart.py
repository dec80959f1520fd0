"""Restarts that need no test: after a fixed number of rounds, or, by an oracle, where the world truly changed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import Agent, ProblemShape, check_base, require_window
from driftformer.agents.linucb import LinUCB
from driftformer.agents.rows import first_after_restart, restart, restarts_played
from driftformer.errors import require_count
from driftformer.problem import Observation, Traits, Truth
from driftformer.randomness import Stream


@dataclass(frozen=True)
class RestartState:
    shape: ProblemShape
    base: Any
    age: Tensor  # [B] rounds since the last restart
    restarts: Tensor  # [B]


def _begin(base: Agent, shape: ProblemShape) -> RestartState:
    count = torch.zeros(shape.batch, dtype=torch.long, device=shape.device)
    return RestartState(shape, base.init(shape), count, count.clone())


def _again(base: Agent, state: RestartState, signal: Tensor) -> RestartState:
    """RM: where the signal `[B]` is set, the base agent begins again."""
    fresh = base.init(replace(state.shape, batch=1))
    age = state.age.masked_fill(signal, 0)
    return RestartState(state.shape, restart(state.base, signal, fresh), age, state.restarts + signal)


@dataclass(frozen=True)
class PeriodicRestart:
    """A base agent that begins again every `every` rounds."""

    base: Agent = field(default_factory=LinUCB)
    every: int = 50
    name: ClassVar[str] = "restart"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_count("every", self.every)
        check_base(self.base)

    def init(self, shape: ProblemShape) -> RestartState:
        require_window("every", self.every, shape)
        return _begin(self.base, replace(shape, horizon=self.every))  # no base agent sees more rounds than that

    def act(self, state: RestartState, observation: Observation, rng: Stream) -> tuple[Tensor, Any]:
        return self.base.act(state.base, observation, rng)

    def update(
        self, state: RestartState, observation: Observation, arm: Tensor, reward: Tensor, info: Any
    ) -> RestartState:
        base = self.base.update(state.base, observation, arm, reward, info)
        after = replace(state, base=base, age=state.age + 1)
        return _again(self.base, after, after.age == self.every)

    def events(self, state: RestartState) -> dict[str, Tensor]:
        return {"restarted": first_after_restart(state.age, state.restarts)}

    def diagnostics(self, state: RestartState) -> dict[str, Tensor]:
        return {"restarts": restarts_played(state.age, state.restarts)}


@dataclass(frozen=True)
class ChangePointOracle:
    """A base agent that begins again in the very round in which the rewards change."""

    base: Agent = field(default_factory=LinUCB)
    name: ClassVar[str] = "change-point-oracle"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_base(self.base)

    def why_not(self, traits: Traits) -> str | None:
        return None if traits.abrupt else "rewards change there in every round, so it would never learn"

    def init(self, shape: ProblemShape) -> RestartState:
        return _begin(self.base, shape)

    def inform(self, state: RestartState, truth: Truth) -> RestartState:
        assert truth.changed is not None, "an environment whose traits say abrupt tells when"
        return _again(self.base, state, truth.changed)

    def act(self, state: RestartState, observation: Observation, rng: Stream) -> tuple[Tensor, Any]:
        return self.base.act(state.base, observation, rng)

    def update(
        self, state: RestartState, observation: Observation, arm: Tensor, reward: Tensor, info: Any
    ) -> RestartState:
        return replace(state, base=self.base.update(state.base, observation, arm, reward, info), age=state.age + 1)

    def events(self, state: RestartState) -> dict[str, Tensor]:
        return {"restarted": first_after_restart(state.age, state.restarts)}

    def diagnostics(self, state: RestartState) -> dict[str, Tensor]:
        return {"restarts": restarts_played(state.age, state.restarts)}
