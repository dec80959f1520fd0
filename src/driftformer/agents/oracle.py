"""A reference: exact Bayesian linear regression by an agent that knows the drift, the noise and the prior.

It undoes the drift, (r − shift)/scale = ⟨a, w⟩ + ε, and so sees a stationary problem; a round whose scale is zero tells
it nothing, and where w* is redrawn it begins again from the prior. With w* ~ N(m, τ²I) and noise σ² the posterior is
N(θ̂, σ²·A⁻¹) for a ridge of σ²/τ² around m. What regret it is left with is the price of exploring in its way: another α,
or Thompson sampling, may pay less, so this is a reference and no bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, Truth, pick
from driftformer.agents.ridge import RootRidge, absorb_root, draw, identity, inner, vector
from driftformer.errors import require_choice, require_real
from driftformer.randomness import Stream

_LEAST_NOISE = 1e-3
"""A world without noise would make the ridge zero and the first inverse infinite."""


@dataclass
class OracleState:
    posterior: RootRidge | None  # over w*; the simulation's first word brings it into being
    shape: ProblemShape
    truth: Truth | None


@dataclass(frozen=True)
class OracleInfo:
    auxiliary_value: Tensor  # [B]


@dataclass(frozen=True)
class Oracle:
    """Knows how the world drifts, but not w*: explores by `ucb` with width α, or by `thompson` sampling."""

    alpha: float = 1.0
    explore: Literal["ucb", "thompson"] = "ucb"
    name: ClassVar[str] = "oracle"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_real("alpha", self.alpha, 0.0)
        require_choice("explore", self.explore, ("ucb", "thompson"))

    def why_not(self, environment: Any) -> str | None:
        if getattr(environment, "piecewise_constant", False):
            return None
        return "w* moves there, and it knows only worlds whose w* stays or is redrawn"

    def init(self, shape: ProblemShape) -> OracleState:
        return OracleState(posterior=None, shape=shape, truth=None)

    def inform(self, state: OracleState, truth: Truth) -> OracleState:
        if state.posterior is None:
            return OracleState(self._prior(state.shape, truth), state.shape, truth)
        posterior = state.posterior
        if bool(truth.redrawn.any()):
            fresh = self._prior(state.shape, truth)
            posterior = RootRidge(
                root=torch.where(truth.redrawn[:, None, None], fresh.root, posterior.root),
                theta=torch.where(truth.redrawn[:, None], fresh.theta, posterior.theta),
            )
        return OracleState(posterior, state.shape, truth)

    @staticmethod
    def _prior(shape: ProblemShape, truth: Truth) -> RootRidge:
        ridge = max(truth.noise, _LEAST_NOISE) ** 2 / truth.prior_variance
        return RootRidge(root=identity(shape, ridge**-0.5), theta=vector(shape, truth.prior_mean))

    def act(self, state: OracleState, action_set: Tensor, rng: Stream) -> tuple[Tensor, OracleInfo]:
        posterior, truth = state.posterior, state.truth
        assert posterior is not None, "the simulation informs a privileged agent before it acts"
        assert truth is not None
        noise = max(truth.noise, _LEAST_NOISE)
        scale = truth.scale.unsqueeze(1)  # [B, 1]
        if self.explore == "thompson":
            sampled = draw(posterior, rng.normal(action_set.shape[2]), noise)
            scores = inner(action_set, sampled) * scale
        else:
            width = torch.bmm(action_set, posterior.root).square().sum(-1).sqrt() * noise  # [B, A]
            scores = inner(action_set, posterior.theta) * scale + self.alpha * width * scale.abs()
        arm = scores.argmax(dim=1)
        return arm, OracleInfo(pick(scores, arm) + truth.shift)

    def update(
        self, state: OracleState, action_set: Tensor, arm: Tensor, reward: Tensor, info: OracleInfo
    ) -> OracleState:
        posterior, truth = state.posterior, state.truth
        assert posterior is not None
        assert truth is not None
        informative = truth.scale != 0
        raw = (reward - truth.shift) / torch.where(informative, truth.scale, 1.0)  # ⟨a, w⟩ + ε
        absorb_root(posterior, pick(action_set, arm), raw, informative.to(raw.dtype))
        return state
