"""Alg_B: what the policy should have done in each round of a recorded trajectory.

`optimal` is the arm that is worth most. The name of an agent means its arm ā_t ~ Alg_B(· | D_{t-1}, s_t) on that same
history: it is led along the recorded arms and rewards and asked in every round. Its own coins (Thompson's sample,
MASTER's schedule) are not part of the history, so what a policy can learn is their average: the reduced base algorithm
of Section 3. An expert may be privileged: `oracle` knows how the world drifts, though not w*, so its arms teach how to
explore and not only what is best. `behaviour` is the arm that was played.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.agents.registry import make_agent
from driftformer.errors import InputError
from driftformer.pretraining.worlds import TrainingWorld
from driftformer.problem import traits_of, why_not
from driftformer.randomness import Randomness
from driftformer.simulation.follow import follow
from driftformer.simulation.trajectories import Trajectories

OPTIMAL = "optimal"
BEHAVIOUR = "behaviour"


def check_labels(source: str, worlds: list[TrainingWorld]) -> None:
    """Refuse a source of labels that cannot be one in these worlds, before anything is computed."""
    if source in (OPTIMAL, BEHAVIOUR):
        return
    expert = make_agent(source)
    for world in worlds:
        reason = why_not(expert, traits_of(world.environment))
        if reason is not None:
            raise InputError(f"labels is '{source}', which cannot play {world.environment.name}: {reason}")


def label(trajectories: Trajectories, source: str, randomness: Randomness) -> Tensor:
    """The labels of all rounds, `[B, T]`."""
    if source == OPTIMAL:
        return trajectories.on_offer.best
    if source == BEHAVIOUR:
        return trajectories.arms
    chosen = follow(make_agent(source), trajectories, randomness.stream(f"label-{source}"))
    return torch.stack([arm for arm, _ in chosen], dim=1)
