"""σ2, the selection operator (`def-sig2`, `appx-approx-sig2`): of the live orders only the lowest keeps its block.

The text looks at sums of auxiliary values f to see whether a lower order lives; but f may be zero, and the sums also
hold the values of orders that are not live. The flags say it exactly: C = Σ_{p<m} B_p is a whole number, and −C +
ReLU(C − 1) is 0 where no lower order lives and −1 where one does. Two heads an order, with scores t·C − Γ(t − k) and
t·C − t − Γ(t − k): exact.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.theory.constructions.hold import at_itself
from driftformer.theory.constructions.sigma1 import projection
from driftformer.theory.network import Layer
from driftformer.theory.tokens import Layout


def reference(tokens: Tensor, layout: Layout) -> Tensor:
    """Blocks above the lowest order whose flag is set become zero."""
    selected = tokens.clone()
    taken = torch.zeros_like(tokens[..., 0], dtype=torch.bool)
    for order in layout.orders:
        selected[..., layout.block(order)] *= (~taken).to(tokens.dtype).unsqueeze(-1)
        taken = taken | (tokens[..., layout.place("rand", order)] > 0.5)
    return selected


def build(layout: Layout) -> Layer:
    """Two heads for every order but the lowest, which nothing can mask."""
    one = layout.unit("one")
    heads = []
    for order in layout.orders[1:]:
        lower = torch.stack([layout.unit("rand", p) for p in range(order)]).sum(dim=0)
        keep = projection(layout, order)
        heads += [at_itself(layout, lower, -keep), at_itself(layout, lower - one, keep)]
    if not heads:  # a block of one round has one order
        return Layer()
    return Layer(heads)
