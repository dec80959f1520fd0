"""How likely an agent is to play each arm: by its own formula, or by counting what it draws.

An agent that never draws a random number is certain of its arm. One that draws may state its distribution, as
`probabilities(observation, info)`; of any other, Thompson sampling for example, the shares of many draws are counted.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from driftformer.agents.base import Agent
from driftformer.agents.restart import PeriodicRestart
from driftformer.agents.rows import take_rows
from driftformer.problem import Observation
from driftformer.randomness import Randomness, Stream

DRAWS = 1000
"""Draws whose shares stand for an agent's probabilities where it cannot state them."""

_AT_ONCE = 100


class Coins(Stream):
    """Random numbers that are made when they are first asked for; `used` says whether they were."""

    def __init__(self, seed: int, number: int, size: int, dtype: torch.dtype, purpose: str = "service") -> None:
        self._of = (seed, number, size, dtype, purpose)
        self._made: Stream | None = None

    @property
    def used(self) -> bool:
        return self._made is not None

    def apart(self, place: int) -> Coins:
        """Random numbers of their own for one of several users."""
        seed, number, _, dtype, purpose = self._of
        return Coins(seed, number, 1, dtype, f"{purpose} {place}")

    def _draw(self, kind: Any, shape: tuple[int, ...]) -> Tensor:
        if self._made is None:
            seed, number, size, dtype, purpose = self._of
            self._made = Randomness(seed, (number,), size=size, dtype=dtype).stream(purpose)
        return self._made._draw(kind, shape)


def stated(agent: Agent, observation: Observation, arm: Tensor, info: Any, coins: Coins) -> Tensor | None:
    """The probabilities `[B, A]` behind a choice, if the agent can tell; None if they must be counted."""
    while isinstance(agent, PeriodicRestart):  # it plays as its base does, whose info it hands on
        agent = agent.base
    if hasattr(agent, "probabilities"):
        told: Tensor = agent.probabilities(observation, info)
        return told
    if coins.used:
        return None
    return functional.one_hot(arm, observation.action_set.shape[1]).to(observation.action_set.dtype)


def drawn(likely: Tensor, uniform: Tensor) -> Tensor:
    """An arm `[U]` from probabilities `[U, A]` and Unif[0, 1) numbers `[U]`."""
    ends = likely.double().cumsum(dim=1)
    return (uniform.double().unsqueeze(1) * ends[:, -1:] >= ends).sum(dim=1)


def counted(agent: Agent, state: Any, observation: Observation, seed: int, number: int, draws: int = DRAWS) -> Tensor:
    """The shares `[B, A]` of many draws, a multiple of 100; `state` stays as it is."""
    batch, arms, _ = observation.action_set.shape
    shares = torch.zeros(batch, arms, dtype=observation.action_set.dtype)
    for row in range(batch):
        rows = torch.full((_AT_ONCE,), row)
        offered = None if observation.offered is None else observation.offered[rows]
        seen = Observation(observation.action_set[rows], offered)
        for part in range(draws // _AT_ONCE):
            coins = Coins(seed, number, _AT_ONCE, shares.dtype, f"count {row} {part}")
            arm, _ = agent.act(take_rows(state, rows), seen, coins)
            shares[row] += torch.bincount(arm, minlength=arms)
    return shares / shares.sum(dim=1, keepdim=True)
