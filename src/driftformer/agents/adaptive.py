"""Linear regressions with memories of several lengths side by side; those that predict best are believed.

How fast a world changes is seldom known, and a forgetting agent's γ must fit it. Here four Kalman filters of a linear
reward learn from the same rounds, each with a γ of its own: its weights follow w' = √γ·w + noise, which keeps their
prior and needs one rank-one update a round. How well each has predicted lately is kept as a fading log-likelihood
(a record), and the agent is optimistic about the filters' mixture by these records:

    Σ_m p_m·(xᵀθ̂_m + α·σ̂_m·√(xᵀP_m x)),  p = softmax(records).

A filter with a long memory would carry what it learned before a change for as long again. So where one with a shorter
memory has the better record by a clear margin, the longer ones begin anew from its estimate, as in the interacting
multiple models of target tracking (Blom and Bar-Shalom, 1988).

Units cancel out: features are read in units of their usual norm, rewards less the first one in units of the noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo
from driftformer.agents.linucb import precise
from driftformer.errors import require_real
from driftformer.problem import Observation, pick
from driftformer.randomness import Stream

MEMORIES = (1.0, 0.99, 0.97, 0.9)
"""γ of each filter, the longest memory first."""

RECORD = 0.98
"""What is kept of the records in a round."""

NOISE = 0.99
"""What is kept of the estimates of the noise in a round."""

MARGIN = 6.0
"""By how many nats a record must be better before a longer memory begins anew from a shorter one."""

LEVEL = 10.0
"""Variance that is expected at first of the constant: the first reward may be far from the usual one."""

_LEAST_NOISE = 1e-6
"""Variance below which noise is not told from rounding, in units of the rewards' spread."""


@dataclass
class Filters:
    """One row for each problem; n = d + 1 features, M filters."""

    t: Tensor  # [B] rounds played
    unit: Tensor  # [B] of the features; 0 until it is known
    first: Tensor  # [B] the first reward
    size: Tensor  # [B] of the first reward that differs from it: the unit of rewards; 0 until then
    covariance: Tensor  # [B, n, M, n] P, in units of the noise
    theta: Tensor  # [B, n, M] θ̂
    squares: Tensor  # [B, M] fading sum of squared surprises
    rounds: Tensor  # [B] fading number of rounds in it
    record: Tensor  # [B, M] fading log-likelihood


@dataclass(frozen=True)
class FilterInfo(ValueInfo):
    """Upper confidence bounds, and what the filters said of every arm."""

    x: Tensor  # [B, A, n]
    direction: Tensor  # [B, A, M, n] P·x


@lru_cache(maxsize=8)
def _memories(device: torch.device, dtype: torch.dtype) -> Tensor:
    return torch.tensor(MEMORIES, device=device, dtype=dtype)


