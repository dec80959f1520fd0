"""What training on four frequencies teaches at best: exact Bayesian inference with exactly these four worlds as prior.

The paper's High data has cosines of four frequencies. A policy that minimises its training objective without error
imitates the posterior over these four clocks and, for each of them, over w*. This agent computes it: r = c·(⟨a, w⟩ + ε)
with c = cos(2πbt), so each clock has its Kalman filter, and what a clock expected of each reward says how likely it is.
It plays the arm with the highest expected reward. Between its clocks it fails, however much data it was trained on:
no step of training is missing there, but a frequency.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo
from driftformer.errors import require_choice
from driftformer.problem import LinearTruth, Observation, Traits, Truth
from driftformer.randomness import Stream

CLOCKS = (0.005, 0.01, 0.015, 0.02)
"""The frequencies b of the paper's training data."""

Optimum = Literal["round", "static"]
"""What labels were: the best arm of the round, or argmax ⟨a, w*⟩ whatever the cosine."""
_LEAST_VARIANCE = 1e-8
"""Of a reward. Where a clock's cosine is zero it expects a reward of exactly zero, and rounding must not refute it."""


@dataclass
class ClockState:
    shape: ProblemShape
    truth: LinearTruth  # prior and noise are used, scale and shift are not looked at
    t: int  # rounds played
    theta: Tensor  # [B, F, d] mean of w* under each clock
    covariance: Tensor  # [B, F, d, d]
    evidence: Tensor  # [B, F] log-likelihood of each clock so far


@dataclass(frozen=True)
class ClockPosterior:
    """Knows the noise, the prior, and that the world turns with one of the paper's four clocks; not which, nor w*."""

    optimum: Optimum = "round"
    name: ClassVar[str] = "clock-posterior"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_choice("optimum", self.optimum, get_args(Optimum))

    def why_not(self, traits: Traits) -> str | None:
        return None if traits.linear else "it knows only worlds with linear rewards whose w* stays or is redrawn"

    def init(self, shape: ProblemShape) -> ProblemShape:
        return shape  # the simulation's first word brings the prior

    def inform(self, state: ClockState | ProblemShape, truth: Truth) -> ClockState:
        known = truth.linear
        assert known is not None, "an environment whose traits say linear tells how"
        if isinstance(state, ClockState):
            return state
        eye = torch.eye(state.dim, device=state.device, dtype=torch.float64) * known.prior_variance
        covariance = eye.expand(state.batch, len(CLOCKS), -1, -1).clone()
        theta = torch.full_like(covariance[..., 0], known.prior_mean)
        return ClockState(state, known, 0, theta, covariance, torch.zeros_like(theta[..., 0]))

    def act(self, state: ClockState, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        features = observation.action_set.double()  # [B, A, d]
        believed = state.evidence.softmax(dim=1)  # [B, F]
        if self.optimum == "round":
            believed = believed * self._heights(state)
        expected = torch.bmm(features, torch.bmm(state.theta.mT, believed.unsqueeze(2))).squeeze(2)  # [B, A]
        arm, value = observation.choose(expected.to(observation.action_set))
        return arm, ValueInfo(expected, value)

    def update(
        self, state: ClockState, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo
    ) -> ClockState:
        height, x = self._heights(state), observation.features(arm).double()  # [F], [B, d]
        direction = torch.matmul(state.covariance, x[:, None, :, None]).squeeze(-1)  # [B, F, d]
        variance = height.square() * ((direction * x.unsqueeze(1)).sum(-1) + state.truth.noise**2) + _LEAST_VARIANCE
        surprise = reward.double().unsqueeze(1) - height * (state.theta * x.unsqueeze(1)).sum(-1)  # [B, F]
        state.evidence -= (surprise.square() / variance + variance.log()) / 2
        state.theta += direction * (height * surprise / variance).unsqueeze(-1)
        scaled = direction * (height.abs() / variance.sqrt()).unsqueeze(-1)
        state.covariance -= scaled.unsqueeze(-1) * scaled.unsqueeze(-2)
        state.t += 1
        return state

    @staticmethod
    def _heights(state: ClockState) -> Tensor:
        """cos(2πbt) of each clock in the coming round, `[F]`."""
        angle = 2 * math.pi * (state.t + 1) * torch.tensor(CLOCKS, device=state.theta.device, dtype=torch.float64)
        return angle.cos()
