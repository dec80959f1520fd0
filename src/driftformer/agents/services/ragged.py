"""Tables of different lengths in one tensor, so that a saved state has few of them however many rounds are in it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def joined(name: str, tables: Sequence[Tensor]) -> dict[str, Tensor]:
    """Tables `[n, d]` below each other, and their lengths; no tables are no tensors."""
    if not tables:
        return {}
    lengths = torch.tensor([len(table) for table in tables])
    return {name: torch.cat(list(tables)), f"{name}.lengths": lengths}


def parted(
    name: str, tensors: dict[str, Tensor], count: int, dtype: torch.dtype, largest: float = 1.0
) -> tuple[Tensor, ...]:
    """The tables again, as many as are expected, with numbers up to `largest`; they may have been tampered with."""
    if count == 0:
        return ()
    rows, lengths = tensors[name], tensors[f"{name}.lengths"]
    sound = rows.dtype == dtype and rows.ndim in (1, 2) and lengths.shape == (count,) and lengths.dtype == torch.long
    if not sound or bool((lengths < 1).any() | (lengths > len(rows)).any()) or int(lengths.sum()) != len(rows):
        raise ValueError(f"{name} has other sizes or types than it should")
    if dtype != torch.bool and not bool((rows.abs() <= largest).all()):
        raise ValueError(f"{name} holds numbers that cannot be")
    tables: tuple[Tensor, ...] = torch.split(rows, lengths.tolist())
    return tables
