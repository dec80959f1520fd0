"""Random inputs for checks: tokens with anything in them that a run could bring, of both signs."""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.theory.tokens import Layout, empty_tokens


def random_tokens(layout: Layout, batch: int, seed: int) -> Tensor:
    """Tokens `[B, 2^n, D]` with random x, sums, auxiliary values and noise, and flags in place of random numbers."""
    generator = torch.Generator().manual_seed(seed)
    tokens = empty_tokens(layout, batch)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.double)

    for order in layout.orders:
        tokens[..., layout.x(order)] = normal(batch, layout.rounds, layout.d)
        for name in ("window_sum", "lower_sum", "auxiliary", "noise"):
            tokens[..., layout.place(name, order)] = normal(batch, layout.rounds)
        tokens[..., layout.place("rand", order)] = (normal(batch, layout.rounds) > 0).double()
    for name in ("reward_sum", "auxiliary_sum", "bound"):
        tokens[..., layout.place(name)] = normal(batch, layout.rounds)
    return tokens


def clear(tokens: Tensor, layout: Layout, name: str) -> Tensor:
    """The same tokens with one entry of every order set to zero."""
    cleared = tokens.clone()
    for order in layout.orders:
        cleared[..., layout.place(name, order)] = 0.0
    return cleared


def column(tokens: Tensor, layout: Layout, name: str) -> Tensor:
    """One entry of every order, `[B, T, n+1]`."""
    return torch.stack([tokens[..., layout.place(name, order)] for order in layout.orders], dim=-1)
