"""Problems laid out over all their rounds: a bandit's world does not depend on what is played in it.

So it can be unrolled once; then any number of behaviours, experts and policies play it, in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from driftformer.environments import prior
from driftformer.environments.base import Truth
from driftformer.environments.linear import LinearBandit
from driftformer.randomness import Randomness


@dataclass(frozen=True)
class Changes:
    """How a batch of problems changes: what a privileged expert is told, round by round."""

    scale: Tensor  # [P, T]
    shift: Tensor  # [P, T]
    redrawn: Tensor  # [P, T] bool
    changed: Tensor  # [P, T] bool

    def of(self, take: Callable[[Tensor], Tensor]) -> Changes:
        return Changes(take(self.scale), take(self.shift), take(self.redrawn), take(self.changed))


@dataclass(frozen=True)
class Problems:
    """A batch of problems. Fixed arms are one row of memory seen T times."""

    features: Tensor  # [P, T, A, d]
    means: Tensor  # [P, T, A] exact expected rewards
    spread: Tensor  # [P, T] standard deviation of each round's noise
    changes: Changes
    environment: LinearBandit

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
        horizon = self.means.shape[1]
        once = self.features[:, :1] if self.features.stride(1) == 0 else self.features
        features = once[rows].expand(-1, horizon, -1, -1)
        changes = self.changes.of(lambda values: values[rows])
        return Problems(features, self.means[rows], self.spread[rows], changes, self.environment)

    def truth(self, t: int) -> Truth:
        """What no ordinary agent may see, of the round at place t."""
        environment, now = self.environment, self.changes.of(lambda values: values[:, t])
        mean, variance = prior.moments(environment.prior, environment.dim)
        return Truth(
            self.means[:, t], now.scale, now.shift, now.redrawn, now.changed, environment.noise, mean, variance
        )


def unroll(environment: LinearBandit, randomness: Randomness, dim: int | None = None) -> Problems:
    """All rounds of a batch of problems; features are padded with zeros to `dim`."""
    world = environment.reset(randomness)
    features, means, effects, changed = [], [], [], []
    for t in range(1, environment.horizon + 1):
        if t > 1:
            world = environment.advance(world, randomness)
        if t == 1 or environment.arm_mode == "resampled":
            features.append(world.action_set)
        means.append(world.mean_rewards)
        effects.append(world.effect)
        changed.append(world.changed)
    laid = torch.stack(features, dim=1)  # [P, T or 1, A, d]
    if dim is not None and dim > environment.dim:
        laid = functional.pad(laid, (0, dim - environment.dim))
    changes = Changes(
        scale=torch.stack([effect.scale for effect in effects], 1),
        shift=torch.stack([effect.shift for effect in effects], 1),
        redrawn=torch.stack([effect.redrawn for effect in effects], 1),
        changed=torch.stack(changed, 1),
    )
    return Problems(
        features=laid.expand(-1, environment.horizon, -1, -1),
        means=torch.stack(means, 1),
        spread=changes.scale.abs() * environment.noise,
        changes=changes,
        environment=environment,
    )
