"""Measure how close a policy is to its teacher, on problems that training never saw."""

from __future__ import annotations

from typing import Any

import torch

from driftformer.agents.base import Agent
from driftformer.agents.incontext import InContext
from driftformer.agents.registry import full_label
from driftformer.environments.base import Environment
from driftformer.pretraining import imitation
from driftformer.randomness import Randomness, one_thread
from driftformer.simulation.collect import collect
from driftformer.simulation.tape import problems_of

TEACHER = "other copies of the teacher"


def measure_closeness(
    agent: InContext,
    teacher: Agent,
    environment: Environment,
    *,
    runs: int = 200,
    seed: int = 0,
    copies: int = imitation.COPIES,
    temperature: float = imitation.TEMPERATURE,
) -> dict[str, Any]:
    """KL, agreement and log-likelihood of the policy, a uniform one and the optimum; the distribution ratio.

    The row of other copies of the teacher is the best that an imitation can do: their agreement is the teacher's with
    itself, and their KL is the error of an average over that many copies.
    """
    randomness = Randomness(seed, (0,), size=runs)
    with one_thread(), torch.inference_mode():
        problems = problems_of(environment, randomness)
        played = collect(problems, {full_label(teacher): 1.0}, Randomness(seed, (1,), size=runs))
        taught, again = (
            imitation.teacher_distribution(teacher, played, coins, copies=copies, temperature=temperature)
            for coins in (randomness, Randomness(seed, (2,), size=runs))
        )
        model = agent.model(torch.device("cpu"))
        sampled = imitation.policy_distribution(model, played)
        found = {
            TEACHER: again,
            "this policy": sampled,
            "uniform": imitation.uniform_distribution(played),
            "optimum": imitation.optimum_distribution(played, temperature),
        }
        rows = {name: imitation.closeness(taught, log_probabilities) for name, log_probabilities in found.items()}
        own = collect(problems, {full_label(agent): 1.0}, Randomness(seed, (1,), size=runs))
        first = imitation.policy_distribution(model, own)
        second = imitation.teacher_distribution(teacher, own, randomness, copies=copies, temperature=temperature)
        index = own.arms.unsqueeze(2)
        ratio = imitation.distribution_ratio(first.gather(2, index).squeeze(2), second.gather(2, index).squeeze(2))
        likeliest = sampled.argmax(dim=2, keepdim=True)
    return {
        "trajectories": runs,
        "copies": copies,
        "temperature": temperature,
        "closeness": {
            name: {key: float(value.mean()) for key, value in vars(row).items()} for name, row in rows.items()
        },
        "greedy_agreement": float(taught.exp().gather(2, likeliest).mean()),
        "by_round": {name: {key: value.tolist() for key, value in vars(row).items()} for name, row in rows.items()},
        "distribution_ratio": {**vars(ratio), "warning": ratio.warning},
    }
