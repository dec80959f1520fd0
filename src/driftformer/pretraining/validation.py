"""The regret of a policy while it is trained: real dynamic regret on problems that training never sees."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.models.sampling import standard_gumbel
from driftformer.pretraining.collect import collect
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
    randomness: Randomness


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
        shares = [float(lost.mean()) for lost in self.shares(player)]
        return sum(shares) / len(shares)

    def shares(self, player: Player) -> list[Tensor]:
        """The same for every problem of each world, `[P]` each."""
        every = []
        for case in self._cases:
            played = player.play(case.problems, case.noise, case.gumbel)
            every.append(regret_of(case.problems, played.arms) / case.uniform)
        return every

    def shares_of(self, agent: str) -> list[Tensor]:
        """The same for any other agent, on the same problems with coins of its own."""
        return [
            regret_of(case.problems, collect(case.problems, {agent: 1.0}, case.randomness).arms) / case.uniform
            for case in self._cases
        ]


def regret_of(problems: Problems, arms: Tensor) -> Tensor:
    """Dynamic regret of some arms `[P, T]`, `[P]`."""
    return problems.gaps.gather(2, arms.unsqueeze(2)).sum(dim=(1, 2))


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
        randomness,
    )
