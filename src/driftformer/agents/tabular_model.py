"""The model that UCB-VI and its kin learn: how often each arm was played in each state, what it paid and where it led.

Where the steps of an episode are alike, they share one table (K = 1), else each has its own (K = H). A table has S²·A
numbers. From a model, Q is computed backwards from the last stage, for all problems at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape
from driftformer.agents.episodes import cells
from driftformer.agents.linucb import precise
from driftformer.agents.ucb import add
from driftformer.problem import Observation


@dataclass
class Model:
    visits: Tensor  # [B, K, S, A] how often an arm was played in a state
    paid: Tensor  # [B, K, S, A] the sum of its rewards there
    moves: Tensor  # [B, K, S, A, S] how often it led to each state
    cell: Tensor  # [B] the entry of the step whose next state is not known yet


def begin(shape: ProblemShape) -> Model:
    """A model that has seen nothing."""
    shape = precise(shape)
    tables = shape.stages if shape.stages_differ else 1
    sizes = (shape.batch, tables, shape.states, shape.arms)
    visits = torch.zeros(sizes, device=shape.device, dtype=shape.dtype)
    moves = torch.zeros(*sizes, shape.states, device=shape.device, dtype=shape.dtype)
    return Model(visits, visits.clone(), moves, torch.zeros(shape.batch, dtype=torch.long, device=shape.device))


def learn(model: Model, observation: Observation, stage: int, arm: Tensor, reward: Tensor) -> Model:
    """Take in a step, and where the one before it led, in place."""
    tables, states, arms = model.visits.shape[1:]
    one = torch.ones_like(reward, dtype=model.visits.dtype)
    if stage > 0:
        add(model.moves.flatten(1), arrival(model.cell, observation, states), one)
    model.cell = cells(observation, stage if tables > 1 else 0, arm, (states, arms))
    add(model.visits.flatten(1), model.cell, one)
    add(model.paid.flatten(1), model.cell, reward.to(one.dtype))
    return model


def arrival(cell: Tensor, observation: Observation, states: int) -> Tensor:
    """Where "played there, led here" stands among the moves of one problem, `[B]`."""
    assert observation.state is not None
    return torch.add(observation.state, cell, alpha=states)


def expected(weights: Tensor, value: Tensor) -> Tensor:
    """Σ_s' w(s, a, s')·V(s'), `[B, S, A]`, from `[B, S, A, S]` and `[B, S]`.

    As a row times a transposed matrix, since a matrix times a column takes up to thirty times as long here.
    """
    return torch.bmm(value.unsqueeze(1), weights.flatten(1, 2).mT).view(weights.shape[:3])


@dataclass(frozen=True)
class Estimate:
    """What a model says of one stage, `[B, S, A]` each."""

    count: Tensor  # what it rests on: visits that tell what follows; in the last stage, all visits
    reward: Tensor  # the mean reward, 0 where there was none
    following: Tensor  # the mean of V_{h+1}(s'), 0 where nothing is known
    variance: Tensor | None  # of r + V_{h+1}(s'), if it was asked for


def plan(model: Model, stages: int, bonus: Callable[[int, Estimate], Tensor], variances: bool) -> Tensor:
    """Optimistic Q `[B, H, S, A]`: r̂ + P̂·V_{h+1} + bonus, at most H − h, and H − h where nothing is known.

    Rewards lie in [0, 1], so r̂(1 − r̂) is the most that theirs can vary, and exact for rewards of 0 and 1.
    """
    batch, tables, states, arms = model.visits.shape
    reward = model.paid / model.visits.clamp_min(1)
    departures = model.moves.sum(-1)  # [B, K, S, A]
    scarce = departures.clamp_min(1)
    q = model.visits.new_empty(batch, stages, states, arms)
    value = q.new_zeros(batch, states)  # [B, S] V_{h+1}
    for stage in range(stages - 1, -1, -1):
        table, last = stage if tables > 1 else 0, stage == stages - 1
        count = model.visits[:, table] if last else departures[:, table]
        following = variance = torch.zeros_like(count)
        if not last:
            following = expected(model.moves[:, table], value) / scarce[:, table]
            if variances:
                square = expected(model.moves[:, table], value.square()) / scarce[:, table]
                variance = square.sub_(following.square()).clamp_min_(0)
        mean = reward[:, table]
        estimate = Estimate(count, mean, following, variance + mean * (1 - mean) if variances else None)
        hope = stages - stage
        optimistic = (mean + following).add_(bonus(hope, estimate)).clamp_max_(hope)
        q[:, stage] = optimistic.masked_fill_(count < 0.5, hope)
        value = q[:, stage].amax(dim=2)
    return q
