"""Bernoulli masks (Step 1 of `appx-approx-sig1`): B = 1[rand < ρ(2^n)/ρ(2^i)], in two ways.

Ours: for a given n the threshold is one number for each order, so no product is needed: two hidden units an order,
exact but for the ramp 1/k. The text instead compares ρ(2^n) with an approximate product rand·ρ(2^i): xy is a difference
of squares, and squares are approximated by pieces of straight lines.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from driftformer.theory.constructions import indicator
from driftformer.theory.network import Layer, Mlp
from driftformer.theory.tokens import Layout

Rho = Callable[[int], float]


def thresholds(n: int, rho: Rho) -> Tensor:
    """ρ(2^n)/ρ(2^i) of all orders, `[n+1]`."""
    return torch.tensor([rho(2**n) / rho(2**order) for order in range(n + 1)], dtype=torch.double)


def reference(rand: Tensor, n: int, rho: Rho) -> Tensor:
    """Flags of random numbers `[B, T, n+1]`. The highest order's threshold is 1, above every rank."""
    return (rand < thresholds(n, rho)).to(rand.dtype)


def build(layout: Layout, rho: Rho, k: float) -> Layer:
    """Replaces each order's random number by its flag: two hidden units for the flag, one to take the number away."""
    one = layout.unit("one")
    reads, places, clears = [], [], []
    for order, threshold in zip(layout.orders, thresholds(layout.n, rho).tolist(), strict=True):
        rand = layout.unit("rand", order)
        reads.append(threshold * one - rand)
        places.append(layout.place("rand", order))
        clears.append(rand)  # a rank is at least 0, so ReLU(rand) = rand
    flags = indicator.build(reads, one, places, k)
    clear = torch.stack(clears)
    away = torch.zeros(layout.width, len(clears), dtype=torch.double)
    for column, place in enumerate(places):
        away[place, column] = -1.0
    return Layer(mlp=Mlp(torch.cat([flags.first, clear]), torch.cat([flags.second, away], dim=1)))


def square(x: Tensor, pieces: int) -> Tensor:
    """x² on [0, 2] by straight pieces between equally spaced points: one ReLU a piece."""
    knots = torch.linspace(0, 2, pieces + 1, dtype=x.dtype)[:-1]
    step = 2 / pieces
    slopes = 2 * knots + step  # of the chord that begins at each knot
    changes = torch.cat([slopes[:1], slopes[1:] - slopes[:-1]])
    return (torch.relu(x.unsqueeze(-1) - knots) * changes).sum(-1)


def product(x: Tensor, y: Tensor, pieces: int) -> Tensor:
    """xy on [0, 1]² as ((x+y)² − x² − y²)/2, with 3·pieces hidden units; off by at most 1.5/pieces²."""
    return (square(x + y, pieces) - square(x, pieces) - square(y, pieces)) / 2


def pieces_for(error: float) -> int:
    """Pieces that make the product that accurate: O(1/√ε) of them, fewer than the O(1/ε) of the text."""
    return max(1, int((1.5 / error) ** 0.5) + 1)
