"""A small MDP for tests of agents: Bernoulli rewards, transitions drawn anew for each problem and at given episodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from driftformer.problem import Observation, Traits, Truth, pick
from driftformer.randomness import Randomness


@dataclass(frozen=True)
class TinyWorld:
    t: int
    observation: Observation
    values: Tensor  # [B, A]
    rewards: Tensor  # [B, H, S, A]
    moves: Tensor  # [B, H, S, A, S]
    q: Tensor  # [B, H, S, A]
    changed: Tensor  # [B]


@dataclass(frozen=True)
class TinyMDP:
    episodes: int = 30
    stages: int = 3
    states: int = 4
    arms: int = 2
    changes: tuple[int, ...] = ()  # episodes, from 0, before which everything is drawn anew
    stages_differ: bool = True
    bounded: bool = True
    name: ClassVar[str] = "tiny-mdp"

    @property
    def horizon(self) -> int:
        return self.episodes * self.stages

    @property
    def dim(self) -> int:
        return self.arms

    @property
    def traits(self) -> Traits:
        sizes = {"states": self.states, "stages": self.stages, "stages_differ": self.stages_differ}
        return Traits(one_hot=True, same_arms=True, abrupt=True, unit_rewards=self.bounded, **sizes)

    def _draw(self, randomness: Randomness) -> tuple[Tensor, Tensor, Tensor]:
        """Rewards and transitions, and what every arm is worth, by backward induction."""
        tables, sizes = self.stages if self.stages_differ else 1, (self.states, self.arms)
        rewards = randomness.stream("rewards").uniform(tables, *sizes).pow(3)
        moves = -randomness.stream("moves").uniform(tables, *sizes, self.states).clamp_min(1e-6).log()
        rewards = rewards.expand(-1, self.stages, -1, -1)
        moves = (moves / moves.sum(-1, keepdim=True)).expand(-1, self.stages, -1, -1, -1)
        q = rewards.clone()
        for h in range(self.stages - 2, -1, -1):
            q[:, h] += (moves[:, h] * q[:, h + 1].amax(-1)[:, None, None]).sum(-1)
        return rewards, moves, q

    def _see(self, q: Tensor, t: int, state: Tensor) -> tuple[Observation, Tensor]:
        stage = (t - 1) % self.stages
        sets = torch.eye(self.arms, dtype=q.dtype).expand(len(q), -1, -1).contiguous()
        return Observation(sets, state=state, stage=torch.full_like(state, stage)), pick(q[:, stage], state)

    def reset(self, randomness: Randomness) -> TinyWorld:
        rewards, moves, q = self._draw(randomness)
        first = torch.zeros(randomness.batch, dtype=torch.long)
        return TinyWorld(1, *self._see(q, 1, first), rewards, moves, q, first.bool())

    def step(self, world: TinyWorld, arm: Tensor, randomness: Randomness) -> tuple[Tensor, Tensor, TinyWorld]:
        state, stage = world.observation.state, (world.t - 1) % self.stages
        assert state is not None
        chance = randomness.stream("chance").uniform(2)  # [B, 2]
        reward = (chance[:, 0] < pick(pick(world.rewards[:, stage], state), arm)).to(world.values.dtype)
        heights = pick(pick(world.moves[:, stage], state), arm).cumsum(-1)  # [B, S]
        following = (heights <= chance[:, 1:]).sum(-1).clamp_max(self.states - 1)
        rewards, moves, q, changed = world.rewards, world.moves, world.q, torch.zeros_like(world.changed)
        if stage == self.stages - 1:
            following = torch.zeros_like(state)
            if world.t // self.stages in self.changes:
                (rewards, moves, q), changed = self._draw(randomness), torch.ones_like(changed)
        after = TinyWorld(world.t + 1, *self._see(q, world.t + 1, following), rewards, moves, q, changed)
        return reward, world.values.amax(1) - pick(world.values, arm), after

    def truth(self, world: TinyWorld) -> Truth:
        return Truth(world.values, world.changed)

    def describe(self) -> str:
        return f"tiny-mdp: {self.episodes} episodes of {self.stages} steps"

    def config(self) -> dict[str, Any]:
        return {"name": self.name, **{key: str(value) for key, value in vars(self).items()}}
