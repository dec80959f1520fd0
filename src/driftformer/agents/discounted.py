"""Forgetting by discounting: an observation that is s rounds old counts γ^s.

V = λI + Σ γ^(t-s)·xxᵀ, θ̂ = V⁻¹ Σ γ^(t-s)·r·x, and, where the paper has it, a second matrix Ṽ = λI + Σ γ^(2(t-s))·xxᵀ.
The ridge λI is not discounted: V' = γV + xxᵀ + (1−γ)λI has no rank-one recursion for its inverse, and each round pays
for a Cholesky factorisation.

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

from driftformer.agents.base import ProblemShape, ValueInfo, choose
from driftformer.agents.gram import factorise, fade, predict, unwhiten, whiten
from driftformer.agents.ridge import identity, inner, require_ridge, vector
from driftformer.errors import require_real
from driftformer.problem import Observation
from driftformer.randomness import Stream


@dataclass
class Weighted:
    gram: Tensor  # [B, d, d] V
    moment: Tensor  # [B, d] Σ γ^(t-s)·r·x


@dataclass
class TwiceWeighted:
    gram: Tensor  # [B, d, d] V
    squared: Tensor  # [B, d, d] Ṽ
    moment: Tensor  # [B, d]


def _check(gamma: float, ridge: float) -> None:
    require_real("gamma", gamma, 0.0, above=True, most=1.0)
    require_ridge(ridge)


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
        return Weighted(identity(shape, self.ridge), vector(shape, 0.0))

    def act(self, state: Weighted, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        mean, whitened = predict(factorise(state.gram), observation.action_set, state.moment)
        return choose(observation, torch.add(mean, whitened.square().sum(-1).sqrt(), alpha=self.alpha))

    def update(
        self, state: Weighted, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo
    ) -> Weighted:
        features = observation.features(arm)
        moment = state.moment.mul_(self.gamma).addcmul_(features, reward.unsqueeze(1))
        return Weighted(fade(state.gram, features, self.gamma, self.ridge), moment)


def _init_twice(shape: ProblemShape, ridge: float) -> TwiceWeighted:
    return TwiceWeighted(identity(shape, ridge), identity(shape, ridge), vector(shape, 0.0))


def _age_twice(state: TwiceWeighted, features: Tensor, reward: Tensor, gamma: float, ridge: float) -> TwiceWeighted:
    return TwiceWeighted(
        fade(state.gram, features, gamma, ridge),
        fade(state.squared, features, gamma * gamma, ridge),
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
        return _init_twice(shape, self.ridge)

    def act(self, state: TwiceWeighted, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        factor = factorise(state.gram)
        mean, whitened = predict(factor, observation.action_set, state.moment)
        direction = unwhiten(factor, whitened)  # [B, A, d] V⁻¹x
        width = (torch.bmm(direction, state.squared) * direction).sum(-1)  # [B, A] xᵀV⁻¹ṼV⁻¹x
        return choose(observation, torch.add(mean, width.clamp_min_(0).sqrt_(), alpha=self.alpha))

    def update(
        self, state: TwiceWeighted, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo
    ) -> TwiceWeighted:
        return _age_twice(state, observation.features(arm), reward, self.gamma, self.ridge)


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
        return _init_twice(shape, self.ridge)

    def act(self, state: TwiceWeighted, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        noise = rng.normal(observation.action_set.shape[2]).unsqueeze(1)  # [B, 1, d]
        push = torch.bmm(noise, factorise(state.squared).mT)  # [B, 1, d] Ṽ^½·z
        target = torch.add(state.moment.unsqueeze(1), push, alpha=math.sqrt(self.variance))
        factor = factorise(state.gram)
        sampled = unwhiten(factor, whiten(factor, target)).squeeze(1)  # [B, d]
        return choose(observation, inner(observation.action_set, sampled))

    def update(
        self, state: TwiceWeighted, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo
    ) -> TwiceWeighted:
        return _age_twice(state, observation.features(arm), reward, self.gamma, self.ridge)
