"""Alg_0: trajectories from a mixture of behaviours, in any environment.

Every trajectory has its own weights over the behaviours, drawn around the asked shares; in each round one of them
chooses the arm by these weights, and all of them learn from what came of it. `noisy-optimum` knows what arms are worth:
where it is in the mixture, the arms of a history betray what the rewards alone do not, and a policy that is trained to
name the optimal arm learns to trust its own past choices. The shipped policies are trained without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from driftformer.agents.base import Privileged, ProblemShape
from driftformer.agents.registry import make_agent
from driftformer.errors import InputError, require_real
from driftformer.problem import Observation, Truth
from driftformer.randomness import Randomness, Stream
from driftformer.simulation.follow import Follower
from driftformer.simulation.tape import Problems
from driftformer.simulation.trajectories import Trajectories, played

NOISY_OPTIMUM = "noisy-optimum"


class _Behaviour(Protocol):
    def act(self, observation: Observation, truth: Truth) -> Tensor: ...
    def update(self, observation: Observation, arm: Tensor, reward: Tensor) -> None: ...


class _NoisyOptimum:
    """The best arm by values to which as much noise was added as they have spread."""

    def __init__(self, rng: Stream) -> None:
        self._rng = rng

    def act(self, observation: Observation, truth: Truth) -> Tensor:
        noise = self._rng.normal(truth.values.shape[1]) * truth.values.std(dim=1, keepdim=True)
        return observation.best(truth.values + noise)

    def update(self, observation: Observation, arm: Tensor, reward: Tensor) -> None: ...


def check_behaviours(shares: Mapping[str, float]) -> None:
    """Refuse behaviours that cannot be played, before anything is computed."""
    if not shares:
        raise InputError("behaviours is empty; name at least one, such as random")
    for name, share in shares.items():
        require_real(f"the share of {name}", share, 0.0, above=True)
        if name != NOISY_OPTIMUM and isinstance(make_agent(name), Privileged):
            raise InputError(f"behaviours: '{name}' must be told the truth; use {NOISY_OPTIMUM} for a noisy one")


def collect(problems: Problems, shares: Mapping[str, float], randomness: Randomness) -> Trajectories:
    """Play the mixture on some problems, with coins of `randomness`."""
    course, shape = problems.begin(), problems.shape
    behaviours: list[_Behaviour] = [_behaviour(name, shape, randomness) for name in shares]
    ends = mixture_weights(shares, randomness.stream("weights")).cumsum(dim=1)  # [B, K]
    coins, arms, rewards = randomness.stream("coins"), [], []
    for _ in range(shape.horizon):
        observation, truth = course.observation, course.truth()
        proposals = torch.stack([behaviour.act(observation, truth) for behaviour in behaviours], dim=1)  # [B, K]
        who = (coins.uniform().unsqueeze(1) >= ends[:, :-1]).sum(dim=1, keepdim=True)
        arm = proposals.gather(1, who).squeeze(1)
        reward = course.pay(arm)
        for behaviour in behaviours:
            behaviour.update(observation, arm, reward)
        arms.append(arm)
        rewards.append(reward)
    return played(course.laid(), torch.stack(arms, dim=1), torch.stack(rewards, dim=1))


def mixture_weights(shares: Mapping[str, float], rng: Stream) -> Tensor:
    """Each trajectory's weights over the behaviours, `[B, K]`: the shares times exponential numbers, summing to 1."""
    share = torch.tensor(list(shares.values()))
    uniform = rng.uniform(len(shares))
    weights = share.to(uniform) * -torch.log1p(-uniform.clamp(max=0.9999)) + 1e-9
    return weights / weights.sum(dim=1, keepdim=True)


def _behaviour(name: str, shape: ProblemShape, randomness: Randomness) -> Any:
    rng = randomness.stream(f"behaviour-{name}")
    return _NoisyOptimum(rng) if name == NOISY_OPTIMUM else Follower(make_agent(name), shape, rng)
