"""The non-continuous transformer (`def-nctf`): MASTER by weights, token by token, with the environment in the loop.

For blocks of 2^n rounds there is one network. In round t its first layers turn noise into ranks, hold them, and make
flags; the base algorithm, which the realizability assumption provides, gives each live order's arm and auxiliary value;
σ1 and σ2 keep the active order's. The environment answers; further layers take the sums, update U and hold the tests.
Around it runs Algorithm 2's loop over blocks: a block that ends is followed by one of twice its length, a failed test
by one of a single round. (The definition itself has one fixed block; "a new 2^n-length block" after a failure disagrees
with Algorithm 2.) A horizon that is no sum of whole blocks just ends, as the text says.

What is not by weights: the base algorithm; the reading of one part's output into the next part's input, which is linear
but for "an instance of order i ends now" (live, and the last round of its block); and a restart, which here is a new
block with tokens of its own, so that RM has nothing left to erase (it is checked by itself).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from driftformer.agents.base import Agent, ProblemShape
from driftformer.agents.master import Master
from driftformer.models.relu_transformer import ReLUTransformer
from driftformer.theory.constructions import bernoulli, hold, ranks, sigma1, sigma2, stationarity, sums
from driftformer.theory.network import Layer, Mlp, Sizes, build, run, sizes
from driftformer.theory.tokens import Layout, empty_tokens

_NO_COINS: Any = None
"""The base agent must not need any: Algorithm 2's own are the network's."""
SHARPNESS = 1e5
"""k of all indicators: see `constructions/indicator.py`."""
TIE = 1e-9
"""Ranks are fractions and may equal a threshold such as ½; then rounding must not decide: a tie is not below."""
CEILING = 100.0
"""C in C − U: above every auxiliary value."""

Pay = Callable[[int, int], float]
"""The reward of an arm in a round, both from 0."""


@dataclass(frozen=True, eq=False)
class Round:
    """What happened in one round."""

    n: int  # the block's order
    order: int  # the active one
    arm: int
    lowest: float  # U_t
    earned: float  # the block's sum of rewards
    hoped: float  # the block's sum of r̃ − r
    failed: bool
    coins: Tensor  # [n+1] each order's rank of this round

    def __eq__(self, other: object) -> bool:
        """The same block, order, arm and verdict, and the same numbers but for rounding."""
        if not isinstance(other, Round):
            return NotImplemented
        choices = [(one.n, one.order, one.arm, one.failed) for one in (self, other)]
        numbers = [(one.lowest, one.earned, one.hoped) for one in (self, other)]
        return choices[0] == choices[1] and all(abs(a - b) < 1e-8 for a, b in zip(*numbers, strict=True))


@dataclass(frozen=True)
class BlockNetwork:
    """All weights for blocks of 2^n rounds."""

    layout: Layout
    master: Master
    horizon: int

    @cached_property
    def flags(self) -> list[Layer]:
        """Noise to flags, and a copy of them that σ2 will not touch."""
        return [
            ranks.build(self.layout, SHARPNESS),
            hold.build(self.layout),
            bernoulli.build(self.layout, self.master.rho, SHARPNESS),
            Layer(mlp=_copy_flags(self.layout)),
        ]

    @cached_property
    def schedule(self) -> list[Layer]:
        return [sigma1.build(self.layout), sigma2.build(self.layout)]

    @cached_property
    def sums(self) -> list[Layer]:
        return [sums.build(self.layout)]

    @cached_property
    def entries(self) -> stationarity.Entries:
        return stationarity.Entries(self.layout.n)

    @cached_property
    def tests(self) -> list[Layer]:
        return stationarity.build(self.entries, self.rho_hat, CEILING, SHARPNESS)

    def rho_hat(self, t: int) -> float:
        return self.master.rho_hat(t, self.horizon)

    @cached_property
    def networks(self) -> dict[str, ReLUTransformer]:
        width = self.layout.width
        built = {name: build(getattr(self, name), width) for name in ("flags", "schedule", "sums")}
        return built | {"ranks": build(self.flags[:1], width), "tests": build(self.tests, self.entries.width)}

    @property
    def sizes(self) -> Sizes:
        """Of all layers that work on tokens, with the tests' beside them."""
        tokens = sizes([*self.flags, *self.schedule, *self.sums], self.layout.width)
        tests = sizes(self.tests, self.entries.width)
        return replace(
            tokens,
            layers=tokens.layers + tests.layers,
            hidden=max(tokens.hidden, tests.hidden),
            norm=max(tokens.norm, tests.norm),
        )


def _copy_flags(layout: Layout) -> Mlp:
    """live += flag; a flag is not negative, so ReLU leaves it."""
    first = torch.stack([layout.unit("rand", order) for order in layout.orders])
    second = torch.stack([layout.unit("live", order) for order in layout.orders], dim=1)
    return Mlp(first, second)


