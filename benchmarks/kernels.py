"""Our attention against torch's on a GPU: how far from float64, and how long.

    python -m benchmarks.kernels

Forward and backward of causal attention in bfloat16, for the sequences and heads of the shipped policies and of the policy
of 16 heads and D=256; then one new token over a half-filled cache.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from driftformer.models.kernels import attend_cached, causal_attention

SHAPES = {
    "paper form, D=256": (256, 16, 399, 16),
    "pointer form, 16 heads, D=256": (512, 16, 200, 16),
    "high": (256, 16, 399, 8),
    "low": (51, 16, 1999, 8),
    "cosine": (512, 8, 200, 32),
    "drift, T=1000": (102, 8, 1000, 32),
}
"""Trajectories, heads, tokens and the size of a head."""


def milliseconds(work: object) -> float:
    from triton.testing import do_bench

    return float(do_bench(work, warmup=10, rep=50, return_mode="median"))


def split(packed: Tensor, heads: int) -> list[Tensor]:
    batch, tokens, _ = packed.shape
    return [part.view(batch, tokens, heads, -1).transpose(1, 2) for part in packed.chunk(3, dim=2)]


def error(found: Tensor, exact: Tensor) -> float:
    return float((found.detach().double() - exact.detach()).norm() / exact.detach().norm())


def compare(title: str, batch: int, heads: int, tokens: int, size: int) -> None:
    packed = torch.randn(batch, tokens, 3 * heads * size, device="cuda", dtype=torch.bfloat16)
    few = packed[:4].clone()
    mine, exact = few.clone().requires_grad_(), few.double().requires_grad_()
    out = causal_attention(*split(mine, heads), size**-0.5)
    reference = scaled_dot_product_attention(*split(exact, heads), is_causal=True).transpose(1, 2)
    slope = torch.randn_like(out)
    out.backward(slope)
    reference.backward(slope.double())
    assert mine.grad is not None
    assert exact.grad is not None
    errors = f"errors {error(out, reference):.4f}, {error(mine.grad, exact.grad):.4f}"

    times = []
    for attention in (
        lambda q, k, v: causal_attention(q, k, v, size**-0.5).transpose(1, 2),
        lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True),
    ):
        inputs = [part.detach().clone().requires_grad_() for part in split(packed, heads)]
        given = attention(*inputs)
        slope = torch.randn_like(given)
        forward = milliseconds(lambda: attention(*inputs))  # noqa: B023
        backward = milliseconds(lambda: torch.autograd.grad(given, inputs, slope, retain_graph=True))  # noqa: B023
        times.append(f"{forward:.3f} + {backward:.3f} ms")
    print(f"{title}: ours {times[0]}, torch {times[1]}; {errors}", flush=True)


def compare_cached(title: str, batch: int, heads: int, tokens: int, size: int) -> None:
    filled = tokens // 2
    keys, values = torch.randn(2, batch, heads, tokens, size, device="cuda", dtype=torch.bfloat16)
    query, key, value = split(torch.randn(batch, 1, 3 * heads * size, device="cuda", dtype=torch.bfloat16), heads)
    start = torch.tensor([filled], device="cuda", dtype=torch.int32)
    ours = milliseconds(lambda: attend_cached(query, key, value, keys, values, start, size**-0.5))
    held = keys[:, :, : filled + 1], values[:, :, : filled + 1]
    theirs = milliseconds(lambda: scaled_dot_product_attention(query, *held))
    print(f"{title}, one token over {filled}: ours {ours:.3f} ms, torch {theirs:.3f} ms", flush=True)


def main() -> None:
    torch.manual_seed(0)
    for title, shape in SHAPES.items():
        compare(title, *shape)
    for title in ("high", "cosine"):
        _, heads, tokens, size = SHAPES[title]
        compare_cached(title, 2048, heads, tokens, size)


if __name__ == "__main__":
    main()
