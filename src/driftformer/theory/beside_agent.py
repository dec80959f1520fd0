"""One problem for two players: the MASTER agent, handed the random numbers that the network made from its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional

from driftformer.agents.base import ProblemShape
from driftformer.agents.master import Master
from driftformer.randomness import Stream
from driftformer.theory.noncontinuous import Round


@dataclass(frozen=True)
class Problem:
    """A small linear bandit whose parameter changes halfway."""

    features: Tensor  # [T, A, d]
    noise: Tensor  # [T, orders] for random numbers
    parameters: Tensor  # [2, d]
    errors: Tensor  # [T]

    def pay(self, t: int, arm: int) -> float:
        """The reward of an arm in a round, from 0."""
        now = t * 2 // len(self.features)
        return float(self.features[t, arm] @ self.parameters[now] + self.errors[t])


def problem(horizon: int, seed: int, arms: int = 4, dim: int = 3) -> Problem:
    generator = torch.Generator().manual_seed(seed)
    return Problem(
        features=torch.rand(horizon, arms, dim, generator=generator, dtype=torch.double) * 2 - 1,
        noise=torch.rand(horizon, horizon.bit_length(), generator=generator, dtype=torch.double),
        parameters=torch.randn(2, dim, generator=generator, dtype=torch.double),
        errors=torch.randn(horizon, generator=generator, dtype=torch.double) * 0.3,
    )


class _Given:
    """A stream that hands out prepared numbers, one row a round; orders that a block lacks never start."""

    def __init__(self, rows: list[Tensor]) -> None:
        self._rows = iter(rows)

    def uniform(self, count: int) -> Tensor:
        row = next(self._rows)
        return functional.pad(row, (0, count - len(row)), value=1.0).unsqueeze(0)


def agent_rounds(master: Master, one: Problem, coins: list[Tensor]) -> list[Round]:
    """The problem as the agent plays it, with given random numbers."""
    horizon, arms, dim = one.features.shape
    state = master.init(ProblemShape(1, horizon, arms, dim, one.features.device, one.features.dtype))
    stream, seen = cast(Stream, _Given(coins)), []
    for t in range(horizon):
        offered = one.features[t].unsqueeze(0)
        arm, info = master.act(state, offered, stream)
        reward = torch.tensor([one.pay(t, int(arm))], dtype=torch.double)
        n, hope = int(state.n), float(info.auxiliary_value)
        lowest, earned = min(float(state.lowest), hope), float(state.earned + reward)
        hoped = float(state.hoped) + hope - float(reward)
        state = master.update(state, offered, arm, reward, info)
        happened = state.happened
        seen.append(Round(n, int(happened.order), int(arm), lowest, earned, hoped, bool(happened.failed), coins[t]))
    return seen
