"""Is a transformer Lipschitz in its weights, as the bound on its covering number needs?

With hidden tokens clipped at R it is, and the constant of `bounds.log_lipschitz` holds for any weights. Without
clipping a token can grow with its cube in every layer (ReLU attention multiplies it three times with itself), so that
a few layers with weights of norm B leave every such constant behind.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from driftformer.theory.bounds import log_lipschitz
from driftformer.theory.network import Head, Layer, Mlp, apply, sizes

WIDTH, LAYERS, RADIUS = 3, 5, 1.0
"""Of the examples: D, L and R."""


def scaled(layers: list[Layer], times: float) -> list[Layer]:
    """All weights times a number."""
    return [
        Layer(
            [Head(times * head.query, times * head.key, times * head.value) for head in layer.heads],
            None if layer.mlp is None else Mlp(times * layer.mlp.first, times * layer.mlp.second),
        )
        for layer in layers
    ]


def identities() -> list[Layer]:
    """One head with identities for Q, K and V in each layer."""
    one = torch.eye(WIDTH, dtype=torch.double)
    return [Layer([Head(one, one, one)]) for _ in range(LAYERS)]


def random_weights(seed: int) -> list[Layer]:
    """Two heads and an MLP in each layer."""
    generator = torch.Generator().manual_seed(seed)

    def matrix() -> Tensor:
        return torch.randn(WIDTH, WIDTH, generator=generator, dtype=torch.double)

    return [
        Layer([Head(matrix(), matrix(), matrix()) for _ in range(2)], Mlp(matrix(), matrix())) for _ in range(LAYERS)
    ]


def excess(layers: list[Layer], norm: float, clip: float | None) -> float:
    """ln of how far the output moves, over the Lipschitz constant times how far the weights move; more than 0 refutes.

    The weights are scaled to |||θ||| = B = `norm`, and moved by a little along themselves.
    """
    layers, step = scaled(layers, norm / sizes(layers).norm), 1e-6
    tokens = torch.randn(16, 8, WIDTH, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    tokens = tokens * (RADIUS / tokens.norm(dim=2, keepdim=True))
    moved = apply(scaled(layers, 1 - step), tokens, clip) - apply(layers, tokens, clip)
    far = float(moved.norm(dim=2).max())
    return math.log(max(far, 1e-300) / (norm * step)) - log_lipschitz(sizes(layers), RADIUS)
