"""MDPs of every kind that can be drawn: what the policy for MDPs is pretrained on.

How many states an action leads to, which of them pay, how much, where one is trapped, and what differs between the
MDPs that a drift leads through are drawn for each problem. States and actions have no order. There are no locks, no
rivers and no rooms among them: those are kept for tests, as are cycles.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.environments.mdp import Model
from driftformer.environments.mdp_families import always
from driftformer.randomness import Stream


@dataclass(frozen=True)
class BroadFamily:
    """Sizes are the same for all problems; everything else is drawn."""

    states: int
    actions: int
    stages: int
    stages_differ: bool = False

    def draw(self, count: int, rng: Stream, like: Tensor) -> Model:
        steps = self.stages if self.stages_differ else 1
        kind = rng.uniform(8)  # [B, 8] what kind of problem it is
        trapped = rng.uniform(self.states) < 0.5 * (kind[:, :1] - 0.5).clamp(min=0)  # [B, S]; half of the problems
        trapped[:, 0] = False
        first = self._one(steps, kind, trapped, rng)
        rewards, transitions = [first.rewards], [first.transitions]
        changes_pay = (kind[:, 6] < 0.8)[:, None, None, None]
        changes_moves = ((kind[:, 6] > 0.5) | ~changes_pay[:, 0, 0, 0])[:, None, None, None]
        few = torch.where(kind[:, 7:] < 0.3, 0.2, 1.0)[:, :, None, None]  # which share of the pairs changes
        for _ in range(1, count):
            other = self._one(steps, kind, trapped, rng)
            chance = rng.uniform(steps * self.states * self.actions).view(-1, steps, self.states, self.actions)
            moved = chance < few
            rewards.append(torch.where(moved & changes_pay, other.rewards, first.rewards))
            transitions.append(torch.where((moved & changes_moves).unsqueeze(-1), other.transitions, first.transitions))
        return Model(torch.stack(rewards), torch.stack(transitions))

    def _one(self, steps: int, kind: Tensor, trapped: Tensor, rng: Stream) -> Model:
        """One MDP of each problem's kind."""
        states, actions = self.states, self.actions
        shape = (-1, steps, states, actions)
        pairs = steps * states * actions
        # One successor, two to four, or all of them.
        most = torch.where(kind[:, 1] < 0.35, 1.0, torch.where(kind[:, 1] < 0.8, 2 + 3 * kind[:, 2], float(states)))
        order = rng.uniform(pairs * states).view(*shape, states).argsort(dim=-1)
        weight = -rng.uniform(pairs * states).view(*shape, states).clamp(min=1e-7).log()
        weight = weight.masked_fill(order >= most.floor().clamp(max=states).view(-1, 1, 1, 1, 1), 0.0)
        slip = torch.where(kind[:, 3] < 0.5, 0.0, 0.1 * kind[:, 3]).view(-1, 1, 1, 1, 1)  # some of the time, anywhere
        moves = (1 - slip) * weight / weight.sum(-1, keepdim=True) + slip / states
        stay = torch.eye(states).to(moves)[:, None, :].expand(-1, actions, -1)
        moves = torch.where(trapped.view(-1, 1, states, 1, 1), stay, moves)

        value, place = rng.uniform(pairs).view(shape), rng.uniform(pairs).view(shape)
        rank = place.flatten(1).argsort(dim=1).argsort(dim=1).view(place.shape)
        one = (rank == 0).to(value)
        some = (place < 0.15) * value
        goal = (rng.uniform(states).argsort(dim=1) == 0).to(value)  # [B, S] a state that pays when it is reached
        reached = (moves * goal.view(-1, 1, 1, 1, states)).sum(-1)
        which = (kind[:, 4] * 4).long()[:, None, None, None]
        pays = torch.where(which == 0, value, torch.where(which == 1, one, torch.where(which == 2, some, reached)))
        decoy = torch.where(kind[:, 5] < 0.3, 0.1, 0.0)[:, None, None, None] * value * (place > 0.8)
        size = torch.where(kind[:, 5] > 0.7, kind[:, 5], 1.0)[:, None, None, None]
        pays = torch.where(trapped.view(-1, 1, states, 1), 0.0, torch.maximum(pays, decoy) * size)
        return Model(pays, moves)

    def start(self, rng: Stream, like: Tensor) -> Tensor:
        return always(0, like)
