"""Forgetting by a window: LinUCB on the last W observations only (Cheung, Simchi-Levi and Zhu, 2019).

Each round takes the new observation into A⁻¹ and θ̂ and the oldest out of them: a downdate, Sherman–Morrison with the
signs turned, which divides by 1 − xᵀA⁻¹x. Where that is small, because no other observation in the window speaks of x's
direction, float32 would lose what it knows; there, and every `_REFRESH` rounds everywhere, A⁻¹ and θ̂ are computed anew
from the window itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, require_window
from driftformer.agents.linucb import LinUCB, LinUCBInfo, Ridge, absorb, identity, vector
from driftformer.agents.rows import put_rows, take_rows
from driftformer.errors import require_count
from driftformer.problem import Observation, pick
from driftformer.randomness import Stream

_REFRESH = 64
"""Rounds after which A⁻¹ and θ̂ are computed anew."""

_LEAST_SPREAD = 0.1
"""The 1 − xᵀA⁻¹x below which a downdate is not trusted."""


@dataclass
class WindowState:
    model: Ridge
    features: Tensor  # [B, W, d] the window, a ring; zeros where nothing has been seen yet
    rewards: Tensor  # [B, W]
    age: Tensor  # [B] observations so far


@dataclass(frozen=True)
class SlidingWindowLinUCB:
    """LinUCB that knows the last `window` rounds only."""

    window: int = 50
    alpha: float = 1.0
    ridge: float = 1.0
    name: ClassVar[str] = "sliding-window-linucb"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_count("window", self.window)
        self._linucb()

    def _linucb(self) -> LinUCB:
        return LinUCB(self.alpha, self.ridge)

    def init(self, shape: ProblemShape) -> WindowState:
        require_window("window", self.window, shape)
        zeros = vector(shape, 0.0)
        return WindowState(
            Ridge(identity(shape, 1 / self.ridge), zeros),
            zeros.unsqueeze(1).repeat(1, self.window, 1),
            zeros[:, :1].repeat(1, self.window),
            torch.zeros(shape.batch, dtype=torch.long, device=shape.device),
        )

    def act(self, state: WindowState, observation: Observation, rng: Stream) -> tuple[Tensor, LinUCBInfo]:
        return self._linucb().act(state.model, observation, rng)

    def update(
        self, state: WindowState, observation: Observation, arm: Tensor, reward: Tensor, info: LinUCBInfo
    ) -> WindowState:
        model = absorb(state.model, info.prediction, arm, reward)
        place = state.age % self.window  # [B] of the oldest observation in the ring
        model, spread = _release(model, pick(state.features, place), pick(state.rewards, place))
        rows = torch.arange(place.shape[0], device=place.device)
        state.features[rows, place] = observation.features(arm)
        state.rewards[rows, place] = reward
        age = state.age + 1
        stale = ((age % _REFRESH == 0) | (spread < _LEAST_SPREAD)).nonzero().squeeze(1)
        return _refresh(WindowState(model, state.features, state.rewards, age), stale, self.ridge)


def _release(model: Ridge, features: Tensor, reward: Tensor) -> tuple[Ridge, Tensor]:
    """Forget one observation, in place, and tell 1 − xᵀA⁻¹x; zeros, where the window is not full, change nothing."""
    direction = torch.bmm(features.unsqueeze(1), model.inverse).squeeze(1)  # [B, d] A⁻¹x
    spread = 1 - (direction * features).sum(-1)  # [B]
    safe = spread.clamp_min(_LEAST_SPREAD)  # below it, the result is thrown away
    surprise = (reward - (features * model.theta).sum(-1)) / safe
    model.theta.addcmul_(direction, surprise.unsqueeze(1), value=-1)
    scaled = direction * safe.rsqrt().unsqueeze(1)
    model.inverse.addcmul_(scaled.unsqueeze(2), scaled.unsqueeze(1))
    return model, spread


def _refresh(state: WindowState, rows: Tensor, ridge: float) -> WindowState:
    """Compute A⁻¹ and θ̂ of some problems anew from their windows, in place."""
    if rows.numel():
        part = take_rows(state, rows)
        gram = torch.bmm(part.features.mT, part.features)
        eye = torch.eye(gram.shape[1], device=gram.device, dtype=gram.dtype)
        inverse = torch.cholesky_inverse(torch.linalg.cholesky_ex(torch.add(gram, eye, alpha=ridge)).L)
        inverse = (inverse + inverse.mT) / 2
        moment = torch.bmm(part.rewards.unsqueeze(1), part.features)  # [rows, 1, d]
        put_rows(state.model, rows, Ridge(inverse, torch.bmm(moment, inverse).squeeze(1)))
    return state
