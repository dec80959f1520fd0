"""Ridge regression that learns one observation at a time, in two forms.

Both keep θ̂ = A⁻¹ Σ x·r with A = ridge·I + Σ xxᵀ, and neither refits from the history nor inverts a matrix:

- `Ridge` carries A⁻¹ and applies the Sherman–Morrison formula. Cheapest where every arm's width xᵀA⁻¹x is needed.
- `RootRidge` carries a square root S with SSᵀ = A⁻¹ and applies Potter's formula. Draws from N(θ̂, v·A⁻¹) are then one
  product, S times a normal vector, and A⁻¹ stays positive definite by construction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape
from driftformer.errors import require_real
from driftformer.problem import place_of, take


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


@dataclass
class RootRidge:
    root: Tensor  # [B, d, d] S with SSᵀ = A⁻¹
    theta: Tensor  # [B, d] θ̂


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


def draw(model: RootRidge, noise: Tensor, deviation: float) -> Tensor:
    """A sample of N(θ̂, deviation²·A⁻¹) from standard normal noise `[B, d]`."""
    return torch.add(model.theta, _times_root(model, noise), alpha=deviation)


def _times_root(model: RootRidge, vectors: Tensor) -> Tensor:
    """S times a vector `[B, d]` in each problem; much faster as a row times Sᵀ than as S times a column."""
    return torch.bmm(vectors.unsqueeze(1), model.root.mT).squeeze(1)


def absorb_root(model: RootRidge, features: Tensor, reward: Tensor, informative: Tensor | None = None) -> RootRidge:
    """Learn from one observation (x `[B, d]`, reward `[B]`); rows where `informative` is 0 stay as they are."""
    whitened = torch.bmm(features.unsqueeze(1), model.root).squeeze(1)  # [B, d] Sᵀx
    surprise = reward - (features * model.theta).sum(-1)  # [B]
    if informative is not None:
        whitened, surprise = whitened * informative.unsqueeze(1), surprise * informative
    direction = _times_root(model, whitened)  # [B, d] A⁻¹x
    shrink = 1 / (1 + whitened.square().sum(-1))  # [B] 1 / (1 + xᵀA⁻¹x)
    model.theta.addcmul_(direction, (surprise * shrink).unsqueeze(1))
    step = direction * (shrink / (1 + shrink.sqrt())).unsqueeze(1)
    model.root.addcmul_(step.unsqueeze(2), whitened.unsqueeze(1), value=-1)
    return model
