"""The transformer of Section 2.2: attention with ReLU instead of softmax, normalised by 1/i, and no layer norm.

Attn(H)_i = h_i + (1/i)·Σ_m Σ_{j≤i} ReLU(⟨Q_m h_i, K_m h_j⟩)·V_m h_j, then h + W_2·ReLU(W_1 h), L times. Q_m and K_m map
to `head_size` dimensions, and V_m has that rank: `width / heads` in trained models, whatever a construction needs in
`theory/`, where weights are written out one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from driftformer.models.cache import KeyValues


class ReLULayer(nn.Module):
    """One attention layer and one MLP, without biases."""

    def __init__(
        self, width: int, heads: int, index: int, head_size: int | None = None, hidden: int | None = None
    ) -> None:
        super().__init__()
        self.heads, self.index = heads, index
        inner = heads * (width // heads if head_size is None else head_size)
        hidden = 4 * width if hidden is None else hidden
        self.queries_keys_values = nn.Linear(width, 3 * inner, bias=False)
        self.out = nn.Linear(inner, width, bias=False)
        self.first = nn.Linear(width, hidden, bias=False)
        self.second = nn.Linear(hidden, width, bias=False)

    def project(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of tokens `[B, q, D]`, each `[B, M, q, head size]`."""
        parts = self.queries_keys_values(hidden).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return parts[0], parts[1], parts[2]

    def forward(self, hidden: Tensor, visible: Tensor, cache: KeyValues | None) -> Tensor:
        """`hidden` is `[B, q, D]`; `visible` `[B or 1, 1, q, n]` tells which of the n tokens so far each one sees."""
        query, key, value = self.project(hidden)
        if cache is not None:
            key, value = cache.update(key, value, self.index)
        scores = torch.relu(query @ key.transpose(2, 3)) * visible  # [B, M, q, n]
        seen = visible.sum(3, keepdim=True)  # i, the number of tokens up to this one
        attended = ((scores / seen) @ value).transpose(1, 2).flatten(2)  # [B, q, M · head size]
        hidden = hidden + self.out(attended)
        mlp: Tensor = self.second(torch.relu(self.first(hidden)))
        return hidden + mlp


def causal(queries: int, keys: int, device: torch.device) -> Tensor:
    """Which of all tokens each of the last ones sees, `[1, 1, q, n]`."""
    ones = torch.ones(queries, keys, dtype=torch.bool, device=device)
    return ones.tril(keys - queries)[None, None]


class ReLUTransformer(nn.Module):
    """TF_θ with L layers."""

    def __init__(self, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(ReLULayer(width, heads, index) for index in range(layers))

    def forward(self, hidden: Tensor, visible: Tensor, cache: KeyValues | None) -> Tensor:
        for layer in self.layers:
            hidden = layer(hidden, visible, cache)
        return hidden
