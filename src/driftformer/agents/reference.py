"""The two ends of the scale: the agent that knows nothing and the one that knows what every arm is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from driftformer.agents.base import ProblemShape
from driftformer.problem import Observation, Truth
from driftformer.randomness import Stream


@dataclass(frozen=True)
class NoInfo:
    auxiliary_value: None = None


@dataclass
class NoState:
    """Nothing to remember."""


@dataclass
class Revealed:
    """What the arms of this round are worth, as the simulation tells it."""

    values: Tensor  # [B, A]


@dataclass(frozen=True)
class Random:
    """Chooses uniformly among the offered arms."""

    name: ClassVar[str] = "random"
    learns: ClassVar[bool] = False

    def init(self, shape: ProblemShape) -> NoState:
        return NoState()

    def act(self, state: NoState, observation: Observation, rng: Stream) -> tuple[Tensor, NoInfo]:
        return observation.drawn(rng.uniform()), NoInfo()

    def probabilities(self, observation: Observation, info: NoInfo) -> Tensor:
        """How likely it was to play each arm, `[B, A]`."""
        return observation.uniform()

    def update(self, state: NoState, observation: Observation, arm: Tensor, reward: Tensor, info: NoInfo) -> NoState:
        return state


@dataclass(frozen=True)
class Optimal:
    """Always takes the arm that is worth most; its regret is zero by definition."""

    name: ClassVar[str] = "optimal"
    learns: ClassVar[bool] = False

    def init(self, shape: ProblemShape) -> NoState:
        return NoState()

    def inform(self, state: NoState | Revealed, truth: Truth) -> Revealed:
        return Revealed(truth.values)

    def act(self, state: Revealed, observation: Observation, rng: Stream) -> tuple[Tensor, NoInfo]:
        return observation.best(state.values), NoInfo()

    def update(self, state: Revealed, observation: Observation, arm: Tensor, reward: Tensor, info: NoInfo) -> Revealed:
        return state
