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
