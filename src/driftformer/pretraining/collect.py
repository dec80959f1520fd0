"""Alg_0: offline trajectories from a mixture of behaviours.

Every trajectory has its own weights over the behaviours, drawn around the asked shares; in each round one of them
chooses the arm by these weights, and all of them learn from what came of it. `noisy-optimum` knows the mean rewards:
where it is in the mixture, the arms of a history betray what the rewards alone do not, and a policy that is trained to
name the optimal arm learns to trust its own past choices. The shipped policies are trained without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from driftformer.agents.base import Agent, Privileged, ProblemShape
from driftformer.agents.registry import make_agent
from driftformer.errors import InputError, require_real
from driftformer.pretraining.problems import Problems
from driftformer.randomness import Randomness, Stream

NOISY_OPTIMUM = "noisy-optimum"
UNIFORM = "random"


@dataclass(frozen=True)
class Trajectories:
    """What was played and what it brought."""

    arms: Tensor  # [P, T]
    rewards: Tensor  # [P, T]


class _Behaviour(Protocol):
    def act(self, t: int) -> Tensor: ...
    def update(self, t: int, arm: Tensor, reward: Tensor) -> None: ...


class _Uniform:
    def __init__(self, problems: Problems, rng: Stream) -> None:
        self._arms = uniform_arms(problems, rng)

    def act(self, t: int) -> Tensor:
        return self._arms[:, t]

    def update(self, t: int, arm: Tensor, reward: Tensor) -> None: ...


class _NoisyOptimum:
    """The best arm by mean rewards to which as much noise was added as they have spread."""

    def __init__(self, problems: Problems, rng: Stream) -> None:
        self._means, self._rng = problems.means, rng

    def act(self, t: int) -> Tensor:
        means = self._means[:, t]
        noise = self._rng.normal(means.shape[1]) * means.std(dim=1, keepdim=True)
        return (means + noise).argmax(dim=1)

    def update(self, t: int, arm: Tensor, reward: Tensor) -> None: ...


class Follower:
    """An agent led along a history: it is asked for its arm in each round and learns from the arm that was played.

    A privileged one is told the truth of each round first, as in the simulation.
    """

    def __init__(self, agent: Agent, problems: Problems, rng: Stream) -> None:
        self._agent, self._problems, self._rng = agent, problems, rng
        batch, horizon, arms = problems.means.shape
        dim = problems.features.shape[3]
        self._state = agent.init(ProblemShape(batch, horizon, arms, dim, problems.means.device, problems.means.dtype))
        self.info: Any = None

    def act(self, t: int) -> Tensor:
        if isinstance(self._agent, Privileged):
            self._state = self._agent.inform(self._state, self._problems.truth(t))
        arm, self.info = self._agent.act(self._state, self._action_set(t), self._rng)
        return arm

    def update(self, t: int, arm: Tensor, reward: Tensor) -> None:
        self._state = self._agent.update(self._state, self._action_set(t), arm, reward, self.info)

    def _action_set(self, t: int) -> Tensor:
        return self._problems.features[:, t].to(self._problems.means.dtype).contiguous()


def check_behaviours(shares: Mapping[str, float]) -> None:
    """Refuse behaviours that cannot be played, before anything is computed."""
    if not shares:
        raise InputError("behaviours is empty; name at least one, such as random")
    for name, share in shares.items():
        require_real(f"the share of {name}", share, 0.0, above=True)
        if name != NOISY_OPTIMUM and isinstance(make_agent(name), Privileged):
            raise InputError(f"behaviours: '{name}' must be told the truth; use {NOISY_OPTIMUM} for a noisy one")


def collect(problems: Problems, shares: Mapping[str, float], randomness: Randomness) -> Trajectories:
    """Play the mixture on some problems."""
    noise = randomness.stream("behaviour-noise").normal(problems.means.shape[1])  # [P, T]
    if list(shares) == [UNIFORM]:
        arms = uniform_arms(problems, randomness.stream("uniform"))
        return Trajectories(arms, problems.rewards(arms, noise))
    behaviours = [_behaviour(name, problems, randomness) for name in shares]
    ends = mixture_weights(shares, randomness.stream("weights")).cumsum(dim=1)  # [P, K]
    coins = randomness.stream("coins").uniform(problems.means.shape[1])  # [P, T]
    played, rewards = [], []
    for t in range(problems.means.shape[1]):
        offers = torch.stack([behaviour.act(t) for behaviour in behaviours], dim=1)  # [P, K]
        who = (coins[:, t : t + 1] >= ends[:, :-1]).sum(dim=1, keepdim=True)
        arm = offers.gather(1, who).squeeze(1)
        mean = problems.means[:, t].gather(1, arm.unsqueeze(1)).squeeze(1)
        reward = torch.addcmul(mean, problems.spread[:, t], noise[:, t])
        for behaviour in behaviours:
            behaviour.update(t, arm, reward)
        played.append(arm)
        rewards.append(reward)
    return Trajectories(torch.stack(played, dim=1), torch.stack(rewards, dim=1))


def mixture_weights(shares: Mapping[str, float], rng: Stream) -> Tensor:
    """Each trajectory's weights over the behaviours, `[P, K]`: the shares times exponential numbers, summing to 1."""
    share = torch.tensor(list(shares.values()))
    uniform = rng.uniform(len(shares))
    weights = share.to(uniform) * -torch.log1p(-uniform.clamp(max=0.9999))
    weights = weights + 1e-9
    return weights / weights.sum(dim=1, keepdim=True)


def uniform_arms(problems: Problems, rng: Stream) -> Tensor:
    """Arms chosen uniformly in all rounds, `[P, T]`."""
    _, horizon, arms = problems.means.shape
    return (rng.uniform(horizon) * arms).long()


def _behaviour(name: str, problems: Problems, randomness: Randomness) -> _Behaviour:
    rng = randomness.stream(f"behaviour-{name}")
    if name == UNIFORM:
        return _Uniform(problems, rng)
    if name == NOISY_OPTIMUM:
        return _NoisyOptimum(problems, rng)
    return Follower(make_agent(name), problems, rng)
