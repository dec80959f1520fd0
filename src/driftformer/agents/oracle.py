"""A reference: exact Bayesian linear regression by an agent that knows the drift, the noise and the prior.

It undoes the drift, (r − shift)/scale = ⟨a, w⟩ + ε, and so sees a stationary problem; a round whose scale is zero tells
it nothing, and where w* is redrawn it begins again from the prior. With w* ~ N(m, τ²I) and noise σ² the posterior is
N(θ̂, σ²·A⁻¹) for a ridge of σ²/τ² around m. What regret it is left with is the price of exploring in its way: another α,
or Thompson sampling, may pay less, so this is a reference and no bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape
from driftformer.agents.ridge import RootRidge, absorb_root, draw, identity, inner, vector
from driftformer.errors import require_choice, require_real
from driftformer.problem import LinearTruth, Observation, Traits, Truth, pick
from driftformer.randomness import Stream

Exploration = Literal["ucb", "thompson"]

_LEAST_NOISE = 1e-3
"""A world without noise would make the ridge zero and the first inverse infinite."""


@dataclass
class OracleState:
    posterior: RootRidge | None  # over w*; the simulation's first word brings it into being
    shape: ProblemShape
    truth: LinearTruth | None


@dataclass(frozen=True)
class OracleInfo:
    auxiliary_value: Tensor  # [B]


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
        if traits.linear:
            return None
        return "it knows only worlds with linear rewards whose w* stays or is redrawn"

    def init(self, shape: ProblemShape) -> OracleState:
        return OracleState(posterior=None, shape=shape, truth=None)

    def inform(self, state: OracleState, truth: Truth) -> OracleState:
        known = truth.linear
        assert known is not None, "an environment whose traits say linear tells how"
        if state.posterior is None:
            return OracleState(self._prior(state.shape, known), state.shape, known)
        posterior = state.posterior
        if bool(known.redrawn.any()):
            fresh = self._prior(state.shape, known)
            posterior = RootRidge(
                root=torch.where(known.redrawn[:, None, None], fresh.root, posterior.root),
                theta=torch.where(known.redrawn[:, None], fresh.theta, posterior.theta),
            )
        return OracleState(posterior, state.shape, known)

    @staticmethod
    def _prior(shape: ProblemShape, truth: LinearTruth) -> RootRidge:
        ridge = max(truth.noise, _LEAST_NOISE) ** 2 / truth.prior_variance
        return RootRidge(root=identity(shape, ridge**-0.5), theta=vector(shape, truth.prior_mean))

    def act(self, state: OracleState, observation: Observation, rng: Stream) -> tuple[Tensor, OracleInfo]:
        posterior, truth, action_set = state.posterior, state.truth, observation.action_set
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
        arm = observation.best(scores)
        return arm, OracleInfo(pick(scores, arm) + truth.shift)

    def update(
        self, state: OracleState, observation: Observation, arm: Tensor, reward: Tensor, info: OracleInfo
    ) -> OracleState:
        posterior, truth = state.posterior, state.truth
        assert posterior is not None
        assert truth is not None
        informative = truth.scale != 0
        raw = (reward - truth.shift) / torch.where(informative, truth.scale, 1.0)  # ⟨a, w⟩ + ε
        absorb_root(posterior, observation.features(arm), raw, informative.to(raw.dtype))
        return state
