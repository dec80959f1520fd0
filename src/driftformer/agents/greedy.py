"""Ridge regression without optimism: always the best guess, or the best guess and now and then a random arm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from driftformer.agents.base import ProblemShape, ValueInfo, choose
from driftformer.agents.linucb import LinUCB, Ridge, absorb, inner, predict, require_ridge
from driftformer.errors import require_real
from driftformer.problem import Observation, pick
from driftformer.randomness import Stream


@dataclass(frozen=True)
class Greedy:
    """Plays the arm with the highest estimate xᵀθ̂: LinUCB with α = 0."""

    ridge: float = 1.0
    name: ClassVar[str] = "greedy"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_ridge(self.ridge)

    def init(self, shape: ProblemShape) -> Ridge:
        return LinUCB(ridge=self.ridge).init(shape)

    def act(self, state: Ridge, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        return choose(observation, inner(observation.action_set, state.theta))

    def update(self, state: Ridge, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo) -> Ridge:
        played = predict(state, observation.features(arm).unsqueeze(1))  # of that arm alone
        return absorb(state, played, torch.zeros_like(arm), reward)


@dataclass(frozen=True)
class EpsilonGreedy:
    """Plays a random offered arm with probability ε, else the one with the highest estimate."""

    epsilon: float = 0.1
    ridge: float = 1.0
    name: ClassVar[str] = "epsilon-greedy"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_real("epsilon", self.epsilon, 0.0, most=1.0)
        require_ridge(self.ridge)

    def init(self, shape: ProblemShape) -> Ridge:
        return Greedy(self.ridge).init(shape)

    def act(self, state: Ridge, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        estimates = inner(observation.action_set, state.theta)  # [B, A]
        chance = rng.uniform(2)  # [B, 2] whether to explore, and where
        explore = chance[:, 0] < self.epsilon
        arm = torch.where(explore, observation.drawn(chance[:, 1]), observation.best(estimates))
        return arm, ValueInfo(estimates, pick(estimates, arm))

    def probabilities(self, observation: Observation, info: ValueInfo) -> Tensor:
        """How likely it was to play each arm, `[B, A]`."""
        best = functional.one_hot(observation.best(info.values), info.values.shape[1]).to(info.values)
        return (1 - self.epsilon) * best + self.epsilon * observation.evenly()

    def update(self, state: Ridge, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo) -> Ridge:
        return Greedy(self.ridge).update(state, observation, arm, reward, info)
