"""Forgetting by discounting: an observation that is s rounds old counts γ^s.

V = λI + Σ γ^(t-s)·xxᵀ, θ̂ = V⁻¹ Σ γ^(t-s)·r·x, and, where the paper has it, a second matrix Ṽ = λI + Σ γ^(2(t-s))·xxᵀ.
The ridge λI is not discounted: V' = γV + xxᵀ + (1−γ)λI has no rank-one recursion for its inverse, and each round pays
for a Cholesky factorisation, after which one triangular solve serves all arms.

- `weighted-linucb`: LB-WeightUCB of Wang, Zhao and Zhou (2023): one matrix, width ‖x‖ in V⁻¹.
- `discounted-linucb`: D-LinUCB of Russac, Vernade and Cappé (2019): two matrices, width ‖x‖ in V⁻¹ṼV⁻¹.
- `discounted-thompson`: D-LinTS of Kim and Tewari (2020): samples θ̂ + √v·V⁻¹Ṽ^½·z.

The papers' confidence radius, which holds uniformly and is far too wide in practice, is the constant α (or √v).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo, choose
from driftformer.agents.linucb import identity, inner, require_ridge, vector
from driftformer.errors import require_real
from driftformer.problem import Observation
from driftformer.randomness import Stream


@dataclass
class Weighted:
    gram: Tensor  # [B, d, d] V
    moment: Tensor  # [B, d] Σ γ^(t-s)·r·x


@dataclass
class TwiceWeighted(Weighted):
    squared: Tensor  # [B, d, d] Ṽ


def _check(gamma: float, ridge: float) -> None:
    require_real("gamma", gamma, 0.0, above=True, most=1.0)
    require_ridge(ridge)


def factorise(gram: Tensor) -> Tensor:
    """The lower Cholesky factor L of a matrix `[B, d, d]`."""
    factor: Tensor = torch.linalg.cholesky_ex(gram).L
    return factor


def whiten(factor: Tensor, rows: Tensor) -> Tensor:
    """L⁻¹x of each row x, `[B, A, d]`."""
    whitened: Tensor = torch.linalg.solve_triangular(factor.mT, rows, upper=True, left=False)
    return whitened


def unwhiten(factor: Tensor, rows: Tensor) -> Tensor:
    """L⁻ᵀy of each row y, `[B, A, d]`: after `whiten`, the inverse times x."""
    solved: Tensor = torch.linalg.solve_triangular(factor, rows, upper=False, left=False)
    return solved


def predict(factor: Tensor, action_set: Tensor, moment: Tensor) -> tuple[Tensor, Tensor]:
    """The mean xᵀθ̂ `[B, A]` and L⁻¹x `[B, A, d]` of each arm, in one triangular solve."""
    solved = whiten(factor, torch.cat([action_set, moment.unsqueeze(1)], dim=1))
    whitened = solved[:, :-1]
    return inner(whitened, solved[:, -1]), whitened


def fade(gram: Tensor, features: Tensor, gamma: float, ridge: float) -> Tensor:
    """γV + xxᵀ + (1−γ)·ridge·I, in place: what was known fades, the ridge does not."""
    gram.mul_(gamma).addcmul_(features.unsqueeze(2), features.unsqueeze(1))
    gram.diagonal(dim1=1, dim2=2).add_((1 - gamma) * ridge)
    return gram


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


Twice: TypeAlias = "DiscountedLinUCB | DiscountedThompson"


def _begin(agent: Twice, shape: ProblemShape) -> TwiceWeighted:
    return TwiceWeighted(identity(shape, agent.ridge), vector(shape, 0.0), identity(shape, agent.ridge))


def _learn(
    agent: Twice, state: TwiceWeighted, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo
) -> TwiceWeighted:
    features = observation.features(arm)
    return TwiceWeighted(
        gram=fade(state.gram, features, agent.gamma, agent.ridge),
        moment=state.moment.mul_(agent.gamma).addcmul_(features, reward.unsqueeze(1)),
        squared=fade(state.squared, features, agent.gamma * agent.gamma, agent.ridge),
    )


@dataclass(frozen=True)
class DiscountedLinUCB:
    """Optimism over discounted ridge regression, with the second matrix of D-LinUCB."""

    gamma: float = 0.95
    alpha: float = 1.0
    ridge: float = 1.0
    name: ClassVar[str] = "discounted-linucb"
    learns: ClassVar[bool] = True
    init, update = _begin, _learn

    def __post_init__(self) -> None:
        _check(self.gamma, self.ridge)
        require_real("alpha", self.alpha, 0.0)

    def act(self, state: TwiceWeighted, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        factor = factorise(state.gram)
        mean, whitened = predict(factor, observation.action_set, state.moment)
        direction = unwhiten(factor, whitened)  # [B, A, d] V⁻¹x
        width = (torch.bmm(direction, state.squared) * direction).sum(-1)  # [B, A] xᵀV⁻¹ṼV⁻¹x
        return choose(observation, torch.add(mean, width.clamp_min_(0).sqrt_(), alpha=self.alpha))


@dataclass(frozen=True)
class DiscountedThompson:
    """Posterior sampling over discounted ridge regression."""

    gamma: float = 0.95
    variance: float = 0.3
    ridge: float = 1.0
    name: ClassVar[str] = "discounted-thompson"
    learns: ClassVar[bool] = True
    init, update = _begin, _learn

    def __post_init__(self) -> None:
        _check(self.gamma, self.ridge)
        require_real("variance", self.variance, 0.0)

    def act(self, state: TwiceWeighted, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        noise = rng.normal(observation.action_set.shape[2]).unsqueeze(1)  # [B, 1, d]
        push = torch.bmm(noise, factorise(state.squared).mT)  # [B, 1, d] Ṽ^½·z
        target = torch.add(state.moment.unsqueeze(1), push, alpha=math.sqrt(self.variance))
        factor = factorise(state.gram)
        sampled = unwhiten(factor, whiten(factor, target)).squeeze(1)  # [B, d]
        return choose(observation, inner(observation.action_set, sampled))
