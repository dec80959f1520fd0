"""The regret of a policy while it is trained: real dynamic regret on problems that training never sees."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.models.sampling import standard_gumbel
from driftformer.pretraining.play import Player
from driftformer.pretraining.problems import unroll
from driftformer.pretraining.worlds import World
from driftformer.randomness import Randomness

_SEED = 2**40
"""Far from the seeds of recipes and of evaluations."""


@dataclass(frozen=True)
class Verdict:
    """Regret over whole trajectories in one world."""

    world: str
    regret: float
    uniform: float  # the uniform policy's

    @property
    def share(self) -> float:
        return self.regret / self.uniform


def judge(worlds: list[World], player: Player, problems: int, dim: int, device: torch.device) -> list[Verdict]:
    """Play some problems of each world by sampling from the policy; the same problems at every call."""
    verdicts = []
    for place, world in enumerate(worlds):
        environment = world.environment
        size = max(1, problems * worlds[0].environment.horizon // environment.horizon)
        randomness = Randomness(_SEED, (place,), size=size, device=device)
        with torch.no_grad():
            given = unroll(environment, randomness, dim)
            noise = randomness.stream("judge-noise").normal(environment.horizon)
            uniform: Tensor = randomness.stream("judge-gumbel").uniform(environment.horizon, environment.arms)
            played = player.play(given, noise, standard_gumbel(uniform))
            gaps = given.gaps
            regret = gaps.gather(2, played.arms.unsqueeze(2)).sum(dim=(1, 2)).mean()
            title = f"{environment.name} {environment.arm_mode} T={environment.horizon}"
            title += f" d={environment.dim}" if environment.dim != dim else ""
            verdicts.append(Verdict(title, float(regret), float(gaps.mean(dim=2).sum(dim=1).mean())))
    return verdicts
