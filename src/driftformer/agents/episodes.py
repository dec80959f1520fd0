"""What agents for MDPs share: what they can play, and where a step's numbers stand in their tables.

Tables have an entry for each stage h = 0, …, H−1, each state and each arm; from stage h on, no more than H − h can
still be earned. `update` does not show the next state. So an agent remembers a step until the next one begins, and
learns only then where it led; the last step of an episode leads nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo
from driftformer.problem import Observation, Traits, place_of, take


def no_states(traits: Traits) -> str | None:
    """Why an agent for MDPs cannot play such a problem; None if it can."""
    return None if traits.stages else "it is made for MDPs and needs states and episodes"


def unbounded(traits: Traits) -> str | None:
    """The same for one that needs rewards between 0 and 1."""
    wild = None if traits.unit_rewards else "it needs rewards between 0 and 1, and there they may lie outside"
    return no_states(traits) or wild


@dataclass(frozen=True)
class Pending:
    """A step whose next state is not known yet, `[B]` each: copies, since a restart writes into them."""

    cell: Tensor  # where its stage, state and arm stand in a table
    reward: Tensor


def nothing_pending(shape: ProblemShape) -> Pending:
    """Before an episode begins."""
    rows = torch.zeros(shape.batch, device=shape.device)
    return Pending(rows.long(), rows.to(shape.dtype))


def stage_of(observation: Observation) -> int:
    """The stage of all problems, which begin their episodes together."""
    assert observation.stage is not None, "agents for MDPs refuse bandits"
    return int(observation.stage[0])


def hopes(shape: ProblemShape) -> Tensor:
    """The most that could be earned from each stage on, for every state and arm: `[B, H, S, A]`, H − h."""
    left = torch.arange(shape.stages, 0, -1, device=shape.device, dtype=shape.dtype)
    return left.view(1, -1, 1, 1).repeat(shape.batch, 1, shape.states, shape.arms)


def cells(observation: Observation, table: int, arm: Tensor, sizes: Sequence[int]) -> Tensor:
    """Where `(table, state, arm)` stands among a problem's entries, `[B]`; sizes are the numbers of states and arms."""
    states, arms = sizes
    assert observation.state is not None
    return torch.add(arm, observation.state, alpha=arms).add_(table * states * arms)


def play(q: Tensor, observation: Observation, stage: int) -> tuple[Tensor, ValueInfo]:
    """The offered arm with the highest Q_h(s, ·), out of Q `[B, H, S, A]`; r̃ is that value, V_h(s)."""
    assert observation.state is not None
    stages, states = q.shape[1:3]
    values = take(q.flatten(1, 2), place_of(observation.state + stage * states, stages * states))  # [B, A]
    arm, highest = observation.choose(values)
    return arm, ValueInfo(values, highest)
