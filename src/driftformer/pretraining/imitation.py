"""How close a policy is to its teacher Alg_B, round by round, and over whole trajectories.

A teacher's own coins (a posterior sample, MASTER's schedule) are not in the history, so what it does given a history is
a distribution: here the average over several copies that are led along the same history with coins of their own. An
argmax puts all of a copy's weight on one arm, and ratios against it are infinite wherever the policy does anything
else; so each copy has a soft form, the softmax of what it compares (confidence bounds, sampled rewards) over a
temperature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from driftformer.agents.base import Agent
from driftformer.agents.incontext import InContext
from driftformer.agents.registry import full_label
from driftformer.environments.base import Environment
from driftformer.errors import InputError
from driftformer.models.incontext import InContextPolicy
from driftformer.randomness import Randomness, one_thread
from driftformer.simulation.collect import collect
from driftformer.simulation.follow import follow
from driftformer.simulation.tape import problems_of
from driftformer.simulation.trajectories import Trajectories

TEMPERATURE = 0.1
"""Of the soft forms, in units of reward: a tenth of a typical gap in the High environment."""

COPIES = 128
"""Of a teacher, each with its own coins. Where it is near uniform, an average over C of them is off by A/2C in KL."""

TEACHER = "other copies of the teacher"
FEW = 10
"""Fewer effective trajectories than this make an average of ratios worthless."""


@dataclass(frozen=True)
class Closeness:
    """One algorithm against a teacher on given histories, per round `[T]`."""

    kl: Tensor  # KL(teacher ‖ algorithm)
    agreement: Tensor  # the probability that both choose the same arm
    log_likelihood: Tensor  # of the teacher's arms


def teacher_distribution(
    teacher: Agent,
    trajectories: Trajectories,
    randomness: Randomness,
    *,
    temperature: float = TEMPERATURE,
    copies: int = COPIES,
) -> Tensor:
    """Log-probabilities of Alg_B(· | D_{t-1}, s_t) in its soft form along recorded histories, `[P, T, A]`."""
    total = torch.full_like(trajectories.on_offer.values, -math.inf, dtype=torch.double)
    for copy in range(copies):
        for t, (_, info) in enumerate(follow(teacher, trajectories, randomness.stream(f"teacher-{copy}"))):
            values = getattr(info, "values", None)
            if values is None:
                raise InputError(f"teacher is '{teacher.name}', which compares no values; use one that does")
            total[:, t] = torch.logaddexp(total[:, t], (values.double() / temperature).log_softmax(dim=1))
    return total - math.log(copies)


@torch.no_grad()
def policy_distribution(policy: InContextPolicy, trajectories: Trajectories) -> Tensor:
    """Log-probabilities of a policy along recorded histories, `[P, T, A]`."""
    parts, features = [], trajectories.on_offer.features
    every = torch.arange(len(trajectories.arms), device=trajectories.arms.device)
    for rows in torch.split(every, 64):
        logits = policy(features[rows], trajectories.arms[rows], trajectories.rewards[rows])
        parts.append(logits.float().log_softmax(dim=2))
    return torch.cat(parts)


def optimum_distribution(trajectories: Trajectories) -> Tensor:
    """Log-probabilities of the optimum's soft form, `[P, T, A]`."""
    return (trajectories.on_offer.values / TEMPERATURE).log_softmax(dim=2)


def uniform_distribution(trajectories: Trajectories) -> Tensor:
    values = trajectories.on_offer.values
    return torch.full_like(values, -math.log(values.shape[2]))


def closeness(teacher: Tensor, algorithm: Tensor) -> Closeness:
    """Compare the log-probabilities of a teacher and of an algorithm, both `[P, T, A]`."""
    probability = teacher.exp()
    likelihood = (probability * algorithm).sum(dim=2)  # [P, T]
    negative_entropy = (probability * teacher).sum(dim=2)
    return Closeness(
        kl=(negative_entropy - likelihood).mean(dim=0),
        agreement=(probability * algorithm.exp()).sum(dim=2).mean(dim=0),
        log_likelihood=likelihood.mean(dim=0),
    )


@dataclass(frozen=True)
class DistributionRatio:
    """An estimate of R, the expectation of Π_t Alg_1/Alg_2 over trajectories of Alg_1; as logarithms, it is huge."""

    log_ratio: float
    relative_error: float  # standard error of R over R
    effective: float  # trajectories that carry the average: (Σw)²/Σw²
    trajectories: int

    @property
    def warning(self) -> str | None:
        """Why this estimate should not be trusted, if so."""
        if self.effective >= FEW:
            return None
        return (
            f"log R = {self.log_ratio:.1f} rests on {self.effective:.1f} of {self.trajectories} trajectories; "
            "the true ratio is likely larger"
        )


def distribution_ratio(first: Tensor, second: Tensor) -> DistributionRatio:
    """R from log-probabilities `[P, T]` that two algorithms give the arms of trajectories played by the first."""
    logs = (first.double() - second.double()).sum(dim=1)  # [P]
    count = len(logs)
    log_mean = torch.logsumexp(logs, 0) - math.log(count)
    weights = (logs - logs.max()).exp()
    effective = float(weights.sum() ** 2 / (weights**2).sum())
    relative = weights / weights.mean()
    error = float(relative.std() / math.sqrt(count)) if count > 1 else math.inf
    return DistributionRatio(float(log_mean), error, effective, count)


def measure_closeness(
    agent: InContext, teacher: Agent, environment: Environment, *, runs: int, seed: int = 0, copies: int = COPIES
) -> dict[str, Any]:
    """KL, agreement and log-likelihood of the policy, a uniform one and the optimum; the distribution ratio.

    The problems are those of an evaluation, which training never saw. The row of other copies of the teacher is the
    best that an imitation can do: their agreement is the teacher's with itself, and their KL is the error of an average
    over that many copies.
    """
    randomness = Randomness(seed, (0,), size=runs)
    with one_thread(), torch.inference_mode():
        problems = problems_of(environment, randomness)
        played = collect(problems, {full_label(teacher): 1.0}, Randomness(seed, (1,), size=runs))
        taught, again = (
            teacher_distribution(teacher, played, coins, copies=copies)
            for coins in (randomness, Randomness(seed, (2,), size=runs))
        )
        model = agent.model(torch.device("cpu"))
        sampled = policy_distribution(model, played)
        found = {
            TEACHER: again,
            "this policy": sampled,
            "uniform": uniform_distribution(played),
            "optimum": optimum_distribution(played),
        }
        rows = {name: closeness(taught, log_probabilities) for name, log_probabilities in found.items()}
        own = collect(problems, {full_label(agent): 1.0}, Randomness(seed, (1,), size=runs))
        index = own.arms.unsqueeze(2)
        first, second = policy_distribution(model, own), teacher_distribution(teacher, own, randomness, copies=copies)
        ratio = distribution_ratio(first.gather(2, index).squeeze(2), second.gather(2, index).squeeze(2))
        likeliest = sampled.argmax(dim=2, keepdim=True)
    return {
        "trajectories": runs,
        "copies": copies,
        "temperature": TEMPERATURE,
        "closeness": {
            name: {key: float(value.mean()) for key, value in vars(row).items()} for name, row in rows.items()
        },
        "greedy_agreement": float(taught.exp().gather(2, likeliest).mean()),
        "by_round": {name: {key: value.tolist() for key, value in vars(row).items()} for name, row in rows.items()},
        "distribution_ratio": {**vars(ratio), "warning": ratio.warning},
    }
