"""Bernoulli masks (Step 1 of `appx-approx-sig1`): B = 1[rand < ρ(2^n)/ρ(2^i)], in two ways.

Ours: for a given n the threshold of each order is a constant, so no product is needed: two hidden units per order,
exact outside the ramp 1/k. The text compares ρ(2^n) with an approximate product rand·ρ(2^i) instead: xy is a difference
of squares, and squares are approximated by straight pieces.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.theory.bounds import Rho
from driftformer.theory.constructions import indicator
from driftformer.theory.network import Layer, Mlp, slope_changes
from driftformer.theory.tokens import Layout


def thresholds(n: int, rho: Rho) -> Tensor:
    """ρ(2^n)/ρ(2^i) of all orders, `[n+1]`."""
    return torch.tensor([rho(2**n) / rho(2**order) for order in range(n + 1)], dtype=torch.double)


def reference(numbers: Tensor, rho: Rho) -> Tensor:
    """The flags of random numbers `[B, T, n+1]`. The highest order's threshold is 1, above every rank."""
    return (numbers < thresholds(numbers.shape[2] - 1, rho)).to(numbers.dtype)


def build(layout: Layout, rho: Rho, k: float) -> Layer:
    """Replace each order's random number by its flag: two hidden units write the flag, one removes the number."""
    one, rand = layout.unit("one"), layout.units("rand")  # [D], [n+1, D]
    flags = indicator.build(thresholds(layout.n, rho).unsqueeze(1) * one - rand, one, rand, k)
    # A rank is never negative, so ReLU(rand) = rand.
    return Layer(mlp=Mlp(torch.cat([flags.first, rand]), torch.cat([flags.second, -rand.T], dim=1)))


def square(x: Tensor, pieces: int) -> Tensor:
    """x² on [0, 2] by straight pieces between equally spaced knots: one ReLU per piece."""
    knots = torch.linspace(0, 2, pieces + 1, dtype=x.dtype)
    return (torch.relu(x.unsqueeze(-1) - knots[:-1]) * slope_changes(knots, knots**2)).sum(-1)


def product(x: Tensor, y: Tensor, pieces: int) -> Tensor:
    """xy on [0, 1]² as ((x+y)² − x² − y²)/2, with 3·pieces hidden units; the error is at most 1.5/pieces²."""
    return (square(x + y, pieces) - square(x, pieces) - square(y, pieces)) / 2


def largest_product_error(pieces: int) -> float:
    """The largest error of `product` on a grid of [0, 1]²."""
    grid = torch.linspace(0, 1, 201, dtype=torch.double)
    x, y = torch.meshgrid(grid, grid, indexing="ij")
    return float((product(x, y, pieces) - x * y).abs().max())


def pieces_for(error: float) -> int:
    """How many pieces make the product that accurate: O(1/√ε), fewer than the text's O(1/ε)."""
    return max(1, int((1.5 / error) ** 0.5) + 1)
