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


@dataclass(frozen=True)
class Random:
    """Chooses uniformly among the offered arms."""

    name: ClassVar[str] = "random"
    learns: ClassVar[bool] = False
    episodic: ClassVar[bool] = True

    def init(self, shape: ProblemShape) -> None:
        """There is nothing to remember."""

    def act(self, state: None, observation: Observation, rng: Stream) -> tuple[Tensor, NoInfo]:
        return observation.drawn(rng.uniform()), NoInfo()

    def probabilities(self, observation: Observation, info: NoInfo) -> Tensor:
        return observation.evenly()

    def update(self, state: None, observation: Observation, arm: Tensor, reward: Tensor, info: NoInfo) -> None: ...


@dataclass(frozen=True)
class Optimal:
    """Always takes the arm that is worth most; its regret is zero by definition."""

    name: ClassVar[str] = "optimal"
    learns: ClassVar[bool] = False
    episodic: ClassVar[bool] = True

    def init(self, shape: ProblemShape) -> None:
        """The simulation's first word brings the values."""

    def inform(self, state: Tensor | None, truth: Truth) -> Tensor:
        return truth.values

    def act(self, state: Tensor, observation: Observation, rng: Stream) -> tuple[Tensor, NoInfo]:
        return observation.best(state), NoInfo()

    def update(self, state: Tensor, observation: Observation, arm: Tensor, reward: Tensor, info: NoInfo) -> Tensor:
        return state
