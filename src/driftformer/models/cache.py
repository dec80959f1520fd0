"""Keys and values of the tokens that a policy has seen, one row per problem.

Every tensor has a leading batch dimension, so that single rows can be taken out, put back and reset, as MASTER does
with the state of any agent. Attention reads only the filled slots, not the whole horizon.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from driftformer.models.configuration import PolicyConfig


class KeyValues(Protocol):
    """What an attention layer needs from a cache."""

    def update(self, keys: Tensor, values: Tensor, layer_idx: int) -> tuple[Tensor, Tensor]:
        """Store the keys and values `[B, M, q, D/M]` of new tokens and return those of all tokens so far."""
        ...


@dataclass(frozen=True)
class Slots:
    """Space for the keys and values of each layer, `[B, heads, tokens, D/M]`, one row per problem."""

    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]


def empty_slots(config: PolicyConfig, batch: int, tokens: int, device: torch.device, dtype: torch.dtype) -> Slots:
    """Empty slots for so many tokens of each problem."""
    shape = (batch, config.heads, tokens, config.head_size)
    zeros = [torch.zeros(shape, device=device, dtype=dtype) for _ in range(2 * config.layers)]
    return Slots(tuple(zeros[: config.layers]), tuple(zeros[config.layers :]))


class TogetherCache:
    """All rows are at the same token: new tokens go to slots `start`, `start + 1`, …"""

    def __init__(self, slots: Slots, start: int) -> None:
        self._slots, self._start = slots, start

    def update(self, keys: Tensor, values: Tensor, layer_idx: int) -> tuple[Tensor, Tensor]:
        stop = self._start + keys.shape[2]
        held = self._slots.keys[layer_idx][:, :, :stop], self._slots.values[layer_idx][:, :, :stop]
        held[0][:, :, self._start :] = keys
        held[1][:, :, self._start :] = values
        return held


class ApartCache:
    """Each row is at its own token: new tokens go to the slots `places` `[B, q]`."""

    def __init__(self, slots: Slots, places: Tensor, filled: int) -> None:
        self._slots, self._filled = slots, filled
        self._places = places[:, None, :, None]  # [B, 1, q, 1]

    def update(self, keys: Tensor, values: Tensor, layer_idx: int) -> tuple[Tensor, Tensor]:
        stop, places = self._filled, self._places.expand_as(keys)
        held = self._slots.keys[layer_idx][:, :, :stop], self._slots.values[layer_idx][:, :, :stop]
        return held[0].scatter_(2, places, keys), held[1].scatter_(2, places, values)


class GraphCache:
    """All rows are at the same token, whose slot `start` is in device memory: for the rounds of a captured graph."""

    def __init__(self, slots: Slots, start: Tensor) -> None:
        self._slots, self._start, self._layer = slots, start, 0

    def update(self, keys: Tensor, values: Tensor, layer_idx: int) -> tuple[Tensor, Tensor]:
        """Return the new ones as they are; `attend`, which follows at once, stores them."""
        self._layer = layer_idx
        return keys, values

    def attend(self, query: Tensor, keys: Tensor, values: Tensor, scale: float) -> Tensor:
        from driftformer.models.kernels import attend_cached

        held = self._slots.keys[self._layer], self._slots.values[self._layer]
        return attend_cached(query, keys, values, *held, self._start, scale)
