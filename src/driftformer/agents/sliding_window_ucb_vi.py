"""UCB-VI on the last episodes only: what it counts leaves the count again when it is `window` episodes old.

Sliding-window value iteration (as in SWUCRL2-CW of Cheung, Simchi-Levi and Zhu, 2020) with UCB-VI's bonuses and without
their widening of the confidence set. A ring remembers the steps of the window; one of more episodes than there are
forgets nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo
from driftformer.agents.episodes import play, stage_of, unbounded
from driftformer.agents.tabular_model import arrival, learn
from driftformer.agents.ucb import add
from driftformer.agents.ucb_vi import Planned, check_bonus, hope_for, replan
from driftformer.errors import require_count
from driftformer.problem import Observation, place_of
from driftformer.randomness import Stream


@dataclass
class Recent:
    planned: Planned  # from the steps of the window
    steps: Tensor  # [B, W·H] the entry of each step's state and arm, a ring; -1 where there was none yet
    moves: Tensor  # [B, W·H] the entry of where it led
    rewards: Tensor  # [B, W·H]
    age: Tensor  # [B] steps so far


@dataclass(frozen=True)
class SlidingWindowUCBVI:
    """Optimistic value iteration over the last `window` episodes."""

    window: int = 500
    bonus: str = "hoeffding"
    scale: float = 0.4
    name: ClassVar[str] = "sliding-window-ucb-vi"
    learns: ClassVar[bool] = True
    episodic: ClassVar[bool] = True
    why_not = staticmethod(unbounded)

    def __post_init__(self) -> None:
        require_count("window", self.window)
        check_bonus(self.bonus, self.scale)

    def init(self, shape: ProblemShape) -> Recent:
        size = min(self.window, shape.episodes) * shape.stages
        never = torch.full((shape.batch, size), -1, device=shape.device)
        planned = hope_for(shape)
        rewards = torch.zeros_like(never, dtype=planned.q.dtype)
        return Recent(planned, never, never.clone(), rewards, torch.zeros_like(never[:, 0]))

    def act(self, state: Recent, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        return play(state.planned.q, observation, stage_of(observation))

    def update(self, state: Recent, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo) -> Recent:
        stage, stages, size = stage_of(observation), state.planned.q.shape[1], state.steps.shape[1]
        model = state.planned.model
        if stage > 0:
            before = place_of((state.age - 1).remainder(size), size)
            state.moves.view(-1).index_copy_(0, before, arrival(model.cell, observation, model.visits.shape[2]))
        place = place_of(state.age.remainder(size), size)  # [B] of the step that leaves the window
        forget(state, place)
        learn(model, observation, stage, arm, reward)
        state.steps.view(-1).index_copy_(0, place, model.cell)
        state.rewards.view(-1).index_copy_(0, place, reward.to(state.rewards.dtype))
        state.moves.view(-1).index_fill_(0, place, -1)
        state.age.add_(1)
        if stage == stages - 1:
            state.planned.q = replan(model, stages, self.bonus, self.scale)
        return state


def forget(state: Recent, place: Tensor) -> None:
    """Take a step of each problem, and where it led, out of the counts, in place."""
    model = state.planned.model
    step, move, reward = (ring.view(-1).index_select(0, place) for ring in (state.steps, state.moves, state.rewards))
    gone, left = (-(entry >= 0).to(reward.dtype) for entry in (step, move))  # −1, or 0 where there was none
    add(model.visits.flatten(1), step.clamp_min(0), gone)
    add(model.paid.flatten(1), step.clamp_min(0), reward * gone)
    add(model.moves.flatten(1), move.clamp_min(0), left)
