"""The non-continuous transformer (`def-nctf`): one network that is MASTER over a base algorithm, all of it by weights.

A single pass takes the tokens of round t, with the answer to the round before, to those of round t+1 and to the
distribution over arms: `softmax(A·TF_θ(H)_{−1})` (Equation `alg-by-tf`). Between passes there is nothing but the
environment, which draws the arm and writes reward, arms and noise into the next token. In order, the layers

- fetch what the last round left, look up its auxiliary value r̃, and know which instances ended (a binary counter);
- update U and the sums and run TEST; RM drops what the test matrix drops, and a block ends or goes on;
- flip the coins: ranks of noise, thresholds by the block's order, and flags that last as long as their instance;
- copy every order's instance (compression), let σ1 and σ2 leave the lowest live one, and put it back (decompression);
- run the base algorithm's network on the outcomes of that instance alone, WS(D) of `prop-approx-ws`;
- keep what the next round needs and clear the rest.

Blocks of all sizes share the weights, since the block's order is part of what a token remembers. (`def-nctf` has one
fixed block, and "a new 2^n-length block" after a failure contradicts Algorithm 2.) No layer changes what later tokens
read of earlier ones, so an ordinary causal pass over the whole matrix leaves earlier columns as they are; `play.py`
therefore computes the last column only, as the definition does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from driftformer.agents.base import Agent
from driftformer.agents.master import Master
from driftformer.models.relu_transformer import ReLUTransformer
from driftformer.theory import network as weights
from driftformer.theory.memory import BEFORE, BY_ORDER, CHOICE, SHARED, Memory, Sizes
from driftformer.theory.network import Head, Layer, Mlp, beside, build, gated, indicators, linear, units
from driftformer.theory.regression import Seat, largest_product
from driftformer.theory.scheduler import masking, rank_heads, selection, thresholds

SHARPNESS = 1e5
"""k of the indicators of tests and of ranks: see `scheduler.indicator`."""
COIN_SHARPNESS = 1e8
"""k where a rank is compared with a threshold; ranks are fractions, and a flag within the ramp would be no flag."""
CEILING = 100.0
"""C in C − U: above every auxiliary value."""
SHIFT = math.pi / 8
"""Ranks are (j + π/8)/t: closer to uniform than j/t, and never equal to a threshold that is an algebraic number."""


class Base(Protocol):
    """A network for the base algorithm, to be put into MASTER's (`asm-tf-as-dm`)."""

    @property
    def d(self) -> int: ...
    @property
    def arms(self) -> int: ...
    @property
    def ridge(self) -> float: ...
    @property
    def temperature(self) -> float: ...
    @property
    def agent(self) -> Agent:
        """What the network computes, exactly; its arms are drawn by a softmax."""
        ...

    @property
    def inputs(self) -> dict[str, int]:
        """Entries that the environment must give besides the usual ones."""
        ...

    @property
    def entries(self) -> dict[str, int]:
        """Working entries."""
        ...

    def network(self, seat: Seat, error: float) -> list[Layer]:
        """Layers that write the arms' values, up to such an error."""
        ...

    def values(self, at: weights.Coordinates) -> Tensor:
        """Rows `[A, D]` that read them after those layers."""
        ...