class _Block:
    """One block on its way: its tokens so far, and an instance of the base agent for each order."""

    def __init__(self, network: BlockNetwork, base: Agent, shape: ProblemShape, noise: Tensor) -> None:
        self._network, self._layout, self._base, self._shape = network, network.layout, base, shape
        self._tokens = empty_tokens(self._layout, 1)
        for order in self._layout.orders:
            self._tokens[0, :, self._layout.place("noise", order)] = noise[: self._layout.rounds, order]
        self._instances: list[Any] = [None] * (self._layout.n + 1)
        self._bound = 0.0  # C − U: no bound yet
        self._after: list[Tensor] = []  # tokens with what came of them

    def play(self, t: int, features: Tensor, pay: Callable[[int], float]) -> Round:
        """Round t of the block, from 0."""
        layout, networks = self._layout, self._network.networks
        flagged = run(networks["flags"], self._tokens[:, : t + 1])
        token = flagged[0, t]
        live = [order for order in layout.orders if float(token[layout.place("live", order)]) > 0.5]
        acted = {}
        for order in live:
            if t % 2**order == 0:
                self._instances[order] = self._base.init(self._shape)
            wanted, info = self._base.act(self._instances[order], features.unsqueeze(0), _NO_COINS)
            acted[order] = info
            flagged[0, t, layout.x(order)] = features[int(wanted)]
            flagged[0, t, layout.place("auxiliary", order)] = float(info.auxiliary_value)
        scheduled = run(networks["schedule"], flagged)[0, t]
        active = [order for order in layout.orders if float(scheduled[layout.place("rand", order)]) > 0.5]
        (order,) = active
        chosen = torch.stack([scheduled[layout.x(one)] for one in layout.orders]).sum(dim=0)
        arm = int((features - chosen).abs().sum(dim=1).argmin())
        hope = float(sum(scheduled[layout.place("auxiliary", one)] for one in layout.orders))
        reward = pay(arm)
        self._learn(order, features, arm, reward, acted[order])
        return self._judge(t, token, order, arm, hope, reward)

    def _learn(self, order: int, features: Tensor, arm: int, reward: float, info: Any) -> None:
        played, paid = torch.tensor([arm]), torch.tensor([reward], dtype=torch.double)
        self._instances[order] = self._base.update(self._instances[order], features.unsqueeze(0), played, paid, info)

    def _judge(self, t: int, token: Tensor, order: int, arm: int, hope: float, reward: float) -> Round:
        """Sums, U and the tests, from the weights."""
        layout, entries, networks = self._layout, self._network.entries, self._network.networks
        after = self._tokens[0, t].clone()
        after[layout.place("reward")], after[layout.place("hope")] = reward, hope
        self._after.append(after)
        summed = run(networks["sums"], torch.stack(self._after).unsqueeze(0))[0, t]
        vector = torch.zeros(entries.width, dtype=torch.double)
        for one in layout.orders:
            vector[entries.average(one)] = summed[layout.place("window_sum", one)] / 2**one
            ends = token[layout.place("live", one)] > 0.5 and (t + 1) % 2**one == 0
            vector[entries.ends(one)] = float(ends)
        earned, hoped = (float(summed[layout.place(name)]) for name in ("reward_sum", "auxiliary_sum"))
        vector[entries.bound], vector[entries.auxiliary], vector[entries.one] = self._bound, hope, 1.0
        vector[entries.hoped] = hoped - earned
        vector[entries.allowed] = 3 * (t + 1) * self._network.rho_hat(t + 1)
        tested = run(networks["tests"], vector.view(1, 1, -1))[0, 0]
        self._bound = float(tested[entries.bound])
        coins = run(networks["ranks"], self._tokens[:, : t + 1])[0, t]
        return Round(
            n=layout.n,
            order=order,
            arm=arm,
            lowest=CEILING - self._bound,
            earned=earned,
            hoped=hoped - earned,
            failed=float(tested[entries.fails]) > 0.5,
            coins=torch.stack([coins[layout.place("rand", one)] for one in layout.orders]) + TIE,
        )


def rollout(master: Master, features: Tensor, noise: Tensor, pay: Pay) -> list[Round]:
    """Play MASTER by weights on one problem: `features` `[T, A, d]`, `noise` `[T, orders]` for the random numbers."""
    horizon, arms, dim = features.shape
    shape = ProblemShape(1, horizon, arms, dim, features.device, features.dtype)
    networks: dict[int, BlockNetwork] = {}
    played: list[Round] = []
    n = 0
    while len(played) < horizon:
        first = len(played)
        if n not in networks:
            networks[n] = BlockNetwork(Layout(n, dim), master, horizon)
        upcoming = torch.cat([noise[first:], noise.new_zeros(2**n, noise.shape[1])])
        block = _Block(networks[n], master.base, shape, upcoming)
        for t in range(min(2**n, horizon - first)):
            played.append(block.play(t, features[first + t], functools.partial(pay, first + t)))
            if played[-1].failed:
                break
        n = 0 if played[-1].failed else n + 1
    return played
