"""Attention for short sequences and small heads on a GPU, in Triton.

A policy reads a few hundred tokens with heads of 8 to 32 dimensions. Library kernels are made for thousands of tokens
and heads of 64 or more: here they take half of a training step, mostly on padding and masked tiles. These kernels take
the heads as they are. `causal_attention` is for training, forward and backward; `attend_cached` attends from one or two
new tokens to the filled slots of a cache and stores them there.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_LOG2E = 1.4426950408889634

_FORWARD = {"ROWS": 64, "COLUMNS": 32, "num_warps": 4, "num_stages": 3}
_BACKWARD = {"KEYS": 128, "QUERIES": 64, "num_warps": 4, "num_stages": 1}
_CACHED = {"COLUMNS": 32, "num_warps": 1}
"""Tile sizes: the fastest of those tried on an H200."""


@triton.jit
def _forward(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr,
    q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, o_b, o_h, o_t,
    tokens, heads, scale,
    SIZE: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """One block of queries of one head: softmax(qkᵀ·scale)·v with a running maximum."""
    which, block = tl.program_id(0), tl.program_id(1)
    b, h = (which // heads).to(tl.int64), (which % heads).to(tl.int64)
    row = block * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    d = tl.arange(0, PADDED)
    d_real = d < SIZE
    q_at = q_ptr + b * q_b + h * q_h + row[:, None] * q_t + d[None, :]
    q = tl.load(q_at, mask=(row < tokens)[:, None] & d_real[None, :], other=0.0)
    k_at = k_ptr + b * k_b + h * k_h + d[:, None]
    v_at = v_ptr + b * v_b + h * v_h + d[None, :]
    highest = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    sums = tl.zeros([ROWS, PADDED], tl.float32)
    unmasked = (block * ROWS) // COLUMNS * COLUMNS
    stop = tl.minimum((block + 1) * ROWS, tokens)
    for start in range(0, stop, COLUMNS):
        place = start + column
        there = place < tokens
        k = tl.load(k_at + place[None, :] * k_t, mask=there[None, :] & d_real[:, None], other=0.0)
        v = tl.load(v_at + place[:, None] * v_t, mask=there[:, None] & d_real[None, :], other=0.0)
        score = tl.dot(q, k) * scale
        if start >= unmasked:
            score = tl.where(row[:, None] >= place[None, :], score, float("-inf"))
        higher = tl.maximum(highest, tl.max(score, 1))
        weight = tl.exp2(score - higher[:, None])
        shrink = tl.exp2(highest - higher)
        total = total * shrink + tl.sum(weight, 1)
        sums = tl.dot(weight.to(v.dtype), v, sums * shrink[:, None])
        highest = higher
    o_at = o_ptr + b * o_b + h * o_h + row[:, None] * o_t + d[None, :]
    tl.store(o_at, (sums / total[:, None]).to(o_ptr.dtype.element_ty), mask=(row < tokens)[:, None] & d_real[None, :])
    tl.store(lse_ptr + which.to(tl.int64) * tokens + row, highest + tl.log2(total), mask=row < tokens)


@triton.jit
def _backward(
    q_ptr, k_ptr, v_ptr, o_ptr, do_ptr, lse_ptr, sums_ptr, dq_ptr, dk_ptr, dv_ptr,
    q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, o_b, o_h, o_t,
    tokens, heads, scale, plain_scale,
    SIZE: tl.constexpr, PADDED: tl.constexpr, KEYS: tl.constexpr, QUERIES: tl.constexpr,
):  # fmt: skip
    """One head: for each block of keys, all queries that see it. dk and dv stay in registers, dq is summed in memory.

    No other program touches this head's sums, and a barrier after each store makes them visible to all its threads.
    """
    which = tl.program_id(0)
    b, h = (which // heads).to(tl.int64), (which % heads).to(tl.int64)
    key, query = tl.arange(0, KEYS), tl.arange(0, QUERIES)
    d = tl.arange(0, PADDED)
    d_real = d < SIZE
    q_at, k_at, v_at = q_ptr + b * q_b + h * q_h, k_ptr + b * k_b + h * k_h, v_ptr + b * v_b + h * v_h
    out = b * o_b + h * o_h
    lse_at = lse_ptr + which.to(tl.int64) * tokens
    sums_at = sums_ptr + which.to(tl.int64) * tokens * PADDED
    for first in range(0, tokens, KEYS):
        column = first + key
        column_real = (column < tokens)[:, None] & d_real[None, :]
        k = tl.load(k_at + column[:, None] * k_t + d[None, :], mask=column_real, other=0.0)  # [KEYS, D]
        v = tl.load(v_at + column[:, None] * v_t + d[None, :], mask=column_real, other=0.0)
        dk = tl.zeros([KEYS, PADDED], tl.float32)
        dv = tl.zeros([KEYS, PADDED], tl.float32)
        for start in range(first // QUERIES * QUERIES, tokens, QUERIES):
            row = start + query
            row_real = (row < tokens)[:, None] & d_real[None, :]
            q = tl.load(q_at + row[:, None] * q_t + d[None, :], mask=row_real, other=0.0)  # [QUERIES, D]
            o = tl.load(o_ptr + out + row[:, None] * o_t + d[None, :], mask=row_real, other=0.0)
            do = tl.load(do_ptr + out + row[:, None] * o_t + d[None, :], mask=row_real, other=0.0)
            lse = tl.load(lse_at + row, mask=row < tokens, other=float("inf"))
            delta = tl.sum(o.to(tl.float32) * do.to(tl.float32), 1)  # [QUERIES]
            weight = tl.exp2(tl.dot(k, tl.trans(q)) * scale - lse[None, :])  # [KEYS, QUERIES]
            if start < first + KEYS:
                weight = tl.where(row[None, :] >= column[:, None], weight, 0.0)
            dv = tl.dot(weight.to(do.dtype), do, dv)
            slope = (weight * (tl.dot(v, tl.trans(do)) - delta[None, :])).to(q.dtype)
            dk = tl.dot(slope, q, dk)
            sum_at = sums_at + row[:, None] * PADDED + d[None, :]
            so_far = tl.load(sum_at, mask=(row < tokens)[:, None] & (first > 0), other=0.0)
            tl.store(sum_at, tl.dot(tl.trans(slope), k, so_far), mask=(row < tokens)[:, None])
            tl.debug_barrier()
        column_at = out + column[:, None] * o_t + d[None, :]
        tl.store(dk_ptr + column_at, (dk * plain_scale).to(dk_ptr.dtype.element_ty), mask=column_real)
        tl.store(dv_ptr + column_at, dv.to(dv_ptr.dtype.element_ty), mask=column_real)
    for start in range(0, tokens, QUERIES):
        row = start + query
        dq = tl.load(sums_at + row[:, None] * PADDED + d[None, :], mask=(row < tokens)[:, None], other=0.0)
        row_real = (row < tokens)[:, None] & d_real[None, :]
        row_at = out + row[:, None] * o_t + d[None, :]
        tl.store(dq_ptr + row_at, (dq * plain_scale).to(dq_ptr.dtype.element_ty), mask=row_real)


def _padded(size: int) -> int:
    return max(16, triton.next_power_of_2(size))


def _strides(*tensors: Tensor) -> list[int]:
    return [tensor.stride(axis) for tensor in tensors for axis in (0, 1, 2)]


@torch.library.custom_op("driftformer::causal_attention", mutates_args=())
def _causal_attention(q: Tensor, k: Tensor, v: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    batch, heads, tokens, size = q.shape
    out = torch.empty(batch, tokens, heads, size, device=q.device, dtype=q.dtype)
    lse = torch.empty(batch * heads, tokens, device=q.device, dtype=torch.float32)
    grid = (batch * heads, triton.cdiv(tokens, _FORWARD["ROWS"]))  # the length of the first axis is not limited
    _forward[grid](
        q, k, v, out, lse, *_strides(q, k, v, out.transpose(1, 2)), tokens, heads, scale * _LOG2E,
        SIZE=size, PADDED=_padded(size), **_FORWARD,
    )  # fmt: skip
    return out, lse


@_causal_attention.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    batch, heads, tokens, size = q.shape
    out = torch.empty(batch, tokens, heads, size, device=q.device, dtype=q.dtype)
    return out, torch.empty(batch * heads, tokens, device=q.device, dtype=torch.float32)


@torch.library.custom_op("driftformer::causal_attention_backward", mutates_args=())
def _causal_attention_backward(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, d_out: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    batch, heads, tokens, size = q.shape
    d_out = d_out.contiguous()
    sums = torch.empty(batch * heads, tokens, _padded(size), device=q.device, dtype=torch.float32)
    dq, dk, dv = (torch.empty_like(out) for _ in range(3))
    _backward[(batch * heads,)](
        q, k, v, out, d_out, lse, sums, dq, dk, dv,
        *_strides(q, k, v, out.transpose(1, 2)), tokens, heads, scale * _LOG2E, scale,
        SIZE=size, PADDED=_padded(size), **_BACKWARD,
    )  # fmt: skip
    return dq.transpose(1, 2), dk.transpose(1, 2), dv.transpose(1, 2)


@_causal_attention_backward.register_fake
def _(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, d_out: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    dq, dk, dv = (torch.empty_like(out).transpose(1, 2) for _ in range(3))
    return dq, dk, dv


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, scale = inputs
    out, lse = output
    ctx.save_for_backward(q, k, v, out, lse)
    ctx.scale = scale


def _differentiate(ctx: Any, d_out: Tensor, d_lse: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
    q, k, v, out, lse = ctx.saved_tensors
    dq, dk, dv = torch.ops.driftformer.causal_attention_backward(q, k, v, out, lse, d_out, ctx.scale)
    return dq, dk, dv, None


_causal_attention.register_autograd(_differentiate, setup_context=_remember)


def causal_attention(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Causal softmax attention: `[B, M, T, D/M]` each to `[B, T, M, D/M]`; the last dimension must be contiguous."""
    out: Tensor = torch.ops.driftformer.causal_attention(q, k, v, scale)[0]
    return out


