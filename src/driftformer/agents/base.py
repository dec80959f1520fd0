"""What an agent is: a small frozen description plus pure functions over a state value.

All tensors have a leading batch dimension of independent problems. `update` may consume the state it is given, so
keep no reference to it. `act` also returns an info value with whatever `update` can reuse and with the auxiliary
value r̃_t that MASTER needs: the agent's optimistic guess of the reward it is about to get.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from driftformer.errors import InputError
from driftformer.problem import Observation, Truth
from driftformer.randomness import Stream


@dataclass(frozen=True)
class ProblemShape:
    """The sizes an agent prepares for."""

    batch: int
    horizon: int
    arms: int
    dim: int
    device: torch.device
    dtype: torch.dtype
    states: int = 0
    stages: int = 0
    """Steps of an episode; 0 for bandits. The horizon is a number of steps, whole episodes of them."""
    stages_differ: bool = False
    """The steps of an episode have rewards and transitions of their own."""

    @property
    def episodes(self) -> int:
        """Episodes of the horizon; in a bandit every round is one."""
        return self.horizon // max(self.stages, 1)


class Info(Protocol):
    """What `act` hands on to `update` and to observers."""

    @property
    def auxiliary_value(self) -> Tensor | None:
        """r̃_t, `[B]`; None for an agent that does not learn."""
        ...


class Agent(Protocol):
    """Anything that can be evaluated.

    It may also have `why_not(traits)`: why it cannot play such a problem, or None if it can; `episodic`, True where it
    can play problems with episodes of several steps (`Traits.stages`); where it draws its arm,
    `probabilities(observation, info)`: how likely it was to play each, `[B, A]`; and `plans_ahead`, True where its
    state holds no more rounds than `shape.horizon`.
    """

    @property
    def name(self) -> str: ...
    @property
    def learns(self) -> bool:
        """Whether it has an auxiliary value."""
        ...

    def init(self, shape: ProblemShape) -> Any:
        """The state before round 1: a dataclass of tensors with B rows each."""
        ...

    def act(self, state: Any, observation: Observation, rng: Stream) -> tuple[Tensor, Any]:
        """Choose one of the offered arms, `[B]`."""
        ...

    def update(self, state: Any, observation: Observation, arm: Tensor, reward: Tensor, info: Any) -> Any:
        """The state after the reward of `arm`, which need not be the arm that `act` chose."""
        ...


class NamedAgent(Agent, Protocol):
    """An agent that was made by its name."""

    def online(self, **options: Any) -> Any:
        """Put it to work in a service: see `agents.services.online`."""
        ...


@runtime_checkable
class Observed(Protocol):
    """An agent that can tell what happened inside it."""

    def events(self, state: Any) -> dict[str, Tensor]:
        """What happened in the last round, `[B]` each; kept with trajectories."""
        ...

    def diagnostics(self, state: Any) -> dict[str, Tensor]:
        """What happened over all rounds so far, `[B]` each; kept with the regret."""
        ...


@runtime_checkable
class Privileged(Protocol):
    """An agent that is told the environment's truth before it acts."""

    def inform(self, state: Any, truth: Truth) -> Any:
        """The state with this round's truth taken in."""
        ...


def check_base(base: Agent) -> None:
    """Refuse to wrap an agent that has no auxiliary value, or one that must be told the truth."""
    if isinstance(base, Privileged):
        raise InputError(f"base is '{base.name}', which must be told the truth; use an ordinary agent")
    if not base.learns:
        raise InputError(f"base is '{base.name}', which has no auxiliary value; use one that learns")


def require_window(option: str, window: int, shape: ProblemShape) -> None:
    """Refuse a memory that is longer than the problem."""
    if window > shape.horizon:
        raise InputError(
            f"{option} is {window}, longer than the horizon of {shape.horizon}; give at most the horizon, or use linucb"
        )


@dataclass(frozen=True)
class ValueInfo:
    """What an agent that compares one value for each arm hands on."""

    values: Tensor  # [B, A]
    auxiliary_value: Tensor  # [B] the value of the chosen arm


def choose(observation: Observation, values: Tensor) -> tuple[Tensor, ValueInfo]:
    """The offered arm with the highest value."""
    arm, value = observation.choose(values)
    return arm, ValueInfo(values, value)
