"""A reading that the paper's text does not have: arms are worth ⟨a, w*⟩, and only rewards are multiplied by the cosine.

Section 2 compares with the best arm of each round, r*_t = max R_t(a). Here an arm keeps its worth while its rewards
turn, so that regret and labels are those of argmax ⟨a, w*⟩, and an agent must play what pays least where the cosine is
negative.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from driftformer.environments.drift import Effect
from driftformer.environments.linear import LinearBandit, LinearWorld
from driftformer.problem import pick
from driftformer.randomness import Randomness


@dataclass(frozen=True, kw_only=True)
class StaticOptimum(LinearBandit):
    """A linear bandit whose drift changes what arms pay, and not what they are worth."""

    def step(self, world: LinearWorld, arm: Tensor, randomness: Randomness) -> tuple[Tensor, Tensor, LinearWorld]:
        paid = super().values_of(world.observation.action_set, world.effect)
        reward, _, following = super().step(replace(world, values=paid), arm, randomness)
        best = world.observation.masked(world.values).amax(dim=1)
        return reward, best - pick(world.values, arm), self._worth(following)

    def _worth(self, world: LinearWorld) -> LinearWorld:
        return replace(world, values=self.values_of(world.observation.action_set, world.effect))

    def values_of(self, arms: Tensor, effect: Effect) -> Tensor:
        unchanged = replace(effect, scale=torch.ones_like(effect.scale), shift=torch.zeros_like(effect.shift))
        return super().values_of(arms, unchanged)
