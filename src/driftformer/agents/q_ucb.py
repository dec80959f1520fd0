"""Q-UCB (Jin, Allen-Zhu, Bubeck and Jordan, 2018): Q-learning with a bonus and a rate that favours what came late.

At the t-th visit of (h, s, a), with α_t = (H + 1)/(H + t):

    Q_h(s, a) ← (1 − α_t)·Q_h(s, a) + α_t·(r + V_{h+1}(s') + b_t),   b_t = scale·√(H³/t)
    V_h(s) = min{H − h, max_a Q_h(s, a)},   h = 0, …, H − 1

This is the paper's version with Hoeffding bonuses; `scale` stands for its c·√ι. No model is kept: S·A·H numbers, twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo
from driftformer.agents.episodes import Pending, cells, hopes, nothing_pending, play, stage_of, unbounded
from driftformer.agents.linucb import precise
from driftformer.errors import require_real
from driftformer.problem import Observation, place_of
from driftformer.randomness import Stream


@dataclass
class Visited:
    q: Tensor  # [B, H, S, A]
    visits: Tensor  # [B, H, S, A]
    pending: Pending


@dataclass(frozen=True)
class QUCB:
    """Optimistic Q-learning."""

    scale: float = 0.05
    name: ClassVar[str] = "q-ucb"
    learns: ClassVar[bool] = True
    episodic: ClassVar[bool] = True
    why_not = staticmethod(unbounded)

    def __post_init__(self) -> None:
        require_real("scale", self.scale, 0.0)

    def init(self, shape: ProblemShape) -> Visited:
        q = hopes(precise(shape))
        return Visited(q, torch.zeros_like(q), nothing_pending(shape))

    def act(self, state: Visited, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        stage = stage_of(observation)
        arm, info = play(state.q, observation, stage)
        return arm, ValueInfo(info.values, info.auxiliary_value.clamp_max_(state.q.shape[1] - stage))

    def update(self, state: Visited, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo) -> Visited:
        stage, stages = stage_of(observation), state.q.shape[1]
        if stage > 0:
            self._learn(state, state.pending.cell, state.pending.reward + info.auxiliary_value)
        cell = cells(observation, stage, arm, state.q.shape[2:])
        if stage == stages - 1:
            self._learn(state, cell, reward)
        state.pending = Pending(cell, reward.clone())
        return state

    def _learn(self, state: Visited, cell: Tensor, target: Tensor) -> None:
        """One step of Q-learning towards r + V_{h+1}(s'), `[B]`, in place."""
        stages = state.q.shape[1]
        place = place_of(cell, state.q[0].numel())
        q, visits = state.q.view(-1), state.visits.view(-1)
        t = visits.index_select(0, place).add_(1)
        visits.index_copy_(0, place, t)
        old = q.index_select(0, place)
        ahead = torch.add(target - old, t.rsqrt(), alpha=self.scale * stages**1.5)
        q.index_copy_(0, place, old.addcdiv_(ahead, t.add_(stages), value=stages + 1))
