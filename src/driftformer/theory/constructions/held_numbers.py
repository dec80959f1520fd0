"""A random number held over a block of 2^i rounds, which Step 2 of `appx-approx-sig1` only postulates.

Token t takes the number of the token at which its order-i block began. With x = k − start(t), the sum ReLU(x+1) −
2·ReLU(x) + ReLU(x−1) is 1 at x = 0 and 0 at every other integer: three heads, exact, without a ramp. Their scores are
t times that, which undoes the layer's 1/t; they are products of entries of two tokens because t and t·start(t) are in
the input. (The text has t ≡ 1 mod 2 where blocks begin at t ≡ 1 mod 2^i.)
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.theory.network import Head, Layer
from driftformer.theory.tokens import Layout


def reference(numbers: Tensor) -> Tensor:
    """Numbers `[B, T, n+1]`, each replaced by that of the round in which its order's block began."""
    rounds = torch.arange(numbers.shape[1])
    held = [numbers[:, rounds - rounds % 2**order, order] for order in range(numbers.shape[2])]
    return torch.stack(held, dim=2)


def build(layout: Layout) -> Layer:
    """Replace the random number of each order: three heads fetch the new one, one removes the old."""
    one, now = layout.unit("one"), layout.unit("t")
    heads = []
    for order in layout.orders:
        rand = layout.unit("rand", order)
        value = torch.outer(rand, rand)
        key = torch.stack([now, one, one])
        for shift, sign in ((1.0, 1.0), (0.0, -2.0), (-1.0, 1.0)):
            query = torch.stack([now, -layout.unit("t_times_start", order), shift * now])
            heads.append(Head(query, key, sign * value))
        heads.append(layout.attend_to_itself(one, -value))
    return Layer(heads)
