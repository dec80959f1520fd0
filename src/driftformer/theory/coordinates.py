"""Named coordinates of a token, one stretch after the other, and the matrices that read and move them."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


class Coordinates:
    """Where each named entry stands, given how many numbers each entry has."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._slices: dict[str, slice] = {}
        self.width = 0  # D
        for name, size in sizes.items():
            self._slices[name] = slice(self.width, self.width + size)
            self.width += size

    def __getitem__(self, name: str) -> slice:
        return self._slices[name]

    def read(self, name: str, times: float = 1.0) -> Tensor:
        """Rows that read an entry, `[size, D]`."""
        return times * torch.eye(self.width, dtype=torch.double)[self[name]]

    def move(self, source: str, target: str, times: float = 1.0) -> Tensor:
        """The matrix that adds one entry to another, `[D, D]`."""
        return self.read(target).T @ self.read(source, times)
