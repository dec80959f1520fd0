"""1[x > 0] from two ReLUs (Appendix `appx-approx-rand-gen`): ReLU(kx) − ReLU(kx − 1), a ramp of width 1/k.

It is exact outside the ramp 0 < x < 1/k. `ramp_share` says how many of some inputs lie in it. The text lets k go to
infinity; in floating point the difference of two numbers near kx loses digits, so that k is bounded too: in float64
with k = 10⁵ it is right to 1e-10, with 10⁸ only to 1e-8.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.theory.network import Mlp


def reference(x: Tensor) -> Tensor:
    return (x > 0).to(x.dtype)


def indicator(x: Tensor, k: float) -> Tensor:
    """What the two ReLUs give."""
    return torch.relu(k * x) - torch.relu(k * x - 1)


def ramp_share(x: Tensor, k: float) -> float:
    """The share of inputs for which the ramp is not yet the indicator."""
    return float(((x > 0) & (k * x < 1)).double().mean())


def rows(reads: Tensor, one: Tensor, k: float) -> Tensor:
    """The two hidden units of 1[⟨reads, h⟩ > 0], `[2, D]`; `one` reads the constant."""
    return torch.stack([k * reads, k * reads - one])


def write(width: int, places: list[int]) -> Tensor:
    """The second matrix that writes the difference of each pair of hidden units to a place, `[D, 2·len(places)]`."""
    second = torch.zeros(width, 2 * len(places), dtype=torch.double)
    for pair, place in enumerate(places):
        second[place, 2 * pair], second[place, 2 * pair + 1] = 1.0, -1.0
    return second


def build(reads: list[Tensor], one: Tensor, places: list[int], k: float) -> Mlp:
    """An MLP that adds 1[⟨reads_i, h⟩ > 0] to the i-th place: two hidden units each."""
    first = torch.cat([rows(read, one, k) for read in reads])
    return Mlp(first, write(first.shape[1], places))
