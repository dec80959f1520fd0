"""The alternative for a regular transformer (`appx-motiv-non-cont-tf`): compress, work on the parts, decompress.

Each part of a token of D numbers has D/(n+1) of them, so W_decomp·W_comp has rank at most D/(n+1): it cannot be near
I_D, as the text asks. It need not be: the data h has d numbers, and the identity is wanted on the subspace where tokens
live. With h in the first d coordinates and d ≤ D/(n+1), W_comp keeps those and puts them into its part, W_decomp puts
them back; after σ1 and σ2 only one part is not zero, so the sum of all decompressed parts is the selected trajectory.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.errors import InputError
from driftformer.theory.constructions import sigma1, sigma2
from driftformer.theory.network import Layer, Mlp
from driftformer.theory.tokens import Layout


def compress(d: int, parts: int, width: int) -> list[Tensor]:
    """W_comp of each part, `[D/(n+1), D]`."""
    size = width // parts
    if d > size:
        raise InputError(
            f"d is {d}, but a part of {parts} in a token of {width} numbers has {size}; give a wider token"
        )
    keep = torch.zeros(size, width, dtype=torch.double)
    keep[:d, :d] = torch.eye(d, dtype=torch.double)
    return [keep] * parts


def decompress(d: int, parts: int, width: int) -> list[Tensor]:
    """W_decomp of each part, `[D, D/(n+1)]`: the transpose."""
    return [matrix.T for matrix in compress(d, parts, width)]


def build(layout: Layout) -> list[Layer]:
    """A regular transformer: the data of order 0's part is copied to all others, then σ1 and σ2 work on the parts."""
    change = torch.zeros(layout.width, layout.width, dtype=torch.double)
    for order in layout.orders[1:]:
        change[layout.x(order), layout.x(0)] = torch.eye(layout.d, dtype=torch.double)
    rows = change.abs().sum(dim=1) > 0
    write = torch.eye(layout.width, dtype=torch.double)[:, rows]
    copy = Mlp(torch.cat([change[rows], -change[rows]]), torch.cat([write, -write], dim=1))
    return [*([Layer(mlp=copy)] if layout.n else []), sigma1.build(layout), sigma2.build(layout)]


def read(tokens: Tensor, layout: Layout) -> Tensor:
    """Decompression: the sum of all parts, `[…, d]`."""
    return torch.stack([tokens[..., layout.x(order)] for order in layout.orders]).sum(dim=0)
