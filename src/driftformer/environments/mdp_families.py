"""The MDPs that the named environments are made of: see `mdp_presets.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.environments.mdp import Model
from driftformer.randomness import Stream


def always(state: int, like: Tensor) -> Tensor:
    """The same first state in every episode, `[B]`."""
    return torch.full((len(like),), state, dtype=torch.long, device=like.device)


@dataclass(frozen=True)
class Lock:
    """The bidirectional combination lock: two chains of H − 1 states, 1..H−1 and H..2H−2, and a sinking state, 2H − 1.

    State 0 leads into a chain, one action into each, and with probability 1 − `success` into the other one. In a chain
    one action is right, drawn for each state and problem: it moves on with probability `success`, and at the end it
    pays with that probability; everything else leads to the sinking state, and pays `sunk` at once and in every step
    that is left: a small reward that is always at hand, and a bait.
    """

    stages: int
    success: float
    sunk: float
    ends: tuple[tuple[float, float], ...]  # of each MDP: what the two ends pay
    entrances: tuple[float, ...]  # of each MDP: how likely an action leads where it led at first
    actions: ClassVar[int] = 2
    stages_differ: ClassVar[bool] = False

    @property
    def states(self) -> int:
        return 2 * self.stages

    def draw(self, count: int, rng: Stream, like: Tensor) -> Model:
        right = (
            rng.uniform(self.states) < 0.5
        ).long()  # [B, S] the right action; in state 0, the one into the first chain
        rewards = like.new_zeros(count, len(like), 1, self.states, 2)
        transitions = like.new_zeros(count, len(like), 1, self.states, 2, self.states)
        sinking, problem = self.states - 1, torch.arange(len(like), device=like.device)
        transitions[..., sinking] = 1.0
        first, second = 1, self.stages
        for mdp in range(count):
            moves, pays = transitions[mdp, :, 0], rewards[mdp, :, 0]
            into = self.entrances[mdp]
            moves[:, 0], pays[:, 1:] = 0.0, self.sunk
            for action, share in ((right[:, 0], into), (1 - right[:, 0], 1 - into)):
                moves[problem, 0, action, first] = share
                moves[problem, 0, action, second] = 1 - share
            for chain, reward in zip((first, second), self.ends[mdp], strict=True):
                end = chain + self.stages - 2
                slip = (1 - self.success) * self.sunk
                pays[problem, end, right[:, end]] = reward * self.success + slip
                for state in range(chain, end):
                    pays[problem, state, right[:, state]] = slip
                    moves[problem, state, right[:, state], sinking] = 1 - self.success
                    moves[problem, state, right[:, state], state + 1] = self.success
        return Model(rewards, transitions)

    def start(self, rng: Stream, like: Tensor) -> Tensor:
        return always(0, like)


@dataclass(frozen=True)
class RiverSwim:
    """Swim against a current: upstream waits a reward of 1, where the current leads to one of .005.

    One action drifts with the current, the other one swims against it: from inside the river it gains a state with
    probability `gain`, loses one with .05, and else stays. Every other MDP has the river run the other way, so that
    rewards and actions are mirrored.
    """

    length: int
    gain: float
    actions: ClassVar[int] = 2
    stages_differ: ClassVar[bool] = False

    @property
    def states(self) -> int:
        return self.length

    def draw(self, count: int, rng: Stream, like: Tensor) -> Model:
        last, lose = self.length - 1, 0.05
        moves = like.new_zeros(self.length, 2, self.length)  # under action 0 with the current, under 1 against it
        for state in range(self.length):
            moves[state, 0, max(state - 1, 0)] = 1.0
            up, down = self.gain, lose if state else 0.0
            moves[state, 1, min(state + 1, last)] += up
            moves[state, 1, max(state - 1, 0)] += down
            moves[state, 1, state] += 1 - up - down
        pays = like.new_zeros(self.length, 2)
        pays[0, 0], pays[last, 1] = 0.005, 1.0
        turned = (pays.flip(0, 1), moves.flip(0, 1, 2))
        each = [(pays, moves) if mdp % 2 == 0 else turned for mdp in range(count)]
        rewards = torch.stack([one for one, _ in each])[:, None, None].expand(-1, len(like), -1, -1, -1)
        transitions = torch.stack([one for _, one in each])[:, None, None].expand(-1, len(like), -1, -1, -1, -1)
        return Model(rewards, transitions)

    def start(self, rng: Stream, like: Tensor) -> Tensor:
        return always(self.length // 2, like)


@dataclass(frozen=True)
class Darkroom:
    """A room of `size` × `size` fields: stay, or go up, down, left or right; a step onto the goal, or on it, pays 1."""

    size: int
    actions: ClassVar[int] = 5
    stages_differ: ClassVar[bool] = False

    @property
    def states(self) -> int:
        return self.size**2

    def draw(self, count: int, rng: Stream, like: Tensor) -> Model:
        field = torch.arange(self.states, device=like.device)
        row, column = field // self.size, field % self.size
        most = self.size - 1
        to = [field, (row - 1).clamp(min=0) * self.size + column, (row + 1).clamp(max=most) * self.size + column]
        to += [row * self.size + (column - 1).clamp(min=0), row * self.size + (column + 1).clamp(max=most)]
        moves = torch.eye(self.states).to(like)[torch.stack(to, dim=1)]  # [S, A, S]
        goals = torch.stack([(rng.uniform() * self.states).long() for _ in range(count)])  # [K, B]
        rewards = moves[:, :, goals].permute(2, 3, 0, 1).unsqueeze(2)  # [K, B, 1, S, A]
        return Model(rewards, moves.expand(count, len(like), 1, -1, -1, -1))

    def start(self, rng: Stream, like: Tensor) -> Tensor:
        return always(self.size // 2 * (self.size + 1), like)


@dataclass(frozen=True)
class RandomFamily:
    """Each action of each state leads to a few random states with probabilities of Dirichlet(1, …, 1).

    Mean rewards are Unif[0, 1] (dense), or 1 for one pair of state and action and 0 for all others (sparse).
    """

    states: int
    actions: int
    successors: int
    sparse: bool
    stages_differ: bool
    stages: int

    def draw(self, count: int, rng: Stream, like: Tensor) -> Model:
        steps, pairs = self.stages if self.stages_differ else 1, self.states * self.actions
        shape = (steps, self.states, self.actions)
        rewards, transitions = [], []
        for _ in range(count):
            chance = rng.uniform(steps * pairs).view(-1, steps, pairs)
            one = (chance == chance.flatten(1).amax(dim=1).view(-1, 1, 1)).to(like)
            rewards.append((one if self.sparse else chance).view(-1, *shape))
            order = rng.uniform(steps * pairs * self.states).view(-1, *shape, self.states).argsort(dim=-1)
            weight = -rng.uniform(steps * pairs * self.states).view_as(order).clamp(min=1e-7).log()
            weight = weight.masked_fill(order >= self.successors, 0.0)
            transitions.append(weight / weight.sum(dim=-1, keepdim=True))
        return Model(torch.stack(rewards), torch.stack(transitions))

    def start(self, rng: Stream, like: Tensor) -> Tensor:
        return always(0, like)


@dataclass(frozen=True)
class Given:
    """MDPs of one's own, the same for all problems."""

    rewards: Tensor  # [K, H', S, A]
    transitions: Tensor  # [K, H', S, A, S]
    first: int = 0

    @property
    def states(self) -> int:
        return self.rewards.shape[2]

    @property
    def actions(self) -> int:
        return self.rewards.shape[3]

    @property
    def stages_differ(self) -> bool:
        return self.rewards.shape[1] > 1

    def draw(self, count: int, rng: Stream, like: Tensor) -> Model:
        which = torch.arange(count) % len(self.rewards)
        rewards, transitions = (tensor[which].to(like).unsqueeze(1) for tensor in (self.rewards, self.transitions))
        return Model(
            rewards.expand(-1, len(like), *rewards.shape[2:]), transitions.expand(-1, len(like), *transitions.shape[2:])
        )

    def start(self, rng: Stream, like: Tensor) -> Tensor:
        return always(self.first, like)
