"""Random numbers that belong to a chunk, and one thread to compute with: the same seed gives the same bits.

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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

CHUNK = 64
"""Problems in a chunk."""


@dataclass(frozen=True, order=True)
class Chunk:
    """The first `count` problems of chunk number `index`."""

    index: int
    count: int = CHUNK


def chunks_for(runs: int) -> list[Chunk]:
    """The chunks that hold the first `runs` problems; of the last one perhaps only a part counts."""
    return [Chunk(index, min(CHUNK, runs - index * CHUNK)) for index in range(-(-runs // CHUNK))]


_AHEAD = 16
"""How many draws of one shape are made at once where a single one is too small to be worth a call for each chunk."""

_SMALL = 1024
"""Numbers for one chunk below which a CPU draws ahead; an accelerator always does."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread inside the block: more would give other last bits, and parallelism comes from workers."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


_Kind = Literal["symmetric", "uniform", "normal"]


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

    def again(self, chunks: Sequence[int] | None = None) -> Randomness:
        """The same numbers from the beginning, perhaps of other chunks."""
        which = self.chunks if chunks is None else chunks
        return Randomness(self.seed, which, size=self.size, device=self.device, dtype=self.dtype)

    def stream(self, purpose: str) -> Stream:
        """The stream of one purpose ("features", "noise", "agent", …), the same object at every call."""
        if purpose not in self._streams:
            key = zlib.crc32(purpose.encode())
            roots = [np.random.SeedSequence(self.seed, spawn_key=(chunk, key)) for chunk in self.chunks]
            source = _HostSource(roots) if self.device.type == "cpu" else _DeviceSource(roots, self.device)
            self._streams[purpose] = Stream(source, self.size, self.dtype)
        return self._streams[purpose]


class Stream:
    """A source of batched random tensors, some draws ahead; row b always comes from the generator of b's chunk."""

    def __init__(self, source: _HostSource | _DeviceSource, size: int, dtype: torch.dtype) -> None:
        self._source, self._size, self._dtype = source, size, dtype
        self._blocks: dict[tuple[_Kind, tuple[int, ...]], list[Tensor]] = {}

    def symmetric(self, *shape: int) -> Tensor:
        """Unif[-1, 1] at full float32 resolution, `[B, *shape]`."""
        return self._draw("symmetric", shape)

    def uniform(self, *shape: int) -> Tensor:
        """Unif[0, 1) with 24 random bits, never 1, `[B, *shape]`."""
        return self._draw("uniform", shape)

    def normal(self, *shape: int) -> Tensor:
        """N(0, 1), `[B, *shape]`."""
        return self._draw("normal", shape)

    def _draw(self, kind: _Kind, shape: tuple[int, ...]) -> Tensor:
        count = self._size * math.prod(shape)
        ahead = self._source.ahead(count)
        if ahead == 1:
            return self._source.draw(kind, count).to(self._dtype).view(-1, *shape)
        waiting = self._blocks.setdefault((kind, shape), [])
        if not waiting:
            block = self._source.draw(kind, ahead * count).to(self._dtype)  # [C, ahead * count]
            draws = block.view(-1, ahead, count).transpose(0, 1).reshape(ahead, -1, *shape)  # [ahead, B, *shape]
            waiting.extend(reversed(draws.unbind(0)))
        return waiting.pop()


class _HostSource:
    """CPU: one SFC64 generator a chunk. Raw bits become uniforms in one vectorised pass over the whole stack."""

    def __init__(self, roots: list[np.random.SeedSequence]) -> None:
        self._bits = [np.random.SFC64(root) for root in roots]
        self._generators = [np.random.Generator(bits) for bits in self._bits]

    def ahead(self, count: int) -> int:
        """How many draws of `count` numbers to make at once."""
        return _AHEAD if count < _SMALL else 1

    def draw(self, kind: _Kind, count: int) -> Tensor:
        """`count` new numbers of each chunk, `[C, count]` float32."""
        values = torch.empty(len(self._bits), count)
        if kind == "normal":
            for row, generator in zip(values.numpy(), self._generators, strict=True):
                generator.standard_normal(dtype=np.float32, out=row)
            return values
        for row, bits in zip(values, self._bits, strict=True):
            words = bits.random_raw((count + 1) // 2)  # 64 bits each: two numbers
            integers = torch.from_numpy(words.view(np.int32))[:count]
            row.copy_(integers if kind == "symmetric" else integers >> 8)
        return values.mul_(2.0**-31) if kind == "symmetric" else values.mul_(2.0**-24).add_(0.5)


class _DeviceSource:
    """Accelerator: torch's own generator for each chunk. A launch for each chunk and draw would cost too much."""

    def __init__(self, roots: list[np.random.SeedSequence], device: torch.device) -> None:
        self._device = device
        self._generators = [torch.Generator(device) for _ in roots]
        for generator, root in zip(self._generators, roots, strict=True):
            generator.manual_seed(int(root.generate_state(1, np.uint64)[0] >> np.uint64(1)))

    def ahead(self, count: int) -> int:
        return min(1024, max(_AHEAD, 2**18 // count))

    def draw(self, kind: _Kind, count: int) -> Tensor:
        values = torch.empty(len(self._generators), count, device=self._device)
        for row, generator in zip(values, self._generators, strict=True):
            if kind == "normal":
                row.normal_(generator=generator)
            else:
                row.uniform_(-1.0 if kind == "symmetric" else 0.0, 1.0, generator=generator)
        return values
