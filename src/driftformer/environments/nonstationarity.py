"""How much an environment changes: Δ(t), Δ_I and J_I of Definition 1, exactly.

Δ(t) = max |R_t(a) − R_{t+1}(a)| with R_t the mean reward in round t. The maximum runs over the arms `offered` in
round t or t+1 (the default: what an agent can meet), or over the whole `box` [-1,1]^d, where it has the closed form
‖scale_t·w_t − scale_{t+1}·w_{t+1}‖₁ + |shift_t − shift_{t+1}|.

In an MDP, which changes between episodes only, a round is an episode, and as in Wei and Luo (2021) transitions count
too: Δ(m) = Σ_h max_{s,a} |R_h − R'_h| + H·Σ_h max_{s,a} TV(P_h, P'_h), from episode m to the next, with TV the total
variation. No policy's value changes by more (the simulation lemma).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from driftformer.environments.base import Environment
from driftformer.environments.linear import LinearBandit, LinearWorld
from driftformer.environments.mdp import Model, TabularMDP
from driftformer.errors import InputError, require_choice, require_count
from driftformer.randomness import CHUNK, Randomness

Over = Literal["offered", "box"]


@dataclass(frozen=True)
class Nonstationarity:
    """Δ(t) of every problem in rounds 1..T-1, and what follows from it; in an MDP, rounds are episodes."""

    changes: Tensor  # [B, T-1] float64: column t-1 is Δ(t)
    over: Over

    @property
    def horizon(self) -> int:
        return self.changes.shape[1] + 1

    def _within(self, first: int, last: int | None) -> Tensor:
        last = self.horizon if last is None else last
        if not 1 <= first <= last <= self.horizon:
            raise InputError(f"interval is [{first}, {last}]; give 1 <= first <= last <= {self.horizon}")
        return self.changes[:, first - 1 : last - 1]

    def amount(self, first: int = 1, last: int | None = None) -> Tensor:
        """Δ_I of the interval I = [first, last] (all rounds by default) in every problem, `[B]`."""
        return self._within(first, last).sum(dim=1)

    def count(self, first: int = 1, last: int | None = None) -> Tensor:
        """J_I of the interval, one plus the number of rounds that bring a change, in every problem, `[B]`."""
        return 1 + (self._within(first, last) != 0).sum(dim=1)


def nonstationarity(
    environment: Environment, *, problems: int = 64, seed: int = 0, over: Over = "offered"
) -> Nonstationarity:
    """Follow an environment through its rounds, in float64, and measure how its mean rewards change.

    The problems are those that `evaluate` with the same seed meets first.

    >>> change = df.nonstationarity(df.make_env("jumps", horizon=200, changes=3))
    >>> change.count().unique()  # J of Definition 1, of every problem
    tensor([4])
    >>> change.amount().shape  # Δ
    torch.Size([64])
    """
    require_count("problems", problems)
    require_count("seed", seed, 0, most=2**63)
    require_choice("over", over, get_args(Over))
    randomness = Randomness(seed, range(-(-problems // CHUNK)), dtype=torch.float64)
    if isinstance(environment, TabularMDP):
        return Nonstationarity(_between_episodes(environment, randomness)[:problems], over)
    if not isinstance(environment, LinearBandit):
        raise InputError(
            f"environment is '{environment.name}', whose rewards are not known for arms that are not on offer; Δ and J "
            "are measured in the bandits with parameters (high, low, bernoulli, logistic, …) and in MDPs"
        )
    if over == "box" and (environment.link != "identity" or environment.arm_mode not in ("fixed", "resampled")):
        raise InputError(f"over is 'box', but the arms of '{environment.name}' are no points of a box; use offered")
    world = environment.reset(randomness)
    changes = []
    while world.t < environment.horizon:
        following = environment.advance(world, randomness)
        changes.append(_offered(environment, world, following) if over == "offered" else _box(world, following))
        world = following
    table = torch.stack(changes, dim=1) if changes else world.values.new_zeros(randomness.batch, 0)
    return Nonstationarity(table[:problems], over)


def _offered(environment: LinearBandit, now: LinearWorld, later: LinearWorld) -> Tensor:
    arms = now.observation.action_set
    if later.observation.action_set is not arms:
        arms = torch.cat([arms, later.observation.action_set], dim=1)  # [B, 2A, d]
    return (environment.values_of(arms, now.effect) - environment.values_of(arms, later.effect)).abs().amax(dim=1)


def _box(now: LinearWorld, later: LinearWorld) -> Tensor:
    slope = now.effect.scale.unsqueeze(1) * now.effect.w - later.effect.scale.unsqueeze(1) * later.effect.w
    return slope.abs().sum(dim=1) + (now.effect.shift - later.effect.shift).abs()


def _between_episodes(environment: TabularMDP, randomness: Randomness) -> Tensor:
    """Δ(m) of the episodes of an MDP, `[B, M-1]`."""
    world = environment.reset(randomness)
    none = torch.zeros(randomness.batch, dtype=torch.double, device=randomness.device)
    changes = []
    for episode in range(1, environment.episodes):
        following = environment.next_episode(world, episode * environment.stages + 1, randomness)
        now, later = world.solved.model, following.solved.model
        changes.append(none if later is now else _moved(now, later, environment.stages))
        world = following
    return torch.stack(changes, dim=1) if changes else none.new_zeros(len(none), 0)


def _moved(now: Model, later: Model, stages: int) -> Tensor:
    rewards = (now.rewards - later.rewards).abs().flatten(2).amax(dim=2)  # [B, H']
    variation = (now.transitions - later.transitions).abs().sum(dim=-1).flatten(2).amax(dim=2) / 2  # [B, H']
    steps = (rewards + stages * variation).double()
    return steps.sum(dim=1) * (stages // steps.shape[1])
