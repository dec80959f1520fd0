"""σ1, the masking operator (`def-sig1`, Step 2 of `appx-approx-sig1`): blocks without an instance become zero.

The text's scores use the flag of the querying token and an indicator of two ReLUs, and omit the residual and the 1/t.
Here the flag is on the key's side and the query carries t: the score t·(1 − B_{m,k}) − Γ(t − k) is negative for every
k < t once Γ is large enough, and at k = t it is t·(1 − B_{m,t}), whose factor t undoes the 1/t. With the value −P_m h
the residual leaves B·P_m h: exact, without a ramp, and with one head per order instead of two.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.theory.network import Layer
from driftformer.theory.tokens import Layout


def reference(tokens: Tensor, layout: Layout) -> Tensor:
    """The block of every order times its flag."""
    masked = tokens.clone()
    for order in layout.orders:
        masked[..., layout.block(order)] *= tokens[..., layout.place("rand", order)].unsqueeze(-1)
    return masked


def projection(layout: Layout, order: int) -> Tensor:
    """P_m, which keeps the block of one order."""
    keep = torch.zeros(layout.width, dtype=torch.double)
    keep[layout.block(order)] = 1.0
    return torch.diag(keep)


def build(layout: Layout) -> Layer:
    """One head per order."""
    absent = layout.unit("one") - layout.units("rand")  # [n+1, D] reads 1 − B
    return Layer([layout.attend_to_itself(absent[order], -projection(layout, order)) for order in layout.orders])
