"""ε-greedy Q-learning (Watkins, 1989) in episodes: the best estimate, or now and then any arm.

    Q_h(s, a) ← Q_h(s, a) + rate·(r + max_a' Q_{h+1}(s', a') − Q_h(s, a)),   from Q = 0

A constant rate forgets, so it follows a world that changes; it does not look for what it has not met. Its r̃ is an
estimate, not a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo
from driftformer.agents.episodes import Pending, cells, no_states, nothing_pending, play, stage_of
from driftformer.agents.linucb import precise
from driftformer.agents.ucb import add
from driftformer.errors import require_real
from driftformer.problem import Observation, place_of
from driftformer.randomness import Stream


@dataclass
class Learned:
    q: Tensor  # [B, H, S, A]
    pending: Pending


@dataclass(frozen=True)
class QLearning:
    """Q-learning with a constant rate that plays a random offered arm with probability ε."""

    epsilon: float = 0.1
    rate: float = 0.1
    name: ClassVar[str] = "q-learning"
    learns: ClassVar[bool] = True
    episodic: ClassVar[bool] = True
    why_not = staticmethod(no_states)

    def __post_init__(self) -> None:
        require_real("epsilon", self.epsilon, 0.0, most=1.0)
        require_real("rate", self.rate, 0.0, above=True, most=1.0)

    def init(self, shape: ProblemShape) -> Learned:
        sizes, exact = (shape.batch, shape.stages, shape.states, shape.arms), precise(shape)
        return Learned(torch.zeros(sizes, device=exact.device, dtype=exact.dtype), nothing_pending(shape))

    def act(self, state: Learned, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        best, info = play(state.q, observation, stage_of(observation))
        chance = rng.uniform(2)  # [B, 2] whether to explore, and where
        return torch.where(chance[:, 0] < self.epsilon, observation.drawn(chance[:, 1]), best), info

    def update(self, state: Learned, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo) -> Learned:
        stage, stages = stage_of(observation), state.q.shape[1]
        if stage > 0:
            self._learn(state.q, state.pending.cell, state.pending.reward + info.auxiliary_value)
        cell = cells(observation, stage, arm, state.q.shape[2:])
        if stage == stages - 1:
            self._learn(state.q, cell, reward)
        state.pending = Pending(cell, reward.clone())
        return state

    def _learn(self, q: Tensor, cell: Tensor, target: Tensor) -> None:
        old = q.view(-1).index_select(0, place_of(cell, q[0].numel()))
        add(q.flatten(1), cell, (target - old).mul_(self.rate))
