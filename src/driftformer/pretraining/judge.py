"""The regret of a policy while it is trained: real dynamic regret on problems that training never sees."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.models.sampling import standard_gumbel
from driftformer.pretraining.play import Player
from driftformer.pretraining.problems import Problems, unroll
from driftformer.pretraining.worlds import World
from driftformer.randomness import Randomness

_SEED = 2**40
"""Far from the seeds of recipes and of evaluations."""


@dataclass(frozen=True)
class _Case:
    """One world's problems, laid out once, with the coins of all rounds."""

    problems: Problems
    noise: Tensor  # [P, T]
    gumbel: Tensor  # [P, T, A]
    uniform: float  # the uniform policy's regret


class Judge:
    """Measures regret on the same problems at every call."""

    def __init__(self, worlds: list[World], problems: int, dim: int, device: torch.device) -> None:
        """About as many rounds of each world as that many problems of the first one have."""
        first = worlds[0].environment.horizon
        self._cases = [
            _lay_out(world, place, max(1, problems * first // world.environment.horizon), dim, device)
            for place, world in enumerate(worlds)
        ]

    def share(self, player: Player) -> float:
        """Regret of sampling from the policy as a share of the uniform policy's, averaged over worlds."""
        shares = []
        for case in self._cases:
            played = player.play(case.problems, case.noise, case.gumbel)
            lost = case.problems.gaps.gather(2, played.arms.unsqueeze(2)).sum(dim=(1, 2)).mean()
            shares.append(float(lost) / case.uniform)
        return sum(shares) / len(shares)


@torch.no_grad()
def _lay_out(world: World, place: int, size: int, dim: int, device: torch.device) -> _Case:
    environment = world.environment
    randomness = Randomness(_SEED, (place,), size=size, device=device)
    problems = unroll(environment, randomness, dim)
    return _Case(
        problems,
        randomness.stream("judge-noise").normal(environment.horizon),
        standard_gumbel(randomness.stream("judge-gumbel").uniform(environment.horizon, environment.arms)),
        float(problems.gaps.mean(dim=2).sum(dim=1).mean()),
    )
