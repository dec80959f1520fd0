"""RestartQ-UCB (Mao, Zhang, Zhu, Simchi-Levi and Başar, 2021): Q-learning in batches of visits, begun anew each epoch.

The visits of each (h, s, a) are divided into batches of e_1 = H, e_{i+1} = ⌊(1 + 1/H)·e_i⌋. At the end of one of n

    Q_h(s, a) ← min{Q_h(s, a), mean of r + V_{h+1}(s') over the batch + b},   b = scale·√(H²/n)
    V_h(s) = max_a Q_h(s, a)

(The paper calls batches stages, and the steps of an episode steps.) The K episodes of a problem are divided into epochs
of ⌈K/`epochs`⌉; each begins with no memory. The paper chooses their number by how much the MDP changes, which it must
be told. This is its version with Hoeffding bonuses and without b_Δ, as in its experiments; `scale` stands for √ι.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo
from driftformer.agents.episodes import Pending, cells, hopes, nothing_pending, play, stage_of, unbounded
from driftformer.agents.linucb import precise
from driftformer.agents.restart import RestartState, begin, begin_again, restart_diagnostics, restart_events
from driftformer.errors import InputError, require_count, require_real
from driftformer.problem import Observation, place_of
from driftformer.randomness import Stream


@dataclass
class Batches:
    q: Tensor  # [B, H, S, A]
    recent: Tensor  # [B, H·S·A, 3] of the present batch: its length, its visits so far, the sum of their r + V
    pending: Pending


def no_batches(shape: ProblemShape) -> Batches:
    """No visits yet."""
    q = hopes(precise(shape))
    recent = torch.zeros(shape.batch, q[0].numel(), 3, device=q.device, dtype=q.dtype)
    recent[..., 0] = shape.stages
    return Batches(q, recent, nothing_pending(shape))


def learn(
    state: Batches, observation: Observation, arm: Tensor, reward: Tensor, value: Tensor, scale: float
) -> Batches:
    """Take in a step, and V_h(s) `[B]` of its state for the step before, in place."""
    stage, stages = stage_of(observation), state.q.shape[1]
    if stage > 0:
        _count(state, state.pending.cell, state.pending.reward + value, scale)
    cell = cells(observation, stage, arm, state.q.shape[2:])
    if stage == stages - 1:
        _count(state, cell, reward, scale)
    state.pending = Pending(cell, reward.clone())
    return state


def _count(state: Batches, cell: Tensor, target: Tensor, scale: float) -> None:
    """Add r + V_{h+1}(s') `[B]` to a batch of visits; where it is full, lower Q and begin the next one."""
    stages = state.q.shape[1]
    place = place_of(cell, state.recent.shape[1])
    q, recent = state.q.view(-1), state.recent.view(-1, 3)
    length, visits, total = recent.index_select(0, place).unbind(1)
    visits, total = visits + 1, total + target
    full = visits >= length
    old = q.index_select(0, place)
    found = torch.add(total / visits, visits.rsqrt(), alpha=scale * stages)
    q.index_copy_(0, place, torch.where(full, torch.minimum(old, found), old))
    longer, going = length + (length / stages).floor_() * full, ~full
    recent.index_copy_(0, place, torch.stack([longer, visits * going, total * going], dim=1))


@dataclass(frozen=True)
class RestartQUCB:
    """Optimistic Q-learning that begins anew in each of so many epochs."""

    epochs: int = 5
    scale: float = 0.05
    name: ClassVar[str] = "restart-q-ucb"
    learns: ClassVar[bool] = True
    episodic: ClassVar[bool] = True
    why_not = staticmethod(unbounded)
    events = staticmethod(restart_events)
    diagnostics = staticmethod(restart_diagnostics)

    def __post_init__(self) -> None:
        require_count("epochs", self.epochs)
        require_real("scale", self.scale, 0.0)

    def init(self, shape: ProblemShape) -> RestartState:
        if self.epochs > shape.episodes:
            raise InputError(f"epochs is {self.epochs}, but there are {shape.episodes} episodes; give at most as many")
        return begin(shape, no_batches(shape))

    def act(self, state: RestartState, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        return play(state.memory.q, observation, stage_of(observation))

    def update(
        self, state: RestartState, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo
    ) -> RestartState:
        learn(state.memory, observation, arm, reward, info.auxiliary_value, self.scale)
        state = replace(state, age=state.age + 1)
        if stage_of(observation) < state.shape.stages - 1:
            return state
        epoch = -(-state.shape.episodes // self.epochs) * state.shape.stages
        return begin_again(state, state.age == epoch, no_batches)