@dataclass(frozen=True)
class AdaptiveLinUCB:
    """Optimism over linear regressions with several memories, as far as each has predicted well lately."""

    alpha: float = 1.0
    signal: float = 3.0
    """Variance of ⟨x, w⟩ that is expected at first, in units of the noise's."""
    name: ClassVar[str] = "adaptive-linucb"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_real("alpha", self.alpha, 0.0)
        require_real("signal", self.signal, 1e-3, most=1e3)

    def init(self, shape: ProblemShape) -> Filters:
        shape = precise(shape)
        batch, n, members = shape.batch, shape.dim + 1, len(MEMORIES)

        def zeros(*size: int) -> Tensor:
            return torch.zeros(batch, *size, device=shape.device, dtype=shape.dtype)

        covariance = zeros(n, members, n)
        covariance.diagonal(dim1=1, dim2=3).fill_(self.signal)
        covariance[:, -1, :, -1] = LEVEL
        return Filters(
            **{name: zeros() for name in ("t", "unit", "first", "size", "rounds")},
            covariance=covariance,
            theta=zeros(n, members),
            squares=zeros(members),
            record=zeros(members),
        )

    def act(self, state: Filters, observation: Observation, rng: Stream) -> tuple[Tensor, FilterInfo]:
        _measure(state, observation)
        action_set = observation.action_set.to(state.theta.dtype)
        scaled = action_set / torch.where(state.unit > 0, state.unit, 1.0)[:, None, None]
        x = torch.cat([scaled, torch.ones_like(scaled[..., :1])], dim=2)  # [B, A, n]
        direction = torch.bmm(x, state.covariance.flatten(2)).view(*x.shape[:2], *state.covariance.shape[2:])
        variance = (direction * x.unsqueeze(2)).sum(-1).clamp_min_(0)  # [B, A, M]
        width = (variance * _noise(state).unsqueeze(1)).sqrt_()
        bounds = torch.add(torch.bmm(x, state.theta), width, alpha=self.alpha)
        belief = state.record.softmax(dim=1).unsqueeze(2)  # [B, M, 1]
        values = torch.bmm(bounds, belief).squeeze(2)  # [B, A] in units of the rewards
        values = values * torch.where(state.size > 0, state.size, 1.0).unsqueeze(1) + state.first.unsqueeze(1)
        arm = observation.best(values)
        return arm, FilterInfo(values, arm, x, direction)

    def update(
        self, state: Filters, observation: Observation, arm: Tensor, reward: Tensor, info: FilterInfo
    ) -> Filters:
        x, direction = pick(info.x, arm), pick(info.direction, arm)  # [B, n], [B, M, n]
        state.first.copy_(torch.where(state.t == 0, reward, state.first))
        raw = reward - state.first
        state.size.copy_(torch.where(state.size > 0, state.size, raw.abs()))
        raw = raw / torch.where(state.size > 0, state.size, 1.0)
        spread = 1 + (direction * x.unsqueeze(1)).sum(-1).clamp_min_(0)  # [B, M]
        surprise = raw.unsqueeze(1) - torch.bmm(x.unsqueeze(1), state.theta).squeeze(1)

        state.squares.mul_(NOISE).add_(surprise.square() / spread)
        state.rounds.mul_(NOISE).add_(1)
        expected = _noise(state) * spread
        likelihood = (expected.log() + surprise.square() / expected) / -2
        state.record.mul_(RECORD).add_(likelihood * (state.t > 2).unsqueeze(1))  # the first few say nothing yet

        gamma = _memories(x.device, x.dtype)
        step = direction * spread.rsqrt().unsqueeze(2)  # its outer product is symmetric to the last bit
        state.covariance.addcmul_(step.mT.unsqueeze(3), step.unsqueeze(1), value=-1).mul_(gamma.unsqueeze(1))
        state.covariance.diagonal(dim1=1, dim2=3).add_(((1 - gamma) * self.signal).unsqueeze(1))
        state.theta.add_((direction * (surprise / spread).unsqueeze(2)).mT).mul_(gamma.sqrt())
        state.t.add_(1)
        return _follow(state)


def _measure(state: Filters, observation: Observation) -> None:
    """Set the unit of features when they are first seen, and raise it when they turn out to be much larger."""
    squares = observation.action_set.square().sum(-1).to(state.unit.dtype)  # [B, A]
    if observation.offered is not None:
        squares = squares * observation.offered
    now = (squares.sum(1) / (squares > 0).sum(1).clamp(min=1)).sqrt()
    larger = now > 2 * state.unit
    growth = torch.where(larger & (state.unit > 0), now / torch.where(state.unit > 0, state.unit, 1.0), 1.0)
    state.theta[:, :-1].mul_(growth[:, None, None])
    state.unit.copy_(torch.where(larger, now, state.unit))


def _noise(state: Filters) -> Tensor:
    """σ̂² of each filter, `[B, M]`; 1 as long as all rewards were equal."""
    found = state.squares / state.rounds.clamp(min=1).unsqueeze(1)
    return torch.where(state.size.unsqueeze(1) > 0, found.clamp_min(_LEAST_NOISE), 1.0)


def _follow(state: Filters) -> Filters:
    """Filters whose record is far behind that of a shorter memory begin anew from its estimate."""
    top, best = state.record.max(dim=1, keepdim=True)  # [B, 1]
    longer = torch.arange(len(MEMORIES), device=best.device) < best
    behind = (top - state.record > MARGIN) & longer  # [B, M]
    problems, filters = behind.nonzero(as_tuple=True)
    if problems.numel():
        source = best[problems, 0]
        for held in (state.record, state.squares, state.theta.mT, state.covariance.transpose(1, 2)):
            held[problems, filters] = held[problems, source]
    return state
