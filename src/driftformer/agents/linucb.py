"""LinUCB: act on the upper confidence bound xᵀθ̂ + α·√(xᵀA⁻¹x) of each arm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo
from driftformer.agents.ridge import Prediction, Ridge, absorb, identity, precise, predict, require_ridge, vector
from driftformer.errors import require_real
from driftformer.problem import Observation
from driftformer.randomness import Stream


@dataclass(frozen=True)
class LinUCBInfo(ValueInfo):
    """Upper confidence bounds, and the regression's prediction behind them."""

    prediction: Prediction


@dataclass(frozen=True)
class LinUCB:
    """Optimism with confidence width α around ridge regression."""

    alpha: float = 1.0
    ridge: float = 1.0
    name: ClassVar[str] = "linucb"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_real("alpha", self.alpha, 0.0)
        require_ridge(self.ridge)

    def init(self, shape: ProblemShape) -> Ridge:
        shape = precise(shape)
        return Ridge(inverse=identity(shape, 1 / self.ridge), theta=vector(shape, 0.0))

    def act(self, state: Ridge, observation: Observation, rng: Stream) -> tuple[Tensor, LinUCBInfo]:
        prediction = predict(state, observation.action_set)
        bound = torch.add(prediction.mean, prediction.variance.sqrt(), alpha=self.alpha)  # [B, A]
        arm = observation.best(bound)
        return arm, LinUCBInfo(bound, arm, prediction)

    def update(self, state: Ridge, observation: Observation, arm: Tensor, reward: Tensor, info: LinUCBInfo) -> Ridge:
        return absorb(state, info.prediction, arm, reward)
