"""The law of rewards, written once: how a mean becomes a reward, and how the chance in it is drawn.

Rollouts, laid-out problems, collection, fine-tuning and validation all use these. To add a law, write it here and name
it in `LAWS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from driftformer.randomness import Stream


class RewardLaw(Protocol):
    """How a mean becomes a reward."""

    def noise(self, rng: Stream) -> Tensor:
        """The chance of one round, `[B]`: always the same number of draws."""

    def reward(self, mean: Tensor, spread: Tensor, noise: Tensor) -> Tensor:
        """Rewards from mean rewards, the round's standard deviation and its chance, all of one shape."""


@dataclass(frozen=True)
class Gaussian:
    """mean + spread·ε with ε ~ N(0, 1)."""

    def noise(self, rng: Stream) -> Tensor:
        return rng.normal()

    def reward(self, mean: Tensor, spread: Tensor, noise: Tensor) -> Tensor:
        return torch.addcmul(mean, spread, noise)


@dataclass(frozen=True)
class HeavyTails(Gaussian):
    """The same with ε of Student's t with three degrees of freedom, scaled to unit variance."""

    def noise(self, rng: Stream) -> Tensor:
        draws = rng.normal(4)  # [B, 4]
        return draws[:, 0] / draws[:, 1:].square().sum(dim=1).sqrt().clamp(min=1e-6)


@dataclass(frozen=True)
class Bernoulli:
    """1 with probability `mean`, else 0; the spread plays no part."""

    def noise(self, rng: Stream) -> Tensor:
        return rng.uniform()

    def reward(self, mean: Tensor, spread: Tensor, noise: Tensor) -> Tensor:
        return (noise < mean).to(mean.dtype)


@dataclass(frozen=True)
class Exact:
    """The mean itself; nothing is drawn."""

    def noise(self, rng: Stream) -> Tensor:
        return torch.zeros(())

    def reward(self, mean: Tensor, spread: Tensor, noise: Tensor) -> Tensor:
        return mean


LAWS: dict[str, RewardLaw] = {
    "normal": Gaussian(),
    "heavy": HeavyTails(),
    "bernoulli": Bernoulli(),
    "exact": Exact(),
}


def _reflected(predictor: Tensor) -> Tensor:
    """Folded back at 0 and 1, so that a parameter that wanders beyond them turns around."""
    return 1 - (predictor.remainder(2) - 1).abs()


LINKS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda predictor: predictor,
    "logistic": torch.sigmoid,
    "reflected": _reflected,
}
"""How a linear predictor becomes a mean reward."""
