"""The MASTER agent on one small problem, given the random numbers that the network made: what the network must equal.

All calls of agents in this room are in `OneProblemAgent`.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from driftformer.agents.base import Agent, ProblemShape
from driftformer.agents.master import Master
from driftformer.problem import Observation
from driftformer.randomness import Stream


@dataclass(frozen=True)
class SmallProblem:
    """A small linear bandit whose parameter changes halfway."""

    features: Tensor  # [T, A, d]
    noise: Tensor  # [T, orders] from which the network makes its random numbers
    parameters: Tensor  # [2, d]
    errors: Tensor  # [T]

    def reward(self, t: int, arm: int) -> float:
        """The reward of an arm in a round, both counted from 0."""
        now = t * 2 // len(self.features)
        return float(self.features[t, arm] @ self.parameters[now] + self.errors[t])


def small_problem(horizon: int, seed: int, arms: int = 4, dim: int = 3) -> SmallProblem:
    generator = torch.Generator().manual_seed(seed)
    return SmallProblem(
        features=torch.rand(horizon, arms, dim, generator=generator, dtype=torch.double) * 2 - 1,
        noise=torch.rand(horizon, horizon.bit_length(), generator=generator, dtype=torch.double),
        parameters=torch.randn(2, dim, generator=generator, dtype=torch.double),
        errors=torch.randn(horizon, generator=generator, dtype=torch.double) * 0.3,
    )


@dataclass(frozen=True, eq=False)
class Round:
    """What happened in one round."""

    n: int  # the order of the block
    order: int  # the active order
    arm: int
    bound: float  # U_t
    earned: float  # the block's sum of rewards
    excess: float  # the block's sum of r̃ − r
    failed: bool
    coins: Tensor  # [n+1] the random number of each order

    def __eq__(self, other: object) -> bool:
        """The same block, order, arm and verdict, and the same numbers up to rounding."""
        if not isinstance(other, Round):
            return NotImplemented
        choices = [(one.n, one.order, one.arm, one.failed) for one in (self, other)]
        numbers = [(one.bound, one.earned, one.excess) for one in (self, other)]
        return choices[0] == choices[1] and all(abs(a - b) < 1e-8 for a, b in zip(*numbers, strict=True))


class OneProblemAgent:
    """An agent in a single problem: plain arms and rewards instead of batches."""

    def __init__(self, agent: Agent, features: Tensor) -> None:
        horizon, arms, dim = features.shape
        self._agent = agent
        self.state = agent.init(ProblemShape(1, horizon, arms, dim, features.device, features.dtype))

    def act(self, offered: Tensor, stream: Stream | None = None) -> tuple[int, Any]:
        """The arm among those offered `[A, d]`, and the agent's info; without a stream it must not need chance."""
        arm, info = self._agent.act(self.state, Observation(offered.unsqueeze(0)), cast(Stream, stream))
        return int(arm), info

    def update(self, offered: Tensor, arm: int, reward: float, info: Any) -> None:
        played, paid = torch.tensor([arm]), torch.tensor([reward], dtype=offered.dtype)
        self.state = self._agent.update(self.state, Observation(offered.unsqueeze(0)), played, paid, info)


def play_with_agent(master: Master, problem: SmallProblem, coins: list[Tensor]) -> list[Round]:
    """The problem as the MASTER agent plays it with these random numbers."""
    agent, rows, played = OneProblemAgent(master, problem.features), iter(coins), []

    def uniform(count: int) -> Tensor:
        """The prepared numbers of one round; orders that a block lacks never start."""
        row = next(rows)
        return functional.pad(row, (0, count - len(row)), value=1.0).unsqueeze(0)

    stream = cast(Stream, SimpleNamespace(uniform=uniform))
    for t, offered in enumerate(problem.features):
        arm, info = agent.act(offered, stream)
        reward, value, before = problem.reward(t, arm), float(info.auxiliary_value), agent.state
        agent.update(offered, arm, reward, info)
        after = agent.state.happened
        played.append(
            Round(
                n=int(before.n),
                order=int(after.order),
                arm=arm,
                bound=min(float(before.lowest), value),
                earned=float(before.earned) + reward,
                excess=float(before.hoped) + value - reward,
                failed=bool(after.failed),
                coins=coins[t],
            )
        )
    return played
