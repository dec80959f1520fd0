"""The attention of a policy's GPT-2: our kernels where they apply (a GPU with Triton), torch's elsewhere."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from driftformer.errors import brought_by
from driftformer.models.cache import GraphCache, KeyValues

with brought_by("policies"):
    from transformers import AttentionInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

NAME = "driftformer"

_LONGEST = 512
"""Tokens up to which our kernels are faster than torch's (`python -m benchmarks.kernels`)."""


@lru_cache
def have_kernels() -> bool:
    """Whether there is a GPU and Triton, which comes with torch's GPU builds."""
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return torch.cuda.is_available()


def attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    slots: KeyValues | None = None,
    **other: Any,
) -> tuple[Tensor, None]:
    """Attention of queries `[B, M, q, D/M]` to `[B, q, M, D/M]`, with the signature that transformers asks for."""
    if isinstance(slots, GraphCache):
        return slots.attend(query, key, value, scaling), None
    whole = attention_mask is None and query.shape[2] == key.shape[2] > 1
    if whole and query.shape[2] <= _LONGEST and query.is_cuda and query.dtype == torch.bfloat16 and have_kernels():
        from driftformer.models.kernels import causal_attention

        return causal_attention(query, key, value, scaling), None
    if query.shape[2] == 1 and attention_mask is None and not query.is_cuda:
        return _attend_one(query, key, value, scaling), None
    output: tuple[Tensor, None] = sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling)
    return output


def _attend_one(query: Tensor, key: Tensor, value: Tensor, scaling: float) -> Tensor:
    """One token over all filled slots on a CPU: two matrix-vector products, cheaper than torch's attention."""
    batch, heads, _, size = query.shape
    column = query.reshape(-1, 1, size).transpose(1, 2)  # [B·M, D/M, 1]
    scores = torch.bmm(key.flatten(0, 1), column).view(batch * heads, 1, -1)  # [B·M, 1, n]
    mixed = torch.bmm(scores.mul_(scaling).softmax(dim=2), value.flatten(0, 1))  # [B·M, 1, D/M]
    return mixed.view(batch, 1, heads, size)


AttentionInterface.register(NAME, attend)
