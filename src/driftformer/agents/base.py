"""What an agent is: a small frozen description plus pure functions over a state value.

All tensors have a leading batch dimension of independent problems. `update` may consume the state it is given, so
keep no reference to it. `act` also returns an info value with whatever `update` can reuse and with the auxiliary
value r̃_t that MASTER needs: the agent's optimistic guess of the reward it is about to get.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from driftformer.errors import InputError
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


class Info(Protocol):
    """What `act` hands on to `update` and to observers."""

    @property
    def auxiliary_value(self) -> Tensor | None:
        """r̃_t, `[B]`; None for an agent that does not learn."""
        ...


class Agent(Protocol):
    """Anything that can be evaluated."""

    @property
    def name(self) -> str: ...
    @property
    def learns(self) -> bool:
        """Whether it has an auxiliary value."""
        ...

    def init(self, shape: ProblemShape) -> Any:
        """The state before round 1: a dataclass of tensors with B rows each."""
        ...

    def act(self, state: Any, action_set: Tensor, rng: Stream) -> tuple[Tensor, Any]:
        """Choose an arm `[B]` from the action set `[B, A, d]`."""
        ...

    def update(self, state: Any, action_set: Tensor, arm: Tensor, reward: Tensor, info: Any) -> Any:
        """The state after the reward of `arm`, which need not be the arm that `act` chose."""
        ...


class Truth(Protocol):
    """What a privileged agent may be told: in this round, reward = scale·(⟨a, w⟩ + ε) + shift, ε ~ N(0, noise²)."""

    @property
    def mean_rewards(self) -> Tensor: ...
    @property
    def scale(self) -> Tensor: ...
    @property
    def shift(self) -> Tensor: ...
    @property
    def redrawn(self) -> Tensor: ...
    @property
    def changed(self) -> Tensor: ...
    @property
    def noise(self) -> float: ...
    @property
    def prior_mean(self) -> float: ...
    @property
    def prior_variance(self) -> float: ...


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

    def why_not(self, environment: Any) -> str | None:
        """Why this agent cannot play here, or None if it can."""
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


def place_of(arm: Tensor, arms: int) -> Tensor:
    """Where each problem's chosen arm stands among all arms of the batch, `[B]`: an index into `[B·A, …]`."""
    return _first_arms(arm.shape[0], arms, arm.device) + arm


@lru_cache(maxsize=8)
def _first_arms(batch: int, arms: int, device: torch.device) -> Tensor:
    return torch.arange(batch, device=device) * arms


def take(values: Tensor, place: Tensor) -> Tensor:
    """The entries `[B, …]` of the chosen arms out of `[B, A, …]`, with their places as `place_of` gives them.

    One flat index_select is several times faster here than gather or advanced indexing.
    """
    return values.flatten(0, 1).index_select(0, place)


def pick(values: Tensor, arm: Tensor) -> Tensor:
    """The entry of each problem's chosen arm: `[B, A, …]` and `[B]` to `[B, …]`."""
    return take(values, place_of(arm, values.shape[1]))
