"""Forgetting by a window: LinUCB on the last W observations only (Cheung, Simchi-Levi and Zhu, 2019).

Each round takes the new observation into A⁻¹ and θ̂ and the oldest out (a downdate, Sherman–Morrison with the signs
turned). Rounding errors of so many steps would pile up where forgetting never ends, so every `_REFRESH` rounds both
are computed anew from the window itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, pick
from driftformer.agents.linucb import LinUCB, LinUCBInfo
from driftformer.agents.restart import put_rows, take_rows
from driftformer.agents.ridge import Ridge, absorb, identity, vector
from driftformer.errors import require_count
from driftformer.randomness import Stream

_REFRESH = 256
"""Rounds after which the inverse is computed anew."""


@dataclass
class WindowState:
    model: Ridge
    features: Tensor  # [B, W, d] the window, a ring; zeros where nothing has been seen yet
    rewards: Tensor  # [B, W]
    age: Tensor  # [B] observations so far


@dataclass(frozen=True)
class SlidingWindowLinUCB:
    """LinUCB that knows the last `window` rounds only."""

    window: int = 100
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
        model = Ridge(identity(shape, 1 / self.ridge), vector(shape, 0.0))
        rewards = vector(shape, 0.0)[:, :1].repeat(1, self.window)
        features = vector(shape, 0.0).unsqueeze(1).repeat(1, self.window, 1)
        return WindowState(model, features, rewards, torch.zeros(shape.batch, dtype=torch.long, device=shape.device))

    def act(self, state: WindowState, action_set: Tensor, rng: Stream) -> tuple[Tensor, LinUCBInfo]:
        return self._linucb().act(state.model, action_set, rng)

    def update(
        self, state: WindowState, action_set: Tensor, arm: Tensor, reward: Tensor, info: LinUCBInfo
    ) -> WindowState:
        model = absorb(state.model, info.prediction, arm, reward)
        place = state.age % self.window  # [B] of the oldest observation
        model = _release(model, pick(state.features, place), pick(state.rewards, place))
        rows = torch.arange(place.shape[0], device=place.device)
        state.features[rows, place] = pick(action_set, arm)
        state.rewards[rows, place] = reward
        following = WindowState(model, state.features, state.rewards, state.age + 1)
        return self._refresh(following)

    def _refresh(self, state: WindowState) -> WindowState:
        rows = (state.age % _REFRESH == 0).nonzero().squeeze(1)
        if rows.numel():
            part = take_rows(state, rows)
            gram = torch.bmm(part.features.mT, part.features)
            eye = torch.eye(gram.shape[1], device=gram.device, dtype=gram.dtype)
            inverse = torch.cholesky_inverse(torch.linalg.cholesky(torch.add(gram, eye, alpha=self.ridge)))
            inverse = (inverse + inverse.mT) / 2
            moment = torch.bmm(part.rewards.unsqueeze(1), part.features)  # [rows, 1, d]
            put_rows(state.model, rows, Ridge(inverse, torch.bmm(moment, inverse).squeeze(1)))
        return state


def _release(model: Ridge, features: Tensor, reward: Tensor) -> Ridge:
    """Forget one observation, in place; a row of zeros, where the window is not full yet, changes nothing."""
    direction = torch.bmm(features.unsqueeze(1), model.inverse).squeeze(1)  # [B, d] A⁻¹x
    spread = 1 - (direction * features).sum(-1)  # [B] 1 − xᵀA⁻¹x, above zero since A holds xxᵀ and the ridge
    surprise = (reward - (features * model.theta).sum(-1)) / spread
    model.theta.addcmul_(direction, surprise.unsqueeze(1), value=-1)
    scaled = direction * spread.rsqrt().unsqueeze(1)
    model.inverse.addcmul_(scaled.unsqueeze(2), scaled.unsqueeze(1))
    return model
