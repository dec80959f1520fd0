"""Random numbers that belong to a chunk.

A chunk is a fixed number of problems whose randomness comes from (seed, chunk index) alone. Several chunks are
stacked into one batch where a bigger batch is faster; each still draws from its own generators, so its numbers do not
depend on its neighbours, on the process that computes it, or on which other agents run.

The chunk size of 64 is no accident: every tensor of a chunk then starts on a 64-byte boundary wherever the chunk sits
in the stack. Matrix products choose their code path by alignment, so with a chunk of, say, 50 the same problem gives
other last bits at another place in the stack.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

CHUNK = 64
"""Problems in a chunk."""

_AHEAD = 16
"""How many draws of one shape an accelerator makes at once: a launch per chunk and draw would cost more than it."""

_Kind = Literal["symmetric", "uniform", "normal"]


class Stream(Protocol):
    """A source of batched random tensors; row b always comes from the generator of b's chunk."""

    def symmetric(self, *shape: int) -> Tensor:
        """Unif[-1, 1] at full float32 resolution, `[B, *shape]`."""
        ...

    def uniform(self, *shape: int) -> Tensor:
        """Unif[0, 1) with 24 random bits, never 1, `[B, *shape]`."""
        ...

    def normal(self, *shape: int) -> Tensor:
        """N(0, 1), `[B, *shape]`."""
        ...


class Randomness:
    """All randomness of a stack of chunks, as one independent `Stream` for each purpose."""

    def __init__(
        self,
        seed: int,
        chunks: Sequence[int] = (0,),
        *,
        size: int = CHUNK,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.seed, self.chunks, self.size = seed, tuple(chunks), size
        self.device, self.dtype = torch.device(device), dtype
        self._streams: dict[str, Stream] = {}

    @property
    def batch(self) -> int:
        """Problems in the stack, B."""
        return len(self.chunks) * self.size

    def stream(self, purpose: str) -> Stream:
        """The stream of one purpose ("features", "noise", "agent", …), the same object at every call."""
        if purpose not in self._streams:
            key = zlib.crc32(purpose.encode())
            roots = [np.random.SeedSequence(self.seed, spawn_key=(chunk, key)) for chunk in self.chunks]
            kind = _HostStream if self.device.type == "cpu" else _DeviceStream
            self._streams[purpose] = kind(roots, self.size, self.device, self.dtype)
        return self._streams[purpose]


class _HostStream:
    """CPU: one SFC64 generator a chunk. Raw bits become uniforms in one vectorised pass over the whole stack."""

    def __init__(
        self, roots: list[np.random.SeedSequence], size: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self._bits = [np.random.SFC64(root) for root in roots]
        self._generators = [np.random.Generator(bits) for bits in self._bits]
        self._size, self._dtype = size, dtype
        self._raw: dict[int, NDArray[np.uint64]] = {}  # reused: fresh memory costs more than the numbers in it

    def _integers(self, shape: tuple[int, ...]) -> Tensor:
        """32 random bits an entry; valid until the next call."""
        count = self._size * math.prod(shape)
        words = (count + 1) // 2  # two numbers in each word
        if words not in self._raw:
            self._raw[words] = np.empty((len(self._bits), words), np.uint64)
        raw = self._raw[words]
        for row, bits in zip(raw, self._bits, strict=True):
            row[:] = bits.random_raw(words)
        integers = torch.from_numpy(raw.view(np.int32))[:, :count]  # [C, count]
        return integers.reshape(len(self._bits) * self._size, *shape)

    def symmetric(self, *shape: int) -> Tensor:
        return self._integers(shape).to(torch.float32).mul_(2.0**-31).to(self._dtype)

    def uniform(self, *shape: int) -> Tensor:
        return (self._integers(shape) >> 8).to(torch.float32).mul_(2.0**-24).add_(0.5).to(self._dtype)

    def normal(self, *shape: int) -> Tensor:
        values = np.empty((len(self._generators), self._size * math.prod(shape)), np.float32)
        for row, generator in zip(values, self._generators, strict=True):
            generator.standard_normal(dtype=np.float32, out=row)
        return torch.from_numpy(values).view(-1, *shape).to(self._dtype)


class _DeviceStream:
    """Accelerator: torch's own generator for each chunk, several draws of one shape ahead."""

    def __init__(
        self, roots: list[np.random.SeedSequence], size: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self._generators = [torch.Generator(device) for _ in roots]
        for generator, root in zip(self._generators, roots, strict=True):
            generator.manual_seed(int(root.generate_state(1, np.uint64)[0] >> np.uint64(1)))
        self._size, self._device, self._dtype = size, device, dtype
        self._ahead: dict[tuple[_Kind, tuple[int, ...]], tuple[Tensor, int]] = {}

    def _draw(self, kind: _Kind, shape: tuple[int, ...]) -> Tensor:
        block, used = self._ahead.get((kind, shape), (None, _AHEAD))
        if block is None:
            block = torch.empty(len(self._generators), _AHEAD, self._size * math.prod(shape), device=self._device)
        if used == _AHEAD:
            for rows, generator in zip(block, self._generators, strict=True):
                if kind == "normal":
                    rows.normal_(generator=generator)
                else:
                    rows.uniform_(-1.0 if kind == "symmetric" else 0.0, 1.0, generator=generator)
            used = 0
        self._ahead[kind, shape] = (block, used + 1)
        # A fresh tensor: the block is filled anew while the caller may still hold this draw.
        return block[:, used].reshape(-1, *shape).to(self._dtype, copy=True)

    def symmetric(self, *shape: int) -> Tensor:
        return self._draw("symmetric", shape)

    def uniform(self, *shape: int) -> Tensor:
        return self._draw("uniform", shape)

    def normal(self, *shape: int) -> Tensor:
        return self._draw("normal", shape)
