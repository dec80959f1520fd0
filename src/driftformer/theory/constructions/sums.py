"""Running sums and window sums by attention: what `eq-input1` and `eq-input2` carry from round to round.

A head whose score is t for every earlier round adds Σ_{k≤t} V h_k, since t undoes the 1/t. For the last 2^i rounds,
with x = k − (t − 2^i), the difference ReLU(x) − ReLU(x − 1) is 1 for k > t − 2^i and 0 before: two heads, exact on
integers. Their scores contain t·k, t² and t·2^i, so t² is in the input.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.theory.network import Head, Layer
from driftformer.theory.tokens import Layout


def reference(values: Tensor, window: int | None = None) -> Tensor:
    """The sums of values `[B, T]` up to each round: of all of them, or of the last `window`."""
    total = values.cumsum(dim=1)
    if window is None or window >= values.shape[1]:
        return total
    return total - torch.cat([torch.zeros_like(values[:, :window]), total[:, :-window]], dim=1)


def build(layout: Layout) -> Layer:
    """Write the sums of rewards and of auxiliary values so far, and the window sum of every order: 2(n+1)+2 heads."""
    one, now, squared, reward = (layout.unit(name) for name in ("one", "t", "t_squared", "reward"))
    everything = (now.unsqueeze(0), one.unsqueeze(0))
    heads = [
        Head(*everything, torch.outer(layout.unit("reward_sum"), reward)),
        Head(*everything, torch.outer(layout.unit("auxiliary_sum"), layout.unit("active_auxiliary"))),
    ]
    for order in layout.orders:
        value = torch.outer(layout.unit("window_sum", order), reward)
        key = torch.stack([now, one, one])
        for shift, sign in ((0.0, 1.0), (-1.0, -1.0)):
            query = torch.stack([now, -squared, (2**order + shift) * now])
            heads.append(Head(query, key, sign * value))
    return Layer(heads)
