"""Alg_B: what the policy should have done in each round of a recorded trajectory.

`optimal` is the arm with the highest mean reward. The name of an agent means its arm ā_t ~ Alg_B(· | D_{t-1}, s_t) on
that same history: it is led along the recorded arms and rewards and asked in every round. Its own coins (Thompson's
sample, MASTER's schedule) are not part of the history, so what a policy can learn is their average: the reduced base
algorithm of Section 3. `behaviour` is the arm that was played.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.agents.base import Agent, Privileged
from driftformer.agents.registry import make_agent
from driftformer.errors import InputError
from driftformer.pretraining.collect import Follower, Trajectories
from driftformer.pretraining.problems import Problems
from driftformer.randomness import Randomness, Stream

OPTIMAL = "optimal"
BEHAVIOUR = "behaviour"


def check_labels(source: str) -> None:
    """Refuse a source of labels that cannot be one, before anything is computed."""
    if source not in (OPTIMAL, BEHAVIOUR) and isinstance(make_agent(source), Privileged):
        raise InputError(f"labels is '{source}', which must be told the truth; use {OPTIMAL} or an ordinary agent")


def label(problems: Problems, trajectories: Trajectories, source: str, randomness: Randomness) -> Tensor:
    """The labels of all rounds, `[P, T]`."""
    if source == OPTIMAL:
        return problems.best
    if source == BEHAVIOUR:
        return trajectories.arms
    return relabel(make_agent(source), problems, trajectories, randomness.stream(f"label-{source}"))


def relabel(expert: Agent, problems: Problems, trajectories: Trajectories, rng: Stream) -> Tensor:
    """The arms an expert chooses along recorded histories, `[P, T]`."""
    follower, chosen = Follower(expert, problems, rng), []
    for t in range(trajectories.arms.shape[1]):
        chosen.append(follower.act(t))
        follower.update(t, trajectories.arms[:, t], trajectories.rewards[:, t])
    return torch.stack(chosen, dim=1)
