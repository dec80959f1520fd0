"""LinUCB: act on the upper confidence bound xᵀθ̂ + α·√(xᵀA⁻¹x) of each arm; and the ridge regression behind it.

θ̂ = A⁻¹ Σ x·r with A = ridge·I + Σ xxᵀ. The regression learns one observation at a time and neither refits from the
history nor inverts a matrix: it carries A⁻¹ and applies the Sherman–Morrison formula, which is cheapest where the width
xᵀA⁻¹x of every arm is needed. For draws from N(θ̂, v·A⁻¹), `thompson.RootRidge` carries a square root instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo
from driftformer.errors import require_real
from driftformer.problem import Observation, place_of, take
from driftformer.randomness import Stream

LONG = 100_000
"""Rounds past which A⁻¹ is kept in float64. In float32 it is rounded at 6e-8 of 1/ridge along directions that are never
offered, and what is learned along the others sinks below that; over a million rounds the error would go on growing."""

LEAST_RIDGE = 1e-3
"""Below it, float32 cannot hold what the first observations take away from ‖x‖²/ridge."""


def require_ridge(ridge: float) -> None:
    require_real("ridge", ridge, LEAST_RIDGE)


def precise(shape: ProblemShape) -> ProblemShape:
    """The same problems, in a type that holds what is learned over all their rounds."""
    return replace(shape, dtype=torch.float64) if shape.horizon > LONG else shape


def identity(shape: ProblemShape, factor: float) -> Tensor:
    """factor·I for every problem, `[B, d, d]`."""
    eye = torch.eye(shape.dim, device=shape.device, dtype=shape.dtype) * factor
    return eye.expand(shape.batch, -1, -1).clone()


def vector(shape: ProblemShape, value: float) -> Tensor:
    """A vector of equal entries for every problem, `[B, d]`."""
    return torch.full((shape.batch, shape.dim), value, device=shape.device, dtype=shape.dtype)


def inner(action_set: Tensor, theta: Tensor) -> Tensor:
    """⟨x, θ⟩ of every arm, `[B, A]`."""
    return (action_set * theta.unsqueeze(1)).sum(-1)


@dataclass
class Ridge:
    inverse: Tensor  # [B, d, d] A⁻¹, exactly symmetric
    theta: Tensor  # [B, d] θ̂


@dataclass(frozen=True)
class Prediction:
    """What a `Ridge` says of every arm of an action set."""

    mean: Tensor  # [B, A] xᵀθ̂
    variance: Tensor  # [B, A] xᵀA⁻¹x
    direction: Tensor  # [B, A, d] A⁻¹x


def predict(model: Ridge, action_set: Tensor) -> Prediction:
    action_set = action_set.to(model.inverse.dtype)
    direction = torch.bmm(action_set, model.inverse)
    variance = (direction * action_set).sum(-1).clamp_min_(0)
    return Prediction(inner(action_set, model.theta), variance, direction)


def absorb(model: Ridge, prediction: Prediction, arm: Tensor, reward: Tensor) -> Ridge:
    """Learn from the reward of one arm of the action set that `prediction` is about."""
    place = place_of(arm, prediction.mean.shape[1])
    direction = take(prediction.direction, place)  # [B, d] A⁻¹x
    spread = take(prediction.variance, place) + 1  # [B] 1 + xᵀA⁻¹x
    surprise = (reward - take(prediction.mean, place)) / spread  # [B]
    model.theta.addcmul_(direction, surprise.unsqueeze(1))
    scaled = direction * spread.rsqrt().unsqueeze(1)  # its outer product is symmetric to the last bit
    model.inverse.addcmul_(scaled.unsqueeze(2), scaled.unsqueeze(1), value=-1)
    return model


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
        bounds = torch.add(prediction.mean, prediction.variance.sqrt(), alpha=self.alpha)  # [B, A]
        arm, highest = observation.choose(bounds)
        return arm, LinUCBInfo(bounds, highest, prediction)

    def update(self, state: Ridge, observation: Observation, arm: Tensor, reward: Tensor, info: LinUCBInfo) -> Ridge:
        return absorb(state, info.prediction, arm, reward)
