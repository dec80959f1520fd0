"""Whole problems, played by the one network and by the MASTER agent, round by round with the same coins.

The network is computed as `def-nctf` says: only the token of the present round goes through the layers, and each layer
reads the earlier tokens as they were left. Its keys and values are kept, once for layers with the same heads. The agent
shares with it the coins that the network made, the uniform number that draws the arm, and the environment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape
from driftformer.models.relu_transformer import ReLULayer
from driftformer.problem import Observation, pick
from driftformer.randomness import Stream
from driftformer.theory.noncontinuous import CEILING, NonContinuous
from driftformer.theory.soft import draw_by_softmax

RISE = 8.0
"""By how much rewards rise halfway: more than Test 1's margin where tests are small, and far below C."""


@dataclass(frozen=True)
class Problems:
    """Small linear bandits and all the chance that playing them takes.

    Halfway the parameter changes and all rewards rise, which is what Test 1 looks for; without it, Test 2 alone fails.
    """

    features: Tensor  # [B, T, A, d]
    parameters: Tensor  # [B, 2, d]
    errors: Tensor  # [B, T] of rewards
    noise: Tensor  # [B, tokens, M] from which the network makes its coins
    uniforms: Tensor  # [B, T] that draw the arms
    normals: Tensor  # [B, T, d] for base algorithms that sample

    def reward(self, t: int, arm: Tensor) -> Tensor:
        """Rewards `[B]` of arms `[B]` in a round, counted from 0."""
        half = t * 2 // self.features.shape[1]
        means = (self.features[:, t] * self.parameters[:, half].unsqueeze(1)).sum(dim=2)
        return pick(means, arm) + self.errors[:, t] + RISE * half


def problems(network: NonContinuous, seeds: Iterable[int]) -> Problems:
    """One problem for each seed."""
    sizes = network.memory.sizes
    made = [_problem(seed, sizes.rounds, sizes.tokens, sizes.orders, sizes.arms, sizes.d) for seed in seeds]
    return Problems(*(torch.stack(parts) for parts in zip(*made, strict=True)))


def _problem(seed: int, rounds: int, tokens: int, orders: int, arms: int, d: int) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, dtype=torch.double)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.double)

    features = uniform(rounds, arms, d) * 2 - 1
    return features, normal(2, d), normal(rounds) * 0.3, uniform(tokens, orders), uniform(rounds), normal(rounds, d)


@dataclass(frozen=True)
class Played:
    """What happened, `[B, T]` each unless said otherwise."""

    n: Tensor  # the order of the block
    order: Tensor  # the active order
    arm: Tensor
    failed: Tensor  # bool: a test failed after the round
    bound: Tensor  # U after the round; inf where a block ended
    earned: Tensor  # the block's sum of rewards after the round, zero where it ended
    hoped: Tensor  # the block's sum of r̃ − r, likewise
    log_probabilities: Tensor  # [B, T, A]
    tests: Tensor | None = None  # which of them failed, 1, 2 or 3 for both, as the agent tells; the network does not

    @property
    def restarts(self) -> int:
        return int(self.failed.sum())

    def same_choices(self, other: Played) -> Tensor:
        """Where blocks, active orders, arms and verdicts agree in every round, `[B]` bool."""
        pairs = ((self.n, other.n), (self.order, other.order), (self.arm, other.arm), (self.failed, other.failed))
        return torch.stack([(a == b).all(dim=1) for a, b in pairs]).all(dim=0)

    def largest_difference(self, other: Played) -> float:
        """Between U, sums and log-probabilities of any round."""
        pairs = [(self.bound, other.bound), (self.earned, other.earned), (self.hoped, other.hoped)]
        pairs.append((self.log_probabilities, other.log_probabilities))
        return max(float((a - b).masked_fill(a == b, 0.0).abs().nan_to_num(torch.inf).max()) for a, b in pairs)


def _played(rows: list[dict[str, Tensor]]) -> Played:
    return Played(**{name: torch.stack([row[name] for row in rows], dim=1) for name in rows[0]})


class Matrix:
    """The token matrix H of some problems, with keys and values of the columns that are done."""

    def __init__(self, network: NonContinuous, tokens: Tensor) -> None:
        self.columns, self._done = tokens, 0  # [B, tokens, D]
        self._layers = [cast(ReLULayer, layer) for layer in network.transformer.layers]
        self._share = [layer.queries_keys_values.weight.data_ptr() for layer in self._layers]
        self._kept: dict[int, tuple[Tensor, Tensor]] = {}
        self._readers = dict(zip(self._share, self._layers, strict=True))

    def update(self, keys: Tensor, values: Tensor, layer_idx: int) -> tuple[Tensor, Tensor]:
        """Keys and values of the earlier columns and, last, those given (see `models.cache.KeyValues`)."""
        held, stop = self._held(self._share[layer_idx], keys), self._done + keys.shape[2]
        for slots, new in zip(held, (keys, values), strict=True):
            slots[:, :, self._done : stop] = new
        return held[0][:, :, :stop], held[1][:, :, :stop]

    def advance(self) -> Tensor:
        """One pass: the next column is put through all layers and stays as they leave it, `[B, D]`."""
        here = slice(self._done, self._done + 1)
        hidden = self.columns[:, here]
        visible = torch.ones(1, 1, 1, here.stop, dtype=torch.bool)
        for layer in self._layers:
            hidden = layer(hidden, visible, self)
        self.columns[:, here] = hidden
        self._settle(here)
        return hidden[:, 0]

    def skip(self, count: int) -> None:
        """Let columns stay as they are: those of burn-in, in which nothing is played."""
        here = slice(self._done, self._done + count)
        self._settle(here)

    def _settle(self, here: slice) -> None:
        """Keep keys and values of columns that are done."""
        for share, layer in self._readers.items():
            _, keys, values = layer.project(self.columns[:, here])
            for slots, new in zip(self._held(share, keys), (keys, values), strict=True):
                slots[:, :, here] = new
        self._done = here.stop

    def _held(self, share: int, like: Tensor) -> tuple[Tensor, Tensor]:
        if share not in self._kept:
            batch, heads, _, size = like.shape
            shape = (batch, heads, self.columns.shape[1], size)
            self._kept[share] = (like.new_zeros(shape), like.new_zeros(shape))
        return self._kept[share]


