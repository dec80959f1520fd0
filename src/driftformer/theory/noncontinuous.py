"""The non-continuous transformer (`def-nctf`): MASTER by weights, token by token, with the environment in the loop.

There is one network for blocks of 2^n rounds. In round t its first layers turn noise into ranks, hold them, and make
flags; the base algorithm, which the realizability assumption provides, gives the arm and auxiliary value of each live
order; σ1 and σ2 keep those of the active order. The environment answers; further layers take the sums, update U and run
the tests. Around this runs Algorithm 2's loop over blocks: a block that ends is followed by one of twice its length, a
failed test by one of a single round. (The definition itself has one fixed block; "a new 2^n-length block" after a
failure contradicts Algorithm 2.) A horizon that is not a sum of whole blocks simply ends, as the text says.

Not done by weights: the base algorithm; passing one part's output to the next part's input, which is linear except for
"an instance of order i ends now" (live, and the last round of its block); and a restart, which here begins a new block
with tokens of its own, so that RM has nothing left to erase (it is checked by itself).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch

from driftformer.agents.master import Master
from driftformer.models.relu_transformer import ReLUTransformer
from driftformer.theory import scheduler, testing
from driftformer.theory.agent_reference import OneProblemAgent, Round, SmallProblem
from driftformer.theory.network import Layer, Mlp, Sizes, build, run, sizes
from driftformer.theory.tokens import Layout, empty_tokens

SHARPNESS = 1e5
"""k of all indicators: see `scheduler.indicator`."""
TIE = 1e-9
"""Ranks are fractions and may equal a threshold such as ½. Rounding must not decide then: a tie is not below."""
CEILING = 100.0
"""C in C − U: above every auxiliary value."""


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
