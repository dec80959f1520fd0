"""The non-continuous transformer (`def-nctf`): MASTER by weights, token by token, with the environment in the loop.

There is one network for blocks of 2^n rounds. In round t its first layers turn noise into ranks, hold them, and make
flags; the base algorithm, which the realizability assumption provides, gives the arm and auxiliary value of each live
order; σ1 and σ2 keep those of the active order. The environment answers; further layers take the sums, update U and run
the tests. Around this runs Algorithm 2's loop over blocks: a block that ends is followed by one of twice its length, a
failed test by one of a single round. (The definition itself has one fixed block; "a new 2^n-length block" after a
failure contradicts Algorithm 2.) A horizon that is not a sum of whole blocks simply ends, as the text says.
docs/theory.md lists what is not done by weights.

What it must equal is the MASTER agent on the same small problem, given the random numbers that the network made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from driftformer.agents.base import Agent, ProblemShape
from driftformer.agents.master import Master
from driftformer.models.relu_transformer import ReLUTransformer
from driftformer.problem import Observation
from driftformer.randomness import Stream
from driftformer.theory import scheduler, testing
from driftformer.theory.network import Layer, Mlp, Sizes, build, run, sizes
from driftformer.theory.tokens import Layout, empty_tokens

SHARPNESS = 1e5
"""k of all indicators: see `scheduler.indicator`."""
TIE = 1e-9
"""Ranks are fractions and may equal a threshold such as ½. Rounding must not decide then: a tie is not below."""
CEILING = 100.0
"""C in C − U: above every auxiliary value."""


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


def small_problem(horizon: int, seed: int, dim: int = 3) -> SmallProblem:
    generator = torch.Generator().manual_seed(seed)
    return SmallProblem(
        features=torch.rand(horizon, 4, dim, generator=generator, dtype=torch.double) * 2 - 1,
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


@dataclass(frozen=True)
class BlockNetwork:
    """All weights for blocks of 2^n rounds."""

    layout: Layout
    master: Master
    horizon: int

    @cached_property
    def parts(self) -> dict[str, list[Layer]]:
        """The layers of each part: ranks of noise, from ranks to flags, the schedule, the sums, the tests."""
        layout = self.layout
        copy = Mlp(layout.units("rand"), layout.units("live").T)  # which σ2 will not touch; ReLU leaves a flag as it is
        masks = scheduler.masks(layout, self.master.rho, SHARPNESS)
        return {
            "ranks": [scheduler.ranks(layout, SHARPNESS)],
            "flags": [scheduler.held(layout), masks, Layer(mlp=copy)],
            "schedule": [scheduler.sigma1(layout), scheduler.sigma2(layout)],
            "sums": [testing.sums(layout)],
            "tests": testing.tests(layout.n, self.rho_hat, CEILING, SHARPNESS),
        }

    def rho_hat(self, t: int) -> float:
        return self.master.rho_hat(t, self.horizon)

    @cached_property
    def networks(self) -> dict[str, ReLUTransformer]:
        widths = dict.fromkeys(self.parts, self.layout.width)
        widths["tests"] = testing.coordinates(self.layout.n).width
        return {name: build(layers, widths[name]) for name, layers in self.parts.items()}

    @property
    def sizes(self) -> Sizes:
        """Of all layers, those of the tests included; D is that of the tokens."""
        return sizes([layer for layers in self.parts.values() for layer in layers])


@lru_cache(maxsize=32)
def block_network(n: int, d: int, master: Master, horizon: int) -> BlockNetwork:
    """The network for blocks of 2^n rounds; built once, since every block and problem of that size shares it."""
    return BlockNetwork(Layout(n, d), master, horizon)


class _Block:
    """One block in progress: its tokens so far, and an instance of the base agent for each order."""

    def __init__(self, network: BlockNetwork, problem: SmallProblem, first: int) -> None:
        self._network, self._layout, self._problem, self._first = network, network.layout, problem, first
        self._tokens = empty_tokens(self._layout, 1)
        noise = problem.noise[first : first + self._layout.rounds, : self._layout.n + 1]
        self._tokens[0][: len(noise), self._layout.places("noise")] = noise
        self._instances: dict[int, OneProblemAgent] = {}
        self._stored_bound = 0.0  # C − U: no bound yet
        self._outcomes = self._tokens[0].clone()  # tokens with the rewards and auxiliary values of rounds played

    def play(self, t: int) -> Round:
        """Round t of the block, from 0."""
        layout, networks = self._layout, self._network.networks
        features = self._problem.features[self._first + t]
        ranked = run(networks["ranks"], self._tokens[:, : t + 1])
        flagged = run(networks["flags"], ranked)
        live = (flagged[0, t, layout.places("live")] > 0.5).tolist()
        acted = {}
        for order in (order for order in layout.orders if live[order]):
            if t % 2**order == 0:
                self._instances[order] = OneProblemAgent(self._network.master.base, self._problem.features)
            wanted, acted[order] = self._instances[order].act(features)
            flagged[0, t, layout.x(order)] = features[wanted]
            flagged[0, t, layout.place("auxiliary", order)] = float(acted[order].auxiliary_value)
        scheduled = run(networks["schedule"], flagged)[0, t]
        (active,) = (order for order in layout.orders if scheduled[layout.place("rand", order)] > 0.5)
        arm = int((features - scheduler.decompressed(scheduled, layout)).abs().sum(dim=1).argmin())
        auxiliary = float(scheduled[layout.places("auxiliary")].sum())
        reward = self._problem.reward(self._first + t, arm)
        self._instances[active].update(features, arm, reward, acted[active])
        earned, excess, failed = self._test(t, live, auxiliary, reward)
        coins = ranked[0, t, layout.places("rand")] + TIE
        return Round(layout.n, active, arm, CEILING - self._stored_bound, earned, excess, failed, coins)

    def _test(self, t: int, live: list[bool], auxiliary: float, reward: float) -> tuple[float, float, bool]:
        """The block's sums of r and of r̃ − r, and whether a test fails, all by weights; U is updated."""
        layout, networks = self._layout, self._network.networks
        self._outcomes[t, layout.place("reward")] = reward
        self._outcomes[t, layout.place("active_auxiliary")] = auxiliary
        summed = run(networks["sums"], self._outcomes[None, : t + 1])[0, t]
        earned, promised = (float(summed[layout.place(name)]) for name in ("reward_sum", "auxiliary_sum"))
        lengths = torch.tensor([2**order for order in layout.orders])
        at = testing.coordinates(layout.n)
        vector = torch.zeros(at.width, dtype=torch.double)
        vector[at["average"]] = summed[layout.places("window_sum")] / lengths
        vector[at["ends"]] = (torch.tensor(live) & ((t + 1) % lengths == 0)).double()
        vector[at["bound"]], vector[at["auxiliary"]], vector[at["one"]] = self._stored_bound, auxiliary, 1.0
        vector[at["excess"]] = promised - earned
        vector[at["allowed"]] = 3 * (t + 1) * self._network.rho_hat(t + 1)
        tested = run(networks["tests"], vector.view(1, 1, -1))[0, 0]
        self._stored_bound = float(tested[at["bound"]])
        return earned, promised - earned, float(tested[at["fails"]]) > 0.5


def play_by_weights(master: Master, problem: SmallProblem) -> list[Round]:
    """Play MASTER by weights on one problem."""
    horizon, _, dim = problem.features.shape
    played: list[Round] = []
    n = 0
    while (first := len(played)) < horizon:
        block = _Block(block_network(n, dim, master, horizon), problem, first)
        for t in range(min(2**n, horizon - first)):
            played.append(block.play(t))
            if played[-1].failed:
                break
        n = 0 if played[-1].failed else n + 1
    return played


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
        after, bound = agent.state.happened, min(float(before.lowest), value)
        earned, excess = float(before.earned) + reward, float(before.hoped) + value - reward
        played.append(Round(int(before.n), int(after.order), arm, bound, earned, excess, bool(after.failed), coins[t]))
    return played
