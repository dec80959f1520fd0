"""The extended input of Appendix D: what each coordinate of a token holds (`eq-input1`, `eq-input2`, `fig_input`).

Each order i has x (d numbers), 2^i, the window's sum of rewards, a random number (later a flag), the sum of the
auxiliary values of lower orders, and its own auxiliary value. Then come 2^n, t, the sums of rewards and of auxiliary
values, and U: D = (d+5)(n+1)+5 in all. The proof uses more than it lists: a constant (Section 2.2 has no biases), a
noise coordinate for each order (orders that share one would not be independent), and positions (where each block
began). The sums are taken over the round's reward and auxiliary value, which have coordinates of their own, and the
live orders are copied before σ2 hides them. `EXTRA_…` lists all of these; `width` counts them, `claimed` does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from driftformer.errors import require_count
from driftformer.theory.network import Coordinates, Head, with_itself

ORDER_ENTRIES = ("length", "window_sum", "rand", "lower_sum", "auxiliary")
"""What follows x in the block of each order."""
SHARED_ENTRIES = ("block_length", "t", "reward_sum", "auxiliary_sum", "bound")
EXTRA_ENTRIES = ("one", "t_squared", "reward", "active_auxiliary")
EXTRA_ORDER_ENTRIES = ("noise", "start", "t_times_start", "live")


@dataclass(frozen=True)
class Layout:
    """The coordinates of a token, for blocks of 2^n rounds and x of d numbers."""

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
        """D as the proof has it."""
        return (self.d + 5) * (self.n + 1) + 5

    @property
    def width(self) -> int:
        """D as built."""
        return self._at.width

    @cached_property
    def _at(self) -> Coordinates:
        sizes: dict[str, int] = {}
        for order in self.orders:
            sizes |= {f"x{order}": self.d} | {f"{name}{order}": 1 for name in ORDER_ENTRIES}
        sizes |= dict.fromkeys((*SHARED_ENTRIES, *EXTRA_ENTRIES), 1)
        return Coordinates(sizes | {f"{name}{order}": 1 for name in EXTRA_ORDER_ENTRIES for order in self.orders})

    def x(self, order: int) -> slice:
        return self._at[f"x{order}"]

    def block(self, order: int) -> slice:
        """All entries of one order."""
        return slice(self.x(order).start, self._at[f"{ORDER_ENTRIES[-1]}{order}"].stop)

    def place(self, name: str, order: int | None = None) -> int:
        """The coordinate of a single entry."""
        return int(self._at[name if order is None else f"{name}{order}"].start)

    def places(self, name: str) -> list[int]:
        """The coordinates of an entry that every order has."""
        return [self.place(name, order) for order in self.orders]

    def unit(self, name: str, order: int | None = None) -> Tensor:
        """A row `[D]` that reads one entry."""
        return torch.eye(self.width, dtype=torch.double)[self.place(name, order)]

    def units(self, name: str) -> Tensor:
        """Rows `[n+1, D]` that read an entry of every order."""
        return torch.eye(self.width, dtype=torch.double)[self.places(name)]

    def attend_to_itself(self, weight: Tensor, value: Tensor) -> Head:
        """Add ⟨weight, h_t⟩·V h_t to token t, for a weight ≥ 0: the score is t·⟨weight, h_k⟩ − Γ(t − k).

        Γ is large enough to make the score of every earlier round negative, whatever the flags.
        """
        one, now, slope = self.unit("one"), self.unit("t"), 2.0 * (self.n + 2) * self.rounds  # slope is Γ
        return with_itself(one, now, slope, (now.unsqueeze(0), weight.unsqueeze(0)), value)


def empty_tokens(layout: Layout, batch: int) -> Tensor:
    """The tokens of a block with all that is known beforehand: lengths, rounds and positions; `[B, 2^n, D]`."""
    tokens = torch.zeros(batch, layout.rounds, layout.width, dtype=torch.double)
    t = torch.arange(1, layout.rounds + 1, dtype=torch.double)
    places = [layout.place(name) for name in ("one", "block_length", "t", "t_squared")]
    tokens[..., places] = torch.stack([torch.ones_like(t), torch.full_like(t, layout.rounds), t, t * t], dim=1)
    for order in layout.orders:
        start = t - (t - 1) % 2**order
        tokens[..., layout.place("length", order)] = 2**order
        tokens[..., layout.place("start", order)] = start
        tokens[..., layout.place("t_times_start", order)] = t * start
    return tokens


def random_tokens(layout: Layout, seed: int, batch: int | None = None) -> Tensor:
    """Tokens `[B, 2^n, D]` with anything that a run could bring, of both signs, and flags as random numbers."""
    generator = torch.Generator().manual_seed(seed)
    batch = max(64, 8192 // layout.rounds) if batch is None else batch
    tokens = empty_tokens(layout, batch)

    def normal(*shape: int) -> Tensor:
        return torch.randn(batch, layout.rounds, *shape, generator=generator, dtype=torch.double)

    for order in layout.orders:
        tokens[..., layout.x(order)] = normal(layout.d)
        for name in ("window_sum", "lower_sum", "auxiliary", "noise"):
            tokens[..., layout.place(name, order)] = normal()
        tokens[..., layout.place("rand", order)] = (normal() > 0).double()
    for name in ("reward_sum", "auxiliary_sum", "bound"):
        tokens[..., layout.place(name)] = normal()
    return tokens


def tokens_with_random_numbers(layout: Layout, seed: int) -> tuple[Tensor, Tensor]:
    """Random tokens with uniform random numbers for every order, and those numbers `[B, 2^n, n+1]`."""
    tokens = random_tokens(layout, seed)
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.rand(*tokens.shape[:2], layout.n + 1, generator=generator, dtype=torch.double)
    tokens[..., layout.places("rand")] = numbers
    return tokens, numbers