@dataclass(frozen=True, eq=False)
class NonContinuous:
    """All weights, for so many rounds after so many tokens of burn-in."""

    base: Base
    rounds: int
    c1: float = 1.0
    c2: float = 0.0
    test_scale: float = 1.0
    burn_in: int = 64
    error: float = 1e-7  # of the base algorithm's regression

    @cached_property
    def master(self) -> Master:
        """The algorithm that it must equal."""
        return Master(base=self.base.agent, c1=self.c1, c2=self.c2, test_scale=self.test_scale)

    @cached_property
    def memory(self) -> Memory:
        sizes = Sizes(self.base.d, self.base.arms, self.rounds, self.burn_in)
        return Memory(sizes, tuple(self.base.inputs.items()), tuple(self.base.entries.items()))

    @cached_property
    def seat(self) -> Seat:
        """The base network's; its heads also bound those of the scheduler, whose scores are smaller."""
        sizes = self.memory.sizes
        return self.memory.seat(largest_product(sizes.d, sizes.tokens, self.base.ridge))

    @cached_property
    def parts(self) -> dict[str, list[Layer]]:
        """The layers by what they do."""
        return {
            "fetch": [self._fetch()],
            "TEST": self._test(),
            "RM": self._restart(),
            "coins": self._coins(),
            "WS": self._select(),
            "base": self.base.network(self.seat, self.error),
            "keep": [self._keep()],
        }

    @cached_property
    def layers(self) -> list[Layer]:
        return [layer for part in self.parts.values() for layer in part]

    @cached_property
    def transformer(self) -> ReLUTransformer:
        return build(self.layers, self.memory.at.width)

    @property
    def largest(self) -> float:
        """Γ of gates: above every sum of a run and every t²."""
        return 2.0 * self.memory.sizes.tokens**2

    def rho_hat(self, t: int) -> float:
        return self.master.rho_hat(t, self.rounds)

    def _read(self, name: str, times: float = 1.0) -> Tensor:
        return self.memory.at.read(name, times)

    @property
    def _one(self) -> Tensor:
        """A row that reads the constant, `[1, D]`."""
        return self._read("one")

    def _flag(self, reads: Tensor, writes: str) -> Mlp:
        """Write 1 where something near an integer is at least 1, and 0 where it is at most 0, whatever its rounding."""
        return indicators(reads - self._one / 4, self._one[0], self._read(writes), 4.0)

    def _change(self, *changes: Tensor) -> Mlp:
        return linear(torch.stack(changes).sum(dim=0))

    def _fetch(self) -> Layer:
        """Copy what the last token kept, look up r̃ of the arm played, and count the round.

        With x = k − (t − 1) ≤ 1, ReLU(x + 1) − 2·ReLU(x) is 1 at x = 0 alone: two heads, whose factor t undoes the
        1/t. The carry into bit i is 1 where all lower bits are, and then an instance of order i ends with the round.
        """
        at, read = self.memory.at, self._read
        value = torch.stack([at.move(name, f"next_{name}") for name in self.memory.carried | self.memory.choice]).sum(0)
        key = torch.cat([read("t"), read("one")])
        heads = [
            Head(torch.cat([read("t"), read("t", 2.0 - back) - read("t_squared")]), key, times * value)
            for back, times in ((0.0, 1.0), (1.0, -2.0))
        ]
        belongs = [at.overwrite(was, read(f"next_{name}")) for was, name in zip(BEFORE, CHOICE, strict=True)]
        hope = gated(
            read("next_value"), self._one - read("played"), read("hope").expand(self.base.arms, -1), self.largest
        )
        bits = read("next_tau")
        lower = torch.stack([bits[:order].sum(dim=0) for order in range(len(bits) + 1)])
        least = torch.arange(len(bits) + 1, dtype=torch.double).sub(1).clamp_min(-1).unsqueeze(1)
        carry = units(lower - least * self._one, read("carry"))
        return Layer(heads, beside(self._change(*belongs), hope, carry, self._allowance(bits)))

    def _allowance(self, bits: Tensor) -> Mlp:
        """3·τ·ρ̂(τ) of Test 2 by straight pieces, exact at every whole τ, which is 1 more than the counter."""
        longest = 2 ** (len(bits) - 1)
        values = torch.tensor([3 * t * self.rho_hat(t) for t in range(1, longest + 1)], dtype=torch.double)
        knots = torch.arange(longest, dtype=torch.double)  # of the counter
        counter = (2.0 ** torch.arange(len(bits), dtype=torch.double)) @ bits
        first = units(self._one, values[0] * self._read("allowed"))
        if longest == 1:
            return first
        slopes = weights.slope_changes(knots, values - values[0])
        return beside(first, units(counter - knots[:-1, None] * self._one, slopes[:, None] * self._read("allowed")))

    def _test(self) -> list[Layer]:
        """U, sums, and TEST (`def-test`, lines 6 to 8 of Algorithm 2), for the round that was answered.

        Test 1 fails where an instance of some order i ended and the average reward since its start exceeds U by
        9ρ̂(2^i), Test 2 where the block's sum of r̃ − r exceeds 3τρ̂(τ). U is kept as C − U, so that zero is "no bound
        yet": (C − U) + ReLU(C − r̃ − (C − U)).
        """
        at, read, one = self.memory.at, self._read, self._one
        orders = self.memory.sizes.orders
        lower = units(CEILING * one - read("hope") - read("next_bound"), read("next_bound"))
        sums = [at.move("reward", "next_reward_sum"), at.move("hope", "next_auxiliary_sum")]
        sums.append(read("next_window").T @ read("reward").expand(orders, -1))
        over = units(read("next_n") + read("carry")[:-1] - one, read("over"))
        lengths = torch.tensor([2**order for order in range(orders)], dtype=torch.double).unsqueeze(1)
        margins = torch.tensor([9 * self.rho_hat(2**order) for order in range(orders)], dtype=torch.double).unsqueeze(1)
        first = read("next_window") / lengths + read("next_bound") - (CEILING + margins) * one
        second = read("next_auxiliary_sum") - read("next_reward_sum") - read("allowed")
        compare = indicators(torch.cat([first, second]), one[0], torch.cat([read("exceeds"), read("test2")]), SHARPNESS)
        failed = units(read("exceeds") + read("carry")[:-1] + read("next_live") - 2 * one, read("failures"))
        count = beside(failed, units(read("test2"), read("failures")))
        verdict = beside(
            self._flag(read("failures"), "next_failed"),
            self._flag(read("failures") + one - read("plays"), "reset"),
        )
        layers = (beside(lower, self._change(*sums), over), compare, count, verdict)
        return [Layer(mlp=mlp) for mlp in layers]

    def _restart(self) -> list[Layer]:
        """RM, and the end of a block: what the test matrix drops is dropped, and the block's order is set.

        After a failed test the order is 0, after a whole block one more than it was. An order goes on where its block
        does and its period has not ended; otherwise it starts afresh in this round, with a window sum of zero.
        """
        at, read, one = self.memory.at, self._read, self._one
        n, carry = read("next_n"), read("carry")
        ends = read("reset") + read("over")
        larger = torch.cat([torch.zeros_like(one), n[:-1]]) + read("over") - read("reset") - one
        block = beside(
            linear(-at.move("next_n", "next_n")),
            units(n - ends, n),
            units(larger, n),
            units(read("reset"), n[:1]),
            units(one - ends, read("keep")),
            units(one - ends - carry[:-1], read("going_on")),
        )
        dropped, turned = one - read("keep"), one - read("going_on")
        tau, live = read("next_tau"), read("next_live")
        shared = torch.cat([read("next_bound"), read("next_reward_sum"), read("next_auxiliary_sum")])
        begins = torch.cat([read("next_start"), read("next_start_squared"), read("next_window")])
        fresh = torch.cat([read("t").expand(len(n), -1), read("t_squared").expand(len(n), -1)])
        everything = torch.cat([tau, live, shared, begins])
        forget = beside(
            linear(-everything.T @ everything),
            units(tau + carry[:-1] - 2 * carry[1:] - dropped, tau),
            units(live - turned, live),
            gated(shared, dropped, shared, self.largest),
            gated(begins, turned.repeat(3, 1), begins, self.largest),
            gated(fresh, read("going_on").repeat(2, 1), begins[: len(fresh)], self.largest),
        )
        return [Layer(mlp=block), Layer(mlp=forget)]

    def _coins(self) -> list[Layer]:
        """Random numbers from data (`appx-approx-rand-gen`) and Bernoulli flags that are held (Steps 1 and 2).

        The ranks of `scheduler.ranks`, among all tokens so far. An order that does not go on is live in this round if
        its number is below ρ(2^n)/ρ(2^i), which for a one-hot n is a linear map; orders above n never are.
        """
        read, one, orders = self._read, self._one, self.memory.sizes.orders
        heads = rank_heads(one[0], read("noise"), read("next_rand"), SHARPNESS)
        heads.append(self.seat.itself(SHIFT * one, one, read("next_rand").sum(dim=0).unsqueeze(1) @ one))
        chances = torch.full((orders, orders), -1.0, dtype=torch.double)  # [i, n]
        for n in range(orders):
            chances[: n + 1, n] = thresholds(n, self.master.rho)
        falls_well = indicators(
            chances @ read("next_n") - read("next_rand"), one[0], read("falls_well"), COIN_SHARPNESS
        )
        begins = self._flag(read("falls_well") - read("going_on"), "next_live")
        return [Layer(heads, falls_well), Layer(mlp=begins)]

    def _select(self) -> list[Layer]:
        """Compression, σ1, σ2 and decompression: the lowest live order, and when its instance began.

        The parts are copies of every order's instance. σ1 zeroes those of orders that are not live, σ2 those above the
        lowest live one (`scheduler.sigma1` and `sigma2` say how), and decompression adds what is left.
        """
        at, read, one = self.memory.at, self._read, self._one
        parts = {"live": "part_flag", "start": "part_start", "start_squared": "part_start_squared"}
        copy = self._change(*(at.move(f"next_{source}", part) for source, part in parts.items()))
        flags, kept = read("part_flag"), []
        for order in range(len(flags)):
            rows = torch.stack([read(part)[order] for part in parts.values()])
            kept.append(rows.T @ rows)  # P_i

        def attend(weight: Tensor, value: Tensor) -> Head:
            return self.seat.itself(read("t"), weight.unsqueeze(0), value)

        first = masking(attend, one[0], flags, kept)
        second = selection(attend, one[0], flags, kept)
        sums = (flags, read("part_start").sum(0, keepdim=True), read("part_start_squared").sum(0, keepdim=True))
        changes = [at.overwrite(name, rows) for name, rows in zip(CHOICE, sums, strict=True)]
        return [Layer(mlp=copy), Layer(first), Layer(second, self._change(*changes))]

    def _keep(self) -> Layer:
        """Overwrite what is kept, the arms' values among it, and clear all working entries."""
        at, read = self.memory.at, self._read
        changes = [at.overwrite(name, read(f"next_{name}")) for name in (*BY_ORDER, *SHARED, *self.memory.reported)]
        clear = [-at.move(name, name) for name in self.memory.scratch]
        return Layer(mlp=self._change(*changes, at.overwrite("value", self.base.values(at)), *clear))
