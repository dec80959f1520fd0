"""1[x > 0] from two ReLUs (Appendix `appx-approx-rand-gen`): ReLU(kx) − ReLU(kx − 1), a ramp of width 1/k.

It is exact outside the ramp 0 < x < 1/k; `ramp_share` tells how many inputs fall inside. The text lets k go to
infinity. In floating point the difference of two numbers near kx loses digits, which bounds k too: in float64 the error
is 1e-10 for k = 10⁵ and 1e-8 for k = 10⁸.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.theory.network import Mlp


def reference(x: Tensor) -> Tensor:
    return (x > 0).to(x.dtype)


def indicator(x: Tensor, k: float) -> Tensor:
    """The output of the two ReLUs."""
    return torch.relu(k * x) - torch.relu(k * x - 1)


def ramp_share(x: Tensor, k: float) -> float:
    """The share of inputs inside the ramp."""
    return float(((x > 0) & (k * x < 1)).double().mean())


def build(reads: Tensor, one: Tensor, writes: Tensor, k: float) -> Mlp:
    """Add 1[⟨reads_i, h⟩ > 0] to the entry of writes_i, rows `[m, D]` each: two hidden units per row.

    `one` `[D]` reads the constant.
    """
    first = torch.stack([k * reads, k * reads - one], dim=1).flatten(0, 1)  # [2m, D]
    return Mlp(first, torch.stack([writes, -writes], dim=1).flatten(0, 1).T)
