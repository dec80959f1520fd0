"""When a world changes: the rounds that begin with a new law of rewards, in the first problem of an evaluation."""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.environments.base import Environment
from driftformer.problem import traits_of
from driftformer.randomness import Randomness, one_thread
from driftformer.simulation.tape import Unfolding


def change_points(environment: Environment, arms: Tensor, *, seed: int = 0) -> list[int]:
    """The rounds, from 1, that bring a change where these arms `[B, T]` are played; none where change is gradual."""
    if not traits_of(environment).abrupt:
        return []
    with one_thread(), torch.inference_mode():
        laid = Unfolding(environment, Randomness(seed), environment.dim).along(arms.long())
    told = [truth.changed for truth in laid.truths]
    return [t for t, changed in enumerate(told, 1) if t > 1 and changed is not None and bool(changed[0])]
