"""σ2, the selection operator (`def-sig2`, `appx-approx-sig2`): only the lowest live order keeps its block.

The text decides from sums of auxiliary values f whether a lower order is live; but f may be zero, and the sums include
the values of orders that are not live. Flags decide it exactly: C = Σ_{p<m} B_p is an integer, and −C + ReLU(C − 1) is
0 where no lower order is live and −1 where one is. Two heads per order, with scores t·C − Γ(t − k) and t·C − t −
Γ(t − k): exact.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.theory.constructions.sigma1 import projection
from driftformer.theory.network import Layer
from driftformer.theory.tokens import Layout


def reference(tokens: Tensor, layout: Layout) -> Tensor:
    """Zero the blocks above the lowest order whose flag is set."""
    selected = tokens.clone()
    taken = torch.zeros_like(tokens[..., 0], dtype=torch.bool)
    for order in layout.orders:
        selected[..., layout.block(order)] *= (~taken).to(tokens.dtype).unsqueeze(-1)
        taken = taken | (tokens[..., layout.place("rand", order)] > 0.5)
    return selected


def build(layout: Layout) -> Layer:
    """Two heads for every order but the lowest, which nothing can mask."""
    one, rand = layout.unit("one"), layout.units("rand")
    heads = []
    for order in layout.orders[1:]:
        lower, keep = rand[:order].sum(dim=0), projection(layout, order)
        heads += [layout.attend_to_itself(lower, -keep), layout.attend_to_itself(lower - one, keep)]
    return Layer(heads)
