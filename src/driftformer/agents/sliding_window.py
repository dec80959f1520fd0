"""Forgetting by a window: LinUCB on the last W observations only (Cheung, Simchi-Levi and Zhu, 2019).

Each round takes the new observation into the normal equations and the oldest out of them. What such additions and
subtractions round off would pile up where forgetting never ends, so every `_REFRESH` rounds both sums are computed anew
from the window itself. (Taking observations out of an inverse instead, by a downdate, loses all precision in float32
where one arm is played again and again.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, pick
from driftformer.agents.gram import ValueInfo, add_outer, choose, factorise, predict
from driftformer.agents.restart import put_rows, take_rows
from driftformer.agents.ridge import identity, require_ridge, vector
from driftformer.errors import InputError, require_count, require_real
from driftformer.randomness import Stream

_REFRESH = 256
"""Rounds after which the sums are computed anew."""


@dataclass
class Sums:
    gram: Tensor  # [B, d, d] Σ xxᵀ over the window
    moment: Tensor  # [B, d] Σ r·x


@dataclass
class WindowState:
    sums: Sums
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
        require_real("alpha", self.alpha, 0.0)
        require_ridge(self.ridge)

    def init(self, shape: ProblemShape) -> WindowState:
        if self.window > shape.horizon:
            raise InputError(
                f"window is {self.window}, longer than the horizon of {shape.horizon}; "
                "give at most the horizon, or use linucb"
            )
        zeros = vector(shape, 0.0)
        return WindowState(
            Sums(identity(shape, 0.0), zeros),
            zeros.unsqueeze(1).repeat(1, self.window, 1),
            zeros[:, :1].repeat(1, self.window),
            torch.zeros(shape.batch, dtype=torch.long, device=shape.device),
        )

    def act(self, state: WindowState, action_set: Tensor, rng: Stream) -> tuple[Tensor, ValueInfo]:
        mean, whitened = predict(factorise(state.sums.gram, self.ridge), action_set, state.sums.moment)
        return choose(torch.add(mean, whitened.square().sum(-1).sqrt(), alpha=self.alpha))

    def update(
        self, state: WindowState, action_set: Tensor, arm: Tensor, reward: Tensor, info: ValueInfo
    ) -> WindowState:
        place = state.age % self.window  # [B] of the oldest observation in the ring
        features, rows = pick(action_set, arm), torch.arange(place.shape[0], device=place.device)
        oldest, its_reward = pick(state.features, place), pick(state.rewards, place)
        add_outer(add_outer(state.sums.gram, features), oldest, sign=-1.0)
        state.sums.moment.addcmul_(features, reward.unsqueeze(1)).addcmul_(oldest, its_reward.unsqueeze(1), value=-1)
        state.features[rows, place] = features
        state.rewards[rows, place] = reward
        return _refresh(WindowState(state.sums, state.features, state.rewards, state.age + 1))


def _refresh(state: WindowState) -> WindowState:
    """Compute the sums anew in the problems whose time has come."""
    rows = (state.age % _REFRESH == 0).nonzero().squeeze(1)
    if rows.numel():
        part = take_rows(state, rows)
        moment = torch.bmm(part.rewards.unsqueeze(1), part.features).squeeze(1)
        put_rows(state.sums, rows, Sums(torch.bmm(part.features.mT, part.features), moment))
    return state
