"""The regret of a policy while it is trained: real dynamic regret on problems that training never sees."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.models.sampling import standard_gumbel
from driftformer.pretraining.players import AnyPlayer
from driftformer.pretraining.worlds import TrainingWorld
from driftformer.randomness import Randomness
from driftformer.simulation.collect import collect
from driftformer.simulation.tape import Problems, problems_of

_SEED = 2**40
"""Far from the seeds of recipes and of evaluations."""


@dataclass(frozen=True)
class _Case:
    """One world's problems, with the coins of all rounds."""

    problems: Problems
    gumbel: Tensor  # [P, T, A]
    uniform: float  # the uniform policy's regret
    randomness: Randomness


class Validation:
    """Measures regret on the same problems at every call."""

    def __init__(self, worlds: list[TrainingWorld], problems: int, dim: int, device: torch.device) -> None:
        """About as many rounds of each world as that many problems of the first one have."""
        first = worlds[0].environment.horizon
        self._cases = [
            _case(world, place, max(1, problems * first // world.environment.horizon), dim, device)
            for place, world in enumerate(worlds)
        ]

    def share(self, player: AnyPlayer) -> float:
        """Regret of sampling from the policy as a share of the uniform policy's, averaged over worlds."""
        shares = [float(lost.mean()) for lost in self.shares(player)]
        return sum(shares) / len(shares)

    def shares(self, player: AnyPlayer) -> list[Tensor]:
        """The same for every problem of each world, `[P]` each."""
        return [player.play(case.problems, case.gumbel).suboptimality.sum(dim=1) / case.uniform for case in self._cases]

    @torch.no_grad()
    def shares_of(self, agent: str) -> list[Tensor]:
        """The same for any other agent, on the same problems with coins of its own."""
        return [
            collect(case.problems, {agent: 1.0}, case.randomness).suboptimality.sum(dim=1) / case.uniform
            for case in self._cases
        ]


@torch.no_grad()
def _case(world: TrainingWorld, place: int, size: int, dim: int, device: torch.device) -> _Case:
    environment = world.environment
    randomness = Randomness(_SEED, (place,), size=size, device=device)
    problems = problems_of(environment, randomness, dim)
    gumbel = standard_gumbel(randomness.stream("gumbel").uniform(environment.horizon, environment.arms))
    laid = collect(problems, {"random": 1.0}, randomness.again()).on_offer
    arms = laid.values.shape[2] if laid.offered is None else laid.offered.sum(dim=2)  # on offer
    uniform = (laid.suboptimality.sum(dim=2) / arms).sum(dim=1).mean()
    return _Case(problems, gumbel, float(uniform), randomness)
