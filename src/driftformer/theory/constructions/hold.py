"""Holding a random number over a block of 2^i rounds, which Step 2 of `appx-approx-sig1` only postulates.

Token t takes the number of the token where its order-i block began. With x = k − start(t), the sum ReLU(x+1) −
2·ReLU(x) + ReLU(x−1) is 1 at x = 0 and 0 at every other whole number: three heads, exact, without any ramp. Their
scores are t times that, which undoes the 1/t of the layer; they are products of entries of two tokens because t and
t·start(t) stand in the input. (The text writes t ≡ 1 mod 2 where blocks begin at t ≡ 1 mod 2^i.)
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.theory.network import Head, Layer
from driftformer.theory.tokens import Layout, far


def reference(numbers: Tensor, order: int) -> Tensor:
    """Each round's number replaced by that of the round where its block began, `[B, T]`."""
    places = torch.arange(numbers.shape[1])
    return numbers[:, places - places % 2**order]


def build(layout: Layout) -> Layer:
    """Replaces each order's random number: 3 heads to fetch it, one to take away what the token had."""
    one, now = layout.unit("one"), layout.unit("t")
    heads = []
    for order in layout.orders:
        rand = layout.unit("rand", order)
        value = torch.outer(rand, rand)
        key = torch.stack([now, one, one])
        for shift, sign in ((1.0, 1.0), (0.0, -2.0), (-1.0, 1.0)):
            query = torch.stack([now, -layout.unit("t_times_start", order), shift * now])
            heads.append(Head(query, key, sign * value))
        heads.append(at_itself(layout, one, -value))
    return Layer(heads)


def at_itself(layout: Layout, weight: Tensor, value: Tensor) -> Head:
    """A head that adds ⟨weight, h_t⟩·V h_t to token t for a weight ≥ 0: its score is t·⟨weight, h_k⟩ − Γ(t − k)."""
    one, now, slope = layout.unit("one"), layout.unit("t"), far(layout)
    return Head(torch.stack([now, now, one]), torch.stack([weight, -slope * one, slope * now]), value)
