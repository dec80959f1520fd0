"""A reference: exact Bayesian linear regression by an agent that knows the drift, the noise and the prior.

It undoes the drift, (r − shift)/scale = ⟨a, w⟩ + ε, and so sees a stationary problem; a round whose scale is zero tells
it nothing, and where w* is redrawn it begins again from the prior. With w* ~ N(m, τ²I) and noise σ² the posterior is
N(θ̂, σ²·A⁻¹) for a ridge of σ²/τ² around m. What regret it is left with is the price of exploring in its way: another α,
or Thompson sampling, may pay less, so this is a reference and no bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo
from driftformer.agents.linucb import identity, inner, vector
from driftformer.agents.rows import restart
from driftformer.agents.thompson import RootRidge, absorb_root, draw
from driftformer.errors import require_choice, require_real
from driftformer.problem import LinearTruth, Observation, Traits, Truth
from driftformer.randomness import Stream

Exploration = Literal["ucb", "thompson"]

_LEAST_NOISE = 1e-3
"""A world without noise would make the ridge zero and the first inverse infinite."""


@dataclass
class OracleState:
    shape: ProblemShape
    posterior: RootRidge  # over w*
    truth: LinearTruth  # of this round


@dataclass(frozen=True)
class Oracle:
    """Knows how the world drifts, but not w*: explores by `ucb` with width α, or by `thompson` sampling."""

    alpha: float = 1.0
    explore: Exploration = "ucb"
    name: ClassVar[str] = "oracle"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_real("alpha", self.alpha, 0.0)
        require_choice("explore", self.explore, get_args(Exploration))

    def why_not(self, traits: Traits) -> str | None:
        return None if traits.linear else "it knows only worlds with linear rewards whose w* stays or is redrawn"

    def init(self, shape: ProblemShape) -> ProblemShape:
        return shape  # the simulation's first word brings the prior

    def inform(self, state: OracleState | ProblemShape, truth: Truth) -> OracleState:
        known = truth.linear
        assert known is not None, "an environment whose traits say linear tells how"
        if isinstance(state, ProblemShape):
            return OracleState(state, self._prior(state, known), known)
        fresh = self._prior(replace(state.shape, batch=1), known)
        return OracleState(state.shape, restart(state.posterior, known.redrawn, fresh), known)

    @staticmethod
    def _prior(shape: ProblemShape, truth: LinearTruth) -> RootRidge:
        ridge = max(truth.noise, _LEAST_NOISE) ** 2 / truth.prior_variance
        return RootRidge(root=identity(shape, ridge**-0.5), theta=vector(shape, truth.prior_mean))

    def act(self, state: OracleState, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        posterior, truth, action_set = state.posterior, state.truth, observation.action_set
        noise = max(truth.noise, _LEAST_NOISE)
        scale = truth.scale.unsqueeze(1)  # [B, 1]
        if self.explore == "thompson":
            sampled = draw(posterior, rng.normal(action_set.shape[2]), noise)
            scores = inner(action_set, sampled) * scale
        else:
            width = torch.bmm(action_set, posterior.root).square().sum(-1).sqrt() * noise  # [B, A]
            scores = inner(action_set, posterior.theta) * scale + self.alpha * width * scale.abs()
        arm, score = observation.choose(scores)
        return arm, ValueInfo(scores + truth.shift.unsqueeze(1), score + truth.shift)

    def update(
        self, state: OracleState, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo
    ) -> OracleState:
        truth = state.truth
        informative = truth.scale != 0
        raw = (reward - truth.shift) / torch.where(informative, truth.scale, 1.0)  # ⟨a, w⟩ + ε
        absorb_root(state.posterior, observation.features(arm), raw, informative.to(raw.dtype))
        return state
