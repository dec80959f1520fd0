"""Problems laid out over all their rounds: a bandit's world does not depend on what is played in it.

So it can be unrolled once; then any number of behaviours, experts and policies play it, in any order.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from driftformer.environments.linear_bandit import LinearBandit
from driftformer.randomness import Randomness


@dataclass(frozen=True)
class Problems:
    """A batch of problems. Fixed arms are one row of memory seen T times."""

    features: Tensor  # [P, T, A, d]
    means: Tensor  # [P, T, A] exact expected rewards
    spread: Tensor  # [P, T] standard deviation of each round's noise

    @property
    def gaps(self) -> Tensor:
        """The suboptimality of every arm, `[P, T, A]`."""
        return self.means.amax(dim=2, keepdim=True) - self.means

    @property
    def best(self) -> Tensor:
        """The optimal arm of every round, `[P, T]`."""
        return self.means.argmax(dim=2)

    def rewards(self, arms: Tensor, noise: Tensor) -> Tensor:
        """What some arms `[P, T]` bring with standard noise `[P, T]`."""
        return self.means.gather(2, arms.unsqueeze(2)).squeeze(2) + self.spread * noise

    def rows(self, rows: slice | Tensor) -> Problems:
        return Problems(self.features[rows], self.means[rows], self.spread[rows])


def unroll(environment: LinearBandit, randomness: Randomness, dim: int | None = None) -> Problems:
    """All rounds of a batch of problems; features are padded with zeros to `dim`."""
    world = environment.reset(randomness)
    features, means, spread = [], [], []
    for t in range(1, environment.horizon + 1):
        if t > 1:
            world = environment.advance(world, randomness)
        if t == 1 or environment.arm_mode == "resampled":
            features.append(world.action_set)
        means.append(world.mean_rewards)
        spread.append(world.effect.scale.abs() * environment.noise)
    laid = torch.stack(features, dim=1)  # [P, T or 1, A, d]
    if dim is not None and dim > environment.dim:
        laid = functional.pad(laid, (0, dim - environment.dim))
    return Problems(laid.expand(-1, environment.horizon, -1, -1), torch.stack(means, 1), torch.stack(spread, 1))
