"""The alternative for a regular transformer (`appx-motiv-non-cont-tf`): compress, work on the parts, decompress.

Each part of a token of D numbers has D/(n+1) of them, so W_decomp·W_comp has rank at most D/(n+1) and cannot be close
to I_D, as the text asks. It need not be: the data h has d numbers, and the identity is only needed on the subspace that
they span. With h in the first d coordinates and d ≤ D/(n+1), W_comp moves them into a part and W_decomp moves them
back. After σ1 and σ2 at most one part is nonzero, so the sum of all decompressed parts is the selected trajectory.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.errors import InputError
from driftformer.theory.constructions import sigma1, sigma2
from driftformer.theory.network import Layer, linear
from driftformer.theory.tokens import Layout


def compression_matrix(d: int, parts: int, width: int) -> Tensor:
    """W_comp, the same for every part: `[D/(n+1), D]`. W_decomp is its transpose."""
    size = width // parts
    if d > size:
        raise InputError(f"d is {d}, but each of {parts} parts of a {width}-number token holds {size}; widen the token")
    matrix = torch.zeros(size, width, dtype=torch.double)
    matrix[:d, :d] = torch.eye(d, dtype=torch.double)
    return matrix


def build(layout: Layout) -> list[Layer]:
    """A regular transformer: copy the data of order 0's part to all others, then apply σ1 and σ2 to the parts."""
    change = torch.zeros(layout.width, layout.width, dtype=torch.double)
    for order in layout.orders[1:]:
        change[layout.x(order), layout.x(0)] = torch.eye(layout.d, dtype=torch.double)
    copy = [Layer(mlp=linear(change))] if layout.n else []
    return [*copy, sigma1.build(layout), sigma2.build(layout)]


def read(tokens: Tensor, layout: Layout) -> Tensor:
    """Decompression: the sum of all parts, `[…, d]`."""
    return torch.stack([tokens[..., layout.x(order)] for order in layout.orders]).sum(dim=0)
