"""Dynamic regret, gathered while a rollout goes on, in memory that does not grow with batch times horizon.

The suboptimality of round t is max_a R_t(a) − R_t(a_t), from exact values; its running sum is the cumulative
dynamic regret. For each chunk and round only the mean over problems and the sum of squared deviations are kept (which
merge without loss of precision), and for each problem its final regret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from driftformer.errors import InputError
from driftformer.randomness import CHUNK

Array = NDArray[np.float64]

CHECKED = 64
"""Rounds that are collected before they are summed up and checked: no wait for an accelerator in between."""


@dataclass(frozen=True)
class ChunkRegret:
    """The regret of one agent on the first `len(regret)` problems of one chunk."""

    regret: Array  # [n] cumulative dynamic regret after the last round
    suboptimality_mean: Array  # [T] over the n problems
    suboptimality_squares: Array  # [T] sum of squared deviations from that mean
    regret_mean: Array  # [T]
    regret_squares: Array  # [T]
    diagnostics: dict[str, Array] = field(default_factory=dict)  # [n] each: what the agent tells of itself


class RegretRecorder:
    """Takes the suboptimality `[B]` of each round and yields one `ChunkRegret` for each chunk of the stack."""

    def __init__(self, counts: list[int], horizon: int) -> None:
        self._counts = counts
        self._curves = np.empty((len(counts), 4, horizon))
        self._regret = [np.zeros(count) for count in counts]
        self._block: Tensor | None = None  # [CHECKED, B], one piece of memory for the whole rollout
        self._earned: Tensor | None = None  # [B] the sum of rewards, to see whether they stay finite
        self._filled = 0
        self._seen = 0

    def add(self, suboptimality: Tensor, reward: Tensor) -> None:
        if self._block is None or self._earned is None:
            self._block, self._earned = (
                suboptimality.new_empty(CHECKED, suboptimality.shape[0]),
                torch.zeros_like(reward),
            )
        self._earned += reward
        self._block[self._filled] = suboptimality
        self._filled += 1
        if self._filled == CHECKED:
            self._flush(self._block)

    def _flush(self, filled: Tensor) -> None:
        rounds = len(filled)
        block = filled.cpu().numpy().astype(np.float64)  # [rounds, B]
        bad = ~np.isfinite(block).all(axis=1)
        if bad.any():
            raise InputError(
                f"values are NaN or infinite in round {self._seen + int(bad.argmax()) + 1}; the environment, and its "
                "drift, must keep them finite"
            )
        if self._earned is not None and not bool(self._earned.isfinite().all()):
            raise InputError(
                f"rewards are NaN or infinite by round {self._seen + rounds}; give a smaller noise or a finite drift"
            )
        for chunk, count in enumerate(self._counts):
            gaps = np.ascontiguousarray(block[:, chunk * CHUNK : chunk * CHUNK + count])  # [rounds, n]
            cumulative = self._regret[chunk] + np.cumsum(gaps, axis=0)
            now = slice(self._seen, self._seen + rounds)
            for row, values in ((0, gaps), (2, cumulative)):
                mean = values.mean(axis=1)
                self._curves[chunk, row, now] = mean
                self._curves[chunk, row + 1, now] = np.square(values - mean[:, None]).sum(axis=1)
            self._regret[chunk] = cumulative[-1]
        self._seen += rounds
        self._filled = 0

    def finish(self, diagnostics: Mapping[str, Tensor] | None = None) -> list[ChunkRegret]:
        """One regret for each chunk, with what the agent tells of each problem, `[B]`."""
        if self._block is not None and self._filled:
            self._flush(self._block[: self._filled])
        told = {name: value.double().cpu().numpy() for name, value in (diagnostics or {}).items()}
        chunks = []
        for place, count in enumerate(self._counts):
            rows = slice(place * CHUNK, place * CHUNK + count)
            own = {name: value[rows] for name, value in told.items()}
            suboptimality, suboptimality_squares, regret, regret_squares = self._curves[place]
            chunks.append(
                ChunkRegret(self._regret[place], suboptimality, suboptimality_squares, regret, regret_squares, own)
            )
        return chunks
