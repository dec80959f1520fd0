"""Measure how close a policy is to its teacher, on problems that training never saw."""

from __future__ import annotations

from typing import Any

import torch

from driftformer.agents.base import Agent
from driftformer.agents.incontext import InContext
from driftformer.agents.registry import full_label
from driftformer.environments.linear_bandit import LinearBandit
from driftformer.pretraining import imitation
from driftformer.pretraining.collect import collect
from driftformer.pretraining.problems import unroll
from driftformer.randomness import Randomness
from driftformer.simulation.rollout import one_thread


def measure_closeness(
    agent: InContext,
    teacher: Agent,
    environment: LinearBandit,
    *,
    runs: int = 200,
    seed: int = 0,
    copies: int = imitation.COPIES,
    temperature: float = imitation.TEMPERATURE,
) -> dict[str, Any]:
    """KL, agreement and log-likelihood of the policy, a uniform one and the optimum; the distribution ratio."""
    randomness = Randomness(seed, (0,), size=runs)
    with one_thread():
        problems = unroll(environment, randomness)
        played = collect(problems, {full_label(teacher): 1.0}, Randomness(seed, (1,), size=runs))
        taught = imitation.teacher_distribution(
            teacher, problems, played, randomness, copies=copies, temperature=temperature
        )
        model = agent.model(torch.device("cpu"))
        found = {
            "this policy": imitation.policy_distribution(model, problems, played),
            "uniform": imitation.uniform_distribution(problems),
            "optimum": imitation.optimum_distribution(problems, temperature),
        }
        rows = {name: imitation.closeness(taught, log_probabilities) for name, log_probabilities in found.items()}
        own = collect(problems, {full_label(agent): 1.0}, Randomness(seed, (1,), size=runs))
        first = imitation.policy_distribution(model, problems, own)
        second = imitation.teacher_distribution(
            teacher, problems, own, randomness, copies=copies, temperature=temperature
        )
        index = own.arms.unsqueeze(2)
        ratio = imitation.distribution_ratio(first.gather(2, index).squeeze(2), second.gather(2, index).squeeze(2))
    return {
        "trajectories": runs,
        "copies": copies,
        "temperature": temperature,
        "closeness": {
            name: {key: float(value.mean()) for key, value in vars(row).items()} for name, row in rows.items()
        },
        "by_round": {name: {key: value.tolist() for key, value in vars(row).items()} for name, row in rows.items()},
        "distribution_ratio": {**vars(ratio), "warning": ratio.warning},
    }
