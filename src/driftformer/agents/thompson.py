"""Linear Thompson sampling: act greedily on a sample of N(θ̂, v·A⁻¹); and the ridge regression behind it.

The regression carries a square root S with SSᵀ = A⁻¹ and applies Potter's formula. A draw is then one product, S times
a normal vector, and A⁻¹ stays positive definite by construction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo, choose
from driftformer.agents.linucb import identity, inner, precise, require_ridge, vector
from driftformer.errors import require_real
from driftformer.problem import Observation
from driftformer.randomness import Stream


@dataclass
class RootRidge:
    root: Tensor  # [B, d, d] S with SSᵀ = A⁻¹
    theta: Tensor  # [B, d] θ̂


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


@dataclass(frozen=True)
class Thompson:
    """Posterior sampling with noise variance v around ridge regression."""

    variance: float = 0.3
    ridge: float = 1.0
    name: ClassVar[str] = "thompson"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_real("variance", self.variance, 0.0)
        require_ridge(self.ridge)

    def init(self, shape: ProblemShape) -> RootRidge:
        shape = precise(shape)
        return RootRidge(root=identity(shape, self.ridge**-0.5), theta=vector(shape, 0.0))

    def act(self, state: RootRidge, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        noise = rng.normal(observation.action_set.shape[2]).to(state.root.dtype)
        sampled = draw(state, noise, math.sqrt(self.variance))  # [B, d]
        return choose(observation, inner(observation.action_set, sampled))

    def update(
        self, state: RootRidge, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo
    ) -> RootRidge:
        return absorb_root(state, observation.features(arm).to(state.root.dtype), reward)
