"""Forgetting by discounting: an observation that is s rounds old counts γ^s.

V = λI + Σ γ^(t-s)·xxᵀ, θ̂ = V⁻¹ Σ γ^(t-s)·r·x, and, where the paper has it, a second matrix Ṽ = λI + Σ γ^(2(t-s))·xxᵀ.
The ridge λI is not discounted, so V has no rank-one recursion, and each round pays for a Cholesky factorisation.

- `weighted-linucb`: LB-WeightUCB of Wang, Zhao and Zhou (2023): one matrix, width ‖x‖ in V⁻¹.
- `discounted-linucb`: D-LinUCB of Russac, Vernade and Cappé (2019): two matrices, width ‖x‖ in V⁻¹ṼV⁻¹.
- `discounted-thompson`: D-LinTS of Kim and Tewari (2020): samples θ̂ + √v·V⁻¹Ṽ^½·z.

The papers' confidence radius, which holds uniformly and is far too wide in practice, is the constant α (or √v).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, pick
from driftformer.agents.ridge import identity, inner, vector
from driftformer.errors import require_real
from driftformer.randomness import Stream


@dataclass(frozen=True)
class BoundInfo:
    values: Tensor  # [B, A] what the choice was made by
    arm: Tensor  # [B]

    @property
    def auxiliary_value(self) -> Tensor:
        """The value of the chosen arm, `[B]`."""
        return pick(self.values, self.arm)


@dataclass
class Weighted:
    gram: Tensor  # [B, d, d] Σ γ^(t-s)·xxᵀ
    moment: Tensor  # [B, d] Σ γ^(t-s)·r·x


@dataclass
class TwiceWeighted:
    gram: Tensor  # [B, d, d]
    squared: Tensor  # [B, d, d] Σ γ^(2(t-s))·xxᵀ
    moment: Tensor  # [B, d]


def _check(gamma: float, ridge: float) -> None:
    require_real("gamma", gamma, 0.0, above=True, most=1.0)
    require_real("ridge", ridge, 0.0, above=True)


def _factor(gram: Tensor, ridge: float) -> Tensor:
    """The lower Cholesky factor of gram + ridge·I, `[B, d, d]`."""
    eye = torch.eye(gram.shape[1], device=gram.device, dtype=gram.dtype)
    factor: Tensor = torch.linalg.cholesky_ex(torch.add(gram, eye, alpha=ridge)).L
    return factor


def _whiten(factor: Tensor, rows: Tensor) -> Tensor:
    """L⁻¹x of each row x, `[B, A, d]`."""
    whitened: Tensor = torch.linalg.solve_triangular(factor.mT, rows, upper=True, left=False)
    return whitened


def _age(gram: Tensor, features: Tensor, weight: float) -> Tensor:
    """weight·gram + xxᵀ, in place."""
    return gram.mul_(weight).addcmul_(features.unsqueeze(2), features.unsqueeze(1))


def _predict(factor: Tensor, action_set: Tensor, moment: Tensor) -> tuple[Tensor, Tensor]:
    """The mean xᵀθ̂ `[B, A]` and L⁻¹x `[B, A, d]` of each arm, in one triangular solve."""
    solved = _whiten(factor, torch.cat([action_set, moment.unsqueeze(1)], dim=1))
    whitened = solved[:, :-1]
    return inner(whitened, solved[:, -1]), whitened


@dataclass(frozen=True)
class WeightedLinUCB:
    """Optimism over discounted ridge regression, with one matrix."""

    gamma: float = 0.95
    alpha: float = 1.0
    ridge: float = 1.0
    name: ClassVar[str] = "weighted-linucb"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check(self.gamma, self.ridge)
        require_real("alpha", self.alpha, 0.0)

    def init(self, shape: ProblemShape) -> Weighted:
        return Weighted(identity(shape, 0.0), vector(shape, 0.0))

    def act(self, state: Weighted, action_set: Tensor, rng: Stream) -> tuple[Tensor, BoundInfo]:
        mean, whitened = _predict(_factor(state.gram, self.ridge), action_set, state.moment)
        bound = torch.add(mean, whitened.square().sum(-1).sqrt(), alpha=self.alpha)
        arm = bound.argmax(dim=1)
        return arm, BoundInfo(bound, arm)

    def update(self, state: Weighted, action_set: Tensor, arm: Tensor, reward: Tensor, info: BoundInfo) -> Weighted:
        features = pick(action_set, arm)
        moment = state.moment.mul_(self.gamma).addcmul_(features, reward.unsqueeze(1))
        return Weighted(_age(state.gram, features, self.gamma), moment)


def _init_twice(shape: ProblemShape) -> TwiceWeighted:
    return TwiceWeighted(identity(shape, 0.0), identity(shape, 0.0), vector(shape, 0.0))


def _age_twice(state: TwiceWeighted, features: Tensor, reward: Tensor, gamma: float) -> TwiceWeighted:
    return TwiceWeighted(
        _age(state.gram, features, gamma),
        _age(state.squared, features, gamma * gamma),
        state.moment.mul_(gamma).addcmul_(features, reward.unsqueeze(1)),
    )


@dataclass(frozen=True)
class DiscountedLinUCB:
    """Optimism over discounted ridge regression, with the second matrix of D-LinUCB."""

    gamma: float = 0.95
    alpha: float = 1.0
    ridge: float = 1.0
    name: ClassVar[str] = "discounted-linucb"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check(self.gamma, self.ridge)
        require_real("alpha", self.alpha, 0.0)

    def init(self, shape: ProblemShape) -> TwiceWeighted:
        return _init_twice(shape)

    def act(self, state: TwiceWeighted, action_set: Tensor, rng: Stream) -> tuple[Tensor, BoundInfo]:
        factor = _factor(state.gram, self.ridge)
        mean, whitened = _predict(factor, action_set, state.moment)
        direction = torch.linalg.solve_triangular(factor, whitened, upper=False, left=False)  # [B, A, d] V⁻¹x
        width = (torch.bmm(direction, state.squared) * direction).sum(-1) + self.ridge * direction.square().sum(-1)
        bound = torch.add(mean, width.clamp_min_(0).sqrt_(), alpha=self.alpha)
        arm = bound.argmax(dim=1)
        return arm, BoundInfo(bound, arm)

    def update(
        self, state: TwiceWeighted, action_set: Tensor, arm: Tensor, reward: Tensor, info: BoundInfo
    ) -> TwiceWeighted:
        return _age_twice(state, pick(action_set, arm), reward, self.gamma)


@dataclass(frozen=True)
class DiscountedThompson:
    """Posterior sampling over discounted ridge regression."""

    gamma: float = 0.95
    variance: float = 0.3
    ridge: float = 1.0
    name: ClassVar[str] = "discounted-thompson"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check(self.gamma, self.ridge)
        require_real("variance", self.variance, 0.0)

    def init(self, shape: ProblemShape) -> TwiceWeighted:
        return _init_twice(shape)

    def act(self, state: TwiceWeighted, action_set: Tensor, rng: Stream) -> tuple[Tensor, BoundInfo]:
        noise = rng.normal(action_set.shape[2]).unsqueeze(1)  # [B, 1, d]
        push = torch.bmm(noise, _factor(state.squared, self.ridge).mT)  # [B, 1, d] Ṽ^½·z
        target = torch.add(state.moment.unsqueeze(1), push, alpha=math.sqrt(self.variance))
        factor = _factor(state.gram, self.ridge)
        sampled = torch.linalg.solve_triangular(factor, _whiten(factor, target), upper=False, left=False)
        values = inner(action_set, sampled.squeeze(1))
        arm = values.argmax(dim=1)
        return arm, BoundInfo(values, arm)

    def update(
        self, state: TwiceWeighted, action_set: Tensor, arm: Tensor, reward: Tensor, info: BoundInfo
    ) -> TwiceWeighted:
        return _age_twice(state, pick(action_set, arm), reward, self.gamma)
