"""The non-stationarity assumption (`asm-non-sta`) as a test for any agent in any environment.

It demands, in every round t in which Δ_{[1,t]} ≤ ρ(t): r̃_t ≥ min_{τ≤t} r*_τ − Δ_{[1,t]}, and the average of r̃ − r up
to t is at most ρ(t) + Δ_{[1,t]}; all of that in a share of at least 1 − 1/T of the runs. Here we count runs, and how
often the proviso holds at all: where the world changes in every round, Δ soon passes ρ(t) and nothing is demanded any
more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from driftformer.agents.registry import make_agent
from driftformer.environments.linear import LinearBandit
from driftformer.environments.nonstationarity import nonstationarity
from driftformer.errors import InputError, require_count
from driftformer.pretraining.problems import unroll
from driftformer.randomness import CHUNK, Randomness
from driftformer.simulation.rollout import rollout

Rho = Callable[[int], float]


@dataclass(frozen=True)
class Found:
    """What was counted."""

    runs: int
    demanded: float  # the share of (run, round) where Δ ≤ ρ(t)
    optimistic: float  # the share of runs where the first inequality holds whenever it is demanded
    regret: float  # the same for the second
    both: float
    scale: (
        float  # the c for which ρ(t) = c/√t would be enough for the second in 1 − 1/T of the runs, if always demanded
    )

    def holds(self, horizon: int) -> bool:
        """Whether both hold in a share of at least 1 − 1/T of the runs."""
        return self.both >= 1 - 1 / horizon


def one_over_root(t: int) -> float:
    """ρ(t) = 1/√t, the least that the assumption allows."""
    return 1 / math.sqrt(t)


def examine(agent: str, environment: LinearBandit, rho: Rho = one_over_root, chunks: int = 1, seed: int = 0) -> Found:
    """Play an agent and count."""
    require_count("chunks", chunks)
    played = rollout(environment, make_agent(agent), seed=seed, chunks=range(chunks), trajectories=True).trajectories
    assert played is not None
    if played.auxiliary_values is None:
        raise InputError(f"agent is '{agent}', which has no auxiliary value; use one that learns")
    problems = unroll(environment, Randomness(seed, range(chunks)))
    best = problems.means.amax(dim=2).double()  # [B, T] r*
    changes = nonstationarity(environment, problems=chunks * CHUNK, seed=seed).changes
    amount = torch.cat([torch.zeros_like(changes[:, :1]), changes.cumsum(dim=1)], dim=1)  # [B, T] Δ_{[1,t]}
    rates = torch.tensor([rho(t) for t in range(1, environment.horizon + 1)], dtype=torch.double)
    rounds = torch.arange(1, environment.horizon + 1, dtype=torch.double)
    hoped = played.auxiliary_values.double()
    average = (hoped - played.rewards.double()).cumsum(dim=1) / rounds
    demanded = amount <= rates
    first = (hoped >= best.cummin(dim=1).values - amount) | ~demanded
    second = (average <= rates + amount) | ~demanded
    return Found(
        runs=len(hoped),
        demanded=float(demanded.double().mean()),
        optimistic=float(first.all(dim=1).double().mean()),
        regret=float(second.all(dim=1).double().mean()),
        both=float((first & second).all(dim=1).double().mean()),
        scale=float(((average - amount) * rounds.sqrt()).amax(dim=1).quantile(1 - 1 / environment.horizon)),
    )
