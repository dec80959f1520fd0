"""Alg_B: what the policy should have done in each round of a recorded trajectory.

`optimal` is the arm with the highest mean reward. The name of an agent means its arm ā_t ~ Alg_B(· | D_{t-1}, s_t) on
that same history: it is led along the recorded arms and rewards and asked in every round. Its own coins (Thompson's
sample, MASTER's schedule) are not part of the history, so what a policy can learn is their average: the reduced base
algorithm of Section 3. An expert may be privileged: `oracle` knows how the world drifts, though not w*, so its arms
teach how to explore and not only what is best. `behaviour` is the arm that was played.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.agents.base import Agent, Privileged
from driftformer.agents.registry import make_agent
from driftformer.errors import InputError
from driftformer.pretraining.collect import Follower, Trajectories
from driftformer.pretraining.problems import Problems
from driftformer.pretraining.worlds import World
from driftformer.randomness import Randomness, Stream

OPTIMAL = "optimal"
BEHAVIOUR = "behaviour"


def check_labels(source: str, worlds: list[World]) -> None:
    """Refuse a source of labels that cannot be one in these worlds, before anything is computed."""
    if source in (OPTIMAL, BEHAVIOUR):
        return
    expert = make_agent(source)
    if isinstance(expert, Privileged):
        for world in worlds:
            reason = expert.why_not(world.environment)
            if reason is not None:
                raise InputError(f"labels is '{source}', which cannot play {world.environment.name}: {reason}")


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
