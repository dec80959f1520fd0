"""The extended input of Appendix D: which coordinate of a token means what (`eq-input1`, `eq-input2`, `fig_input`).

For each order i: x (d numbers), 2^i, the window's sum of rewards, a random number (later a flag), the sum of auxiliary
values of lower orders, and the order's own; then 2^n, t, the sums of rewards and of auxiliary values, and U. That is D
= (d+5)(n+1)+5. The proof uses more than it lists: a constant (Section 2.2 has no biases), for each order a noise
coordinate of its own (orders that share one would not be independent), and positions (where the block of a round
began). The round's reward and auxiliary value have a place of their own, from which sums are taken, and which orders
are live is written down before σ2 hides it. They are listed in `extras`, so that sizes can be compared honestly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from driftformer.errors import require_count

ORDER_ENTRIES = ("length", "window_sum", "rand", "lower_sum", "auxiliary")
"""After x, in every order's block."""
SHARED_ENTRIES = ("block_length", "t", "reward_sum", "auxiliary_sum", "bound")
EXTRA_ENTRIES = ("one", "t_squared", "reward", "hope")
EXTRA_ORDER_ENTRIES = ("noise", "start", "t_times_start", "live")


@dataclass(frozen=True)
class Layout:
    """Where everything stands in a token for blocks of 2^n rounds and x of d numbers."""

    n: int
    d: int

    def __post_init__(self) -> None:
        require_count("n", self.n, 0, most=12)
        require_count("d", self.d)

    @property
    def orders(self) -> range:
        return range(self.n + 1)

    @property
    def rounds(self) -> int:
        return 1 << self.n

    @property
    def claimed(self) -> int:
        """D of the proof."""
        return (self.d + 5) * (self.n + 1) + 5

    @property
    def width(self) -> int:
        """D of what is built."""
        return self.claimed + len(self.extras)

    @cached_property
    def extras(self) -> list[str]:
        """Entries that the proof uses and does not list."""
        return [*EXTRA_ENTRIES, *(f"{name} of order {order}" for name in EXTRA_ORDER_ENTRIES for order in self.orders)]

    def block(self, order: int) -> slice:
        """All entries of one order."""
        size = self.d + len(ORDER_ENTRIES)
        return slice(order * size, (order + 1) * size)

    def x(self, order: int) -> slice:
        first = order * (self.d + len(ORDER_ENTRIES))
        return slice(first, first + self.d)

    def place(self, name: str, order: int | None = None) -> int:
        """The coordinate of a single entry."""
        if name in ORDER_ENTRIES:
            assert order is not None
            return order * (self.d + len(ORDER_ENTRIES)) + self.d + ORDER_ENTRIES.index(name)
        if name in SHARED_ENTRIES:
            return (self.n + 1) * (self.d + len(ORDER_ENTRIES)) + SHARED_ENTRIES.index(name)
        if name in EXTRA_ENTRIES:
            return self.claimed + EXTRA_ENTRIES.index(name)
        assert order is not None
        return self.claimed + len(EXTRA_ENTRIES) + EXTRA_ORDER_ENTRIES.index(name) * (self.n + 1) + order

    def unit(self, name: str, order: int | None = None, times: float = 1.0) -> Tensor:
        """A row that reads one entry."""
        row = torch.zeros(self.width, dtype=torch.double)
        row[self.place(name, order)] = times
        return row


def empty_tokens(layout: Layout, batch: int) -> Tensor:
    """Tokens of a whole block with all that is known beforehand: lengths, rounds, positions; `[B, 2^n, D]`."""
    tokens = torch.zeros(batch, layout.rounds, layout.width, dtype=torch.double)
    t = torch.arange(1, layout.rounds + 1, dtype=torch.double)
    tokens[..., layout.place("one")] = 1.0
    tokens[..., layout.place("t")] = t
    tokens[..., layout.place("t_squared")] = t * t
    tokens[..., layout.place("block_length")] = layout.rounds
    for order in layout.orders:
        start = t - (t - 1) % 2**order
        tokens[..., layout.place("length", order)] = 2**order
        tokens[..., layout.place("start", order)] = start
        tokens[..., layout.place("t_times_start", order)] = t * start
    return tokens


def far(layout: Layout) -> float:
    """Γ: a slope that makes every score of an earlier round negative, whatever the flags are."""
    return math.ceil(2 * (layout.n + 2) * layout.rounds)
