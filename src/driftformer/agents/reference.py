"""The two ends of the scale: the agent that knows nothing and the one that knows every mean reward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from driftformer.agents.base import ProblemShape, Truth
from driftformer.randomness import Stream


@dataclass(frozen=True)
class NoInfo:
    auxiliary_value: None = None


@dataclass
class NoState:
    """Nothing to remember."""


@dataclass
class Revealed:
    """The mean rewards of this round, as the simulation tells them."""

    mean_rewards: Tensor | None = None  # [B, A]


@dataclass(frozen=True)
class Random:
    """Chooses uniformly among the offered arms."""

    name: ClassVar[str] = "random"
    learns: ClassVar[bool] = False

    def init(self, shape: ProblemShape) -> NoState:
        return NoState()

    def act(self, state: NoState, action_set: Tensor, rng: Stream) -> tuple[Tensor, NoInfo]:
        return (rng.uniform() * action_set.shape[1]).long(), NoInfo()

    def update(self, state: NoState, action_set: Tensor, arm: Tensor, reward: Tensor, info: NoInfo) -> NoState:
        return state


@dataclass(frozen=True)
class Optimal:
    """Always takes the arm with the highest mean reward; its regret is zero by definition."""

    name: ClassVar[str] = "optimal"
    learns: ClassVar[bool] = False

    def why_not(self, environment: Any) -> None:
        return None

    def init(self, shape: ProblemShape) -> Revealed:
        return Revealed()

    def inform(self, state: Revealed, truth: Truth) -> Revealed:
        return Revealed(truth.mean_rewards)

    def act(self, state: Revealed, action_set: Tensor, rng: Stream) -> tuple[Tensor, NoInfo]:
        assert state.mean_rewards is not None, "the simulation informs a privileged agent before it acts"
        return state.mean_rewards.argmax(dim=1), NoInfo()

    def update(self, state: Revealed, action_set: Tensor, arm: Tensor, reward: Tensor, info: NoInfo) -> Revealed:
        return state