@triton.jit
def _attend(
    q_ptr, k_ptr, v_ptr, keys_ptr, values_ptr, start_ptr, o_ptr,
    q_b, q_h, q_t, k_b, k_h, k_t, v_b, v_h, v_t, s_b, s_h, s_t, o_b, o_t,
    heads, scale,
    NEW: tl.constexpr, SIZE: tl.constexpr, PADDED: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """One head of one problem: the new tokens against all slots before them and against each other."""
    which = tl.program_id(0)
    b, h = (which // heads).to(tl.int64), (which % heads).to(tl.int64)
    filled = tl.load(start_ptr)
    d = tl.arange(0, PADDED)
    real = d < SIZE
    column = tl.arange(0, COLUMNS)
    keys_at = keys_ptr + b * s_b + h * s_h
    values_at = values_ptr + b * s_b + h * s_h
    for j in tl.static_range(NEW):
        q = tl.load(q_ptr + b * q_b + h * q_h + j * q_t + d, mask=real, other=0.0).to(tl.float32) * scale
        highest = tl.full([1], float("-inf"), tl.float32)
        total = tl.zeros([1], tl.float32)
        sums = tl.zeros([PADDED], tl.float32)
        for first in range(0, filled, COLUMNS):
            place = first + column
            there = (place < filled)[:, None] & real[None, :]
            keys = tl.load(keys_at + place[:, None] * s_t + d[None, :], mask=there, other=0.0).to(tl.float32)
            values = tl.load(values_at + place[:, None] * s_t + d[None, :], mask=there, other=0.0).to(tl.float32)
            scores = tl.where(place < filled, tl.sum(keys * q[None, :], 1), float("-inf"))
            higher = tl.maximum(highest, tl.max(scores, 0))
            weights = tl.exp2(scores - higher)
            shrink = tl.exp2(highest - higher)
            total = total * shrink + tl.sum(weights, 0)
            sums = sums * shrink + tl.sum(weights[:, None] * values, 0)
            highest = higher
        for i in tl.static_range(j + 1):
            k = tl.load(k_ptr + b * k_b + h * k_h + i * k_t + d, mask=real, other=0.0)
            v = tl.load(v_ptr + b * v_b + h * v_h + i * v_t + d, mask=real, other=0.0)
            score = tl.sum(k.to(tl.float32) * q, 0)
            above = tl.maximum(highest, score)
            weight = tl.exp2(score - above)
            less = tl.exp2(highest - above)
            total = total * less + weight
            sums = sums * less + weight * v.to(tl.float32)
            highest = above
            if i == j:
                tl.store(keys_at + (filled + i) * s_t + d, k, mask=real)
                tl.store(values_at + (filled + i) * s_t + d, v, mask=real)
        tl.store(o_ptr + b * o_b + j * o_t + h * SIZE + d, (sums / total).to(o_ptr.dtype.element_ty), mask=real)


def attend_cached(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor, start: Tensor, scale: float) -> Tensor:
    """Attention of new tokens `[B, M, q, D/M]` over cached `[B, M, S, D/M]` ones, to `[B, q, M, D/M]`.

    They are stored at `start`, a whole number in the device's memory, and after it: a captured graph can be replayed
    for every round.
    """
    batch, heads, new, size = q.shape
    out = torch.empty(batch, new, heads, size, device=q.device, dtype=q.dtype)
    _attend[(batch * heads,)](
        q, k, v, keys, values, start, out,
        *_strides(q, k, v, keys), out.stride(0), out.stride(1),
        heads, scale * _LOG2E,
        NEW=new, SIZE=size, PADDED=triton.next_power_of_2(size), **_CACHED,
    )  # fmt: skip
    return out
