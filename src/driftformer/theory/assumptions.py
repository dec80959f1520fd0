"""The non-stationarity assumption (`asm-non-sta`), tested for an agent in an environment.

It requires, in every round t with Δ_{[1,t]} ≤ ρ(t), that r̃_t ≥ min_{τ≤t} r*_τ − Δ_{[1,t]}, and that the average of r̃ −
r up to t is at most ρ(t) + Δ_{[1,t]}; both in a share of at least 1 − 1/T of the problems. We count problems, and how
often the condition on Δ holds at all: where the world changes in every round, Δ soon exceeds ρ(t) and nothing is
required any more.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from driftformer.agents.registry import make_agent
from driftformer.environments.base import Environment
from driftformer.environments.nonstationarity import nonstationarity
from driftformer.errors import InputError
from driftformer.randomness import CHUNK, Randomness, one_thread
from driftformer.simulation.rollout import rollout
from driftformer.simulation.tape import lay_out
from driftformer.theory.bounds import inverse_root


@dataclass(frozen=True)
class AssumptionCounts:
    """In how many problems, and in how many of their rounds, the assumption holds."""

    required: float  # the share of (problem, round) with Δ ≤ ρ(t)
    optimistic: float  # the share of problems where the first inequality holds whenever it is required
    regret: float  # the same for the second
    both: float
    scale: float  # the c for which ρ(t) = c/√t would satisfy the second in 1 − 1/T of the problems, if always required

    def holds(self, horizon: int) -> bool:
        """Whether both hold in a share of at least 1 − 1/T of the problems."""
        return self.both >= 1 - 1 / horizon


@one_thread()
def count_assumption(agent: str, environment: Environment) -> AssumptionCounts:
    """Play an agent on a chunk of problems and count, for ρ(t) = 1/√t."""
    played = rollout(environment, make_agent(agent), trajectories=True).trajectories
    assert played is not None
    if played.auxiliary_values is None:
        raise InputError(f"agent is '{agent}', which has no auxiliary value; choose one that learns")
    tape = lay_out(environment, Randomness(0))
    best = tape.values.amax(dim=2).double()  # [B, T] r*
    changes = nonstationarity(environment, problems=CHUNK).changes
    amount = torch.cat([torch.zeros_like(changes[:, :1]), changes.cumsum(dim=1)], dim=1)  # [B, T] Δ_{[1,t]}
    rounds = torch.arange(1, environment.horizon + 1, dtype=torch.double)
    rates = torch.tensor([inverse_root(t) for t in range(1, environment.horizon + 1)], dtype=torch.double)
    auxiliary = played.auxiliary_values.double()  # [B, T] r̃
    average = (auxiliary - played.rewards.double()).cumsum(dim=1) / rounds
    required = amount <= rates
    first = (auxiliary >= best.cummin(dim=1).values - amount) | ~required
    second = (average <= rates + amount) | ~required
    return AssumptionCounts(
        required=float(required.double().mean()),
        optimistic=float(first.all(dim=1).double().mean()),
        regret=float(second.all(dim=1).double().mean()),
        both=float((first & second).all(dim=1).double().mean()),
        scale=float(((average - amount) * rounds.sqrt()).amax(dim=1).quantile(1 - 1 / environment.horizon)),
    )
