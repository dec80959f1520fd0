"""Our bandit with features that were drawn beforehand, so that only learning and reward are timed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from driftformer.environments.linear import LinearBandit, LinearWorld
from driftformer.problem import Observation
from driftformer.randomness import Randomness


@dataclass(frozen=True)
class FixedFeatures:
    """A stationary bandit that offers `pool[t mod len(pool)]` in round t."""

    bandit: LinearBandit
    pool: tuple[Tensor, ...]  # each [B, A, d]

    @property
    def name(self) -> str:
        return "fixed-features"

    @property
    def horizon(self) -> int:
        return self.bandit.horizon

    @property
    def arms(self) -> int:
        return self.bandit.arms

    @property
    def dim(self) -> int:
        return self.bandit.dim

    def reset(self, randomness: Randomness) -> LinearWorld:
        return self._offer(self.bandit.reset(randomness))

    def step(self, world: LinearWorld, arm: Tensor, randomness: Randomness) -> tuple[Tensor, Tensor, LinearWorld]:
        reward, suboptimality, following = self.bandit.step(world, arm, randomness)
        return reward, suboptimality, self._offer(following)

    def _offer(self, world: LinearWorld) -> LinearWorld:
        action_set = self.pool[world.t % len(self.pool)]
        values = self.bandit.values_of(action_set, world.effect)
        return replace(world, observation=Observation(action_set), values=values)

    def truth(self, world: LinearWorld) -> Any:
        return self.bandit.truth(world)

    def describe(self) -> str:
        return f"{self.bandit.describe()}, given features"

    def config(self) -> dict[str, Any]:
        return self.bandit.config()
