"""Our attention against torch's on a GPU: how far from float64, and how long.

    python -m benchmarks.kernels

Forward and backward of causal attention in bfloat16, for the sequences and heads of the shipped policies and of the
policy of 16 heads and D=256; then one new token over a half-filled cache.
"""

from __future__ import annotations

from collections.abc import Callable

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
    "pointer form, T=1000": (102, 8, 1000, 32),
}
"""Trajectories, heads, tokens and the size of a head."""


def milliseconds(work: object) -> float:
    from triton.testing import do_bench

    return float(do_bench(work, warmup=10, rep=50, return_mode="median"))


def split(packed: Tensor, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    batch, tokens, _ = packed.shape
    query, key, value = (part.view(batch, tokens, heads, -1).transpose(1, 2) for part in torch.chunk(packed, 3, dim=2))
    return query, key, value


def error(found: Tensor, exact: Tensor) -> float:
    return float((found.detach().double() - exact.detach()).norm() / exact.detach().norm())


def _ours(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return causal_attention(query, key, value, query.shape[3] ** -0.5).transpose(1, 2)


def _torch(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return scaled_dot_product_attention(query, key, value, is_causal=True)


def timed(attention: Callable[[Tensor, Tensor, Tensor], Tensor], packed: Tensor, heads: int) -> str:
    """Milliseconds forward and backward."""
    query, key, value = (part.detach().clone().requires_grad_() for part in split(packed, heads))
    given = attention(query, key, value)
    slope = torch.randn_like(given)
    forward = milliseconds(lambda: attention(query, key, value))
    backward = milliseconds(lambda: torch.autograd.grad(given, (query, key, value), slope, retain_graph=True))
    return f"{forward:.3f} + {backward:.3f} ms"


def compare(title: str, batch: int, heads: int, tokens: int, size: int) -> None:
    packed = torch.randn(batch, tokens, 3 * heads * size, device="cuda", dtype=torch.bfloat16)
    few = packed[:4].clone()
    mine, exact = few.clone().requires_grad_(), few.double().requires_grad_()
    out, reference = _ours(*split(mine, heads)), _torch(*split(exact, heads))
    slope = torch.randn_like(out)
    (ours,) = torch.autograd.grad(out, mine, slope)
    (true,) = torch.autograd.grad(reference, exact, slope.double())
    errors = f"errors {error(out, reference):.4f}, {error(ours, true):.4f}"

    times = [timed(attention, packed, heads) for attention in (_ours, _torch)]
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
