"""The non-stationarity assumption (`asm-non-sta`), tested for an agent in an environment.

It requires, in every round t with Δ_{[1,t]} ≤ ρ(t), that r̃_t ≥ min_{τ≤t} r*_τ − Δ_{[1,t]}, and that the average of r̃ −
r up to t is at most ρ(t) + Δ_{[1,t]}; both in a share of at least 1 − 1/T of the problems. We count problems, and how
often the condition on Δ holds at all: where the world changes in every round, Δ soon exceeds ρ(t) and nothing is
required any more.

The assumption speaks of r̃ and rewards in [0, 1]. Rewards are therefore mapped there, the least and the largest that the
agent met to 0 and 1, and r̃, best values and Δ with them; r̃ is cut off at 0 and 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from driftformer.agents.registry import make_agent
from driftformer.environments.base import Environment
from driftformer.environments.nonstationarity import nonstationarity
from driftformer.errors import InputError
from driftformer.randomness import CHUNK, Randomness, one_thread
from driftformer.simulation.rollout import rollout
from driftformer.simulation.tape import lay_out


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


def safe_alpha(d: int, rounds: int, noise: float, norm: float) -> float:
    """LinUCB's α for which bounds hold in all rounds with probability 1 − 1/T (Abbasi-Yadkori et al. 2011), ridge 1."""
    return noise * math.sqrt(d * math.log(1 + rounds / d) + 2 * math.log(rounds)) + norm


@one_thread()
def count_assumption(agent: str, environment: Environment, c: float = 1.0) -> AssumptionCounts:
    """Play an agent on a chunk of problems and count, for ρ(t) = c/√t."""
    played = rollout(environment, make_agent(agent), trajectories=True).trajectories
    assert played is not None
    if played.auxiliary_values is None:
        raise InputError(f"agent is '{agent}', which has no auxiliary value; choose one that learns")
    tape = lay_out(environment, Randomness(0))
    changes = nonstationarity(environment, problems=CHUNK).changes
    amount = torch.cat([torch.zeros_like(changes[:, :1]), changes.cumsum(dim=1)], dim=1)  # [B, T] Δ_{[1,t]}
    least, span = played.rewards.double().min(), played.rewards.double().max() - played.rewards.double().min()
    rewards, auxiliary = ((values.double() - least) / span for values in (played.rewards, played.auxiliary_values))
    best, amount = (tape.values.amax(dim=2).double() - least) / span, amount / span  # [B, T] r*
    auxiliary = auxiliary.clamp(0, 1)  # r̃
    rounds = torch.arange(1, environment.horizon + 1, dtype=torch.double)
    rates = c * rounds.rsqrt()
    average = (auxiliary - rewards).cumsum(dim=1) / rounds
    required, share = amount <= rates, 1 - 1 / environment.horizon
    first = (auxiliary >= best.cummin(dim=1).values - amount) | ~required
    second = (average <= rates + amount) | ~required
    return AssumptionCounts(
        required=float(required.double().mean()),
        optimistic=float(first.all(dim=1).double().mean()),
        regret=float(second.all(dim=1).double().mean()),
        both=float((first & second).all(dim=1).double().mean()),
        scale=float(((average - amount) * rounds.sqrt()).amax(dim=1).quantile(share, interpolation="higher")),
    )