def play_by_network(network: NonContinuous, given: Problems) -> tuple[Played, Tensor]:
    """Play; also the coins that the network made, `[B, T, M]`."""
    at, sizes = network.memory.at, network.memory.sizes
    more = {"normal": given.normals} if "normal" in at else {}
    matrix = Matrix(network, network.memory.tokens(given.noise, given.features, more))
    matrix.skip(sizes.burn_in)
    rows: list[dict[str, Tensor]] = []
    coins = []
    column = matrix.advance()
    for t in range(sizes.rounds):
        log_probabilities = torch.log_softmax(column[:, at["value"]] / network.base.temperature, dim=1)
        arm = draw_by_softmax(log_probabilities, given.uniforms[:, t])
        row = {"n": column[:, at["n"]].argmax(1), "order": column[:, at["active"]].argmax(1), "arm": arm}
        coins.append(column[:, at["rand"]])
        answer(matrix.columns[:, sizes.burn_in + t + 1], network, arm, given, t)
        column = matrix.advance()
        bound, earned, promised = (column[:, at[name].start] for name in ("bound", "reward_sum", "auxiliary_sum"))
        row |= {"failed": column[:, at["failed"].start] > 0.5, "log_probabilities": log_probabilities}
        begins = column[:, at["tau"]].sum(dim=1) < 0.5  # a block, so there is no bound yet
        row |= {"bound": torch.where(begins, torch.inf, CEILING - bound), "earned": earned}
        rows.append(row | {"hoped": promised - earned})
    return _played(rows), torch.stack(coins, dim=1)


def answer(column: Tensor, network: NonContinuous, arm: Tensor, given: Problems, t: int) -> None:
    """The environment writes (a_t, r_t) into the next token `[B, D]`."""
    at = network.memory.at
    column[:, at["plays"]] = 1.0
    column[:, at["reward"]] = given.reward(t, arm).unsqueeze(1)
    column[:, at["x"]] = pick(given.features[:, t], arm)
    column[:, at["played"]] = torch.nn.functional.one_hot(arm, given.features.shape[2]).double()


def largest_token(network: NonContinuous) -> float:
    """R: the largest norm of a token after any layer, in the first rounds of one problem and at the last position."""
    given, sizes = problems(network, [0]), network.memory.sizes
    matrix = Matrix(network, network.memory.tokens(given.noise, given.features, {}))
    matrix.skip(sizes.tokens - 1)
    hidden, largest = matrix.columns[:, -1:], 0.0
    visible = torch.ones(1, 1, 1, sizes.tokens, dtype=torch.bool)
    for layer in network.transformer.layers:
        hidden = layer(hidden, visible, matrix)
        largest = max(largest, float(hidden.norm(dim=2).max()))
    return largest


def play_with_agent(network: NonContinuous, given: Problems, coins: Tensor) -> Played:
    """The same problems as the MASTER agent plays them with these coins."""
    batch, horizon, arms, dim = given.features.shape
    agent = network.master
    state = agent.init(ProblemShape(batch, horizon, arms, dim, given.features.device, given.features.dtype))
    rows: list[dict[str, Tensor]] = []
    for t in range(horizon):
        observation = Observation(given.features[:, t])
        arm, info = agent.act(state, observation, _stream(given, coins, t))
        n = state.n
        state = agent.update(state, observation, arm, given.reward(t, arm), info)
        row = {"n": n, "order": state.happened.order, "arm": arm, "failed": state.happened.failed > 0}
        row |= {"bound": state.lowest, "earned": state.earned, "hoped": state.hoped, "tests": state.happened.failed}
        rows.append(row | {"log_probabilities": info.base.log_probabilities})
    return _played(rows)


def _stream(given: Problems, coins: Tensor, t: int) -> Stream:
    """The numbers of one round: a coin for every order, one that draws the arm, and normal ones."""

    def uniform(count: int | None = None) -> Tensor:
        return given.uniforms[:, t] if count is None else coins[:, t]

    return cast(Stream, SimpleNamespace(uniform=uniform, normal=lambda count: given.normals[:, t]))
