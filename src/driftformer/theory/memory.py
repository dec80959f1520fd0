"""What a token of the one network holds, and what the environment writes into it.

Token t carries three kinds of entries. *Given* by the environment: the constant, the token's number, noise, the arms on
offer, and the answer to the round before, (a_{t−1}, r_{t−1}). *Kept*: what the network leaves for the next round, the
entries of `eq-input1` and `eq-input2` and a few that the proof uses without listing them. *Working* entries are zero
before and after a pass.

Tokens of burn-in come first: they have noise, but no arms, and nothing is played in them. A token whose `plays` is zero
follows no round, so whatever it remembers is dropped: a block begins there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from driftformer.theory.network import Coordinates
from driftformer.theory.regression import Seat

BY_ORDER = ("n", "tau", "live", "start", "start_squared", "window")
"""The block's order, one-hot; the round of the block from 0, in bits; which orders have an instance, in which round it
began, and its square; the sum of rewards since then."""
SHARED = ("bound", "reward_sum", "auxiliary_sum")
"""U as C − U, and the block's sums of rewards and of auxiliary values."""
CHOICE = ("active", "active_start", "active_start_squared")
"""The active order, one-hot, and when its instance began."""
BEFORE = ("was", "was_start", "was_start_squared")
"""The same of the round before, to which the outcome in this token belongs."""


@dataclass(frozen=True)
class Sizes:
    """What the sizes of a token follow from."""

    d: int
    arms: int
    rounds: int
    burn_in: int

    @property
    def orders(self) -> int:
        """Blocks of 1, 2, …, 2^(orders−1) rounds hold every horizon."""
        return self.rounds.bit_length()

    @property
    def tokens(self) -> int:
        """Burn-in, all rounds, and one more token for the answer to the last."""
        return self.burn_in + self.rounds + 1


@dataclass(frozen=True)
class Memory:
    """The entries of a token; those that a base network needs are its own business."""

    sizes: Sizes
    inputs: tuple[tuple[str, int], ...]
    working: tuple[tuple[str, int], ...]

    @cached_property
    def given(self) -> dict[str, int]:
        d, arms, orders = self.sizes.d, self.sizes.arms, self.sizes.orders
        given = dict.fromkeys(("one", "t", "t_squared", "root_t", "plays", "reward"), 1)
        given |= {"x": d, "played": arms, "noise": orders}
        return given | {f"arm{k}": d for k in range(arms)} | dict(self.inputs)

    @cached_property
    def carried(self) -> dict[str, int]:
        """What a round takes over from the one before."""
        by_order = dict.fromkeys(BY_ORDER, self.sizes.orders)
        return by_order | dict.fromkeys(SHARED, 1) | {"value": self.sizes.arms}

    @cached_property
    def choice(self) -> dict[str, int]:
        return dict(zip(CHOICE, (self.sizes.orders, 1, 1), strict=True))

    @cached_property
    def reported(self) -> dict[str, int]:
        """What no later pass reads: each order's coin, and whether a test failed after the round before."""
        return {"rand": self.sizes.orders, "failed": 1}

    @cached_property
    def kept(self) -> dict[str, int]:
        """All that a pass leaves."""
        return self.carried | self.reported | self.choice | dict(zip(BEFORE, self.choice.values(), strict=True))

    @cached_property
    def scratch(self) -> dict[str, int]:
        """All that a pass clears away."""
        orders = self.sizes.orders
        scratch = {f"next_{name}": size for name, size in self.kept.items() if name not in BEFORE}
        scratch |= dict.fromkeys(("hope", "allowed", "over", "test2", "failures", "reset", "keep"), 1)
        scratch |= dict.fromkeys(("exceeds", "going_on", "falls_well"), orders)
        scratch |= {"carry": orders + 1} | dict.fromkeys(("part_flag", "part_start", "part_start_squared"), orders)
        return scratch | dict(self.working)

    @cached_property
    def at(self) -> Coordinates:
        return Coordinates(self.given | self.kept | self.scratch)

    def seat(self, largest: float) -> Seat:
        """For the base network: what counts are the outcomes of the instance that is active now, WS(D) of Section 4.1.

        A token's outcome belongs to it if order and start are the same: then −Γ·[(s_t − s_k)² + 1 − ⟨e_t, e_k⟩], with
        unit vectors e for the orders, is zero, and at most −Γ otherwise.
        """
        read = self.at.read
        query = [read("active_start_squared", -largest) + read("one", -largest), read("active_start", 2 * largest)]
        query += [read("one", -largest), read("active", largest)]
        key = [read("one"), read("was_start"), read("was_start_squared"), read("was")]
        return Seat(self.at, self.sizes.tokens, (torch.cat(query), torch.cat(key)), largest)

    def tokens(self, noise: Tensor, features: Tensor, more: dict[str, Tensor]) -> Tensor:
        """All that is known beforehand, `[B, tokens, D]`: noise `[B, tokens, M]`, the arms `[B, T, A, d]`, and more.

        Arms are nobody's but the round's own: no pass reads those of later tokens.
        """
        at, sizes = self.at, self.sizes
        tokens = torch.zeros(len(noise), sizes.tokens, at.width, dtype=torch.double)
        t = torch.arange(1, sizes.tokens + 1, dtype=torch.double).unsqueeze(1)
        for name, values in (("one", t**0), ("t", t), ("t_squared", t**2), ("root_t", t.sqrt())):
            tokens[..., at[name]] = values
        tokens[..., at["noise"]] = noise
        rounds = slice(sizes.burn_in, sizes.burn_in + sizes.rounds)
        for k in range(sizes.arms):
            tokens[:, rounds, at[f"arm{k}"]] = features[:, :, k]
        for name, values in more.items():
            tokens[:, rounds, at[name]] = values
        return tokens
