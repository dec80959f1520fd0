"""Where w* comes from."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from driftformer.randomness import Stream

PriorName = Literal["uniform", "normal", "sphere"]


def draw(prior: PriorName, dim: int, rng: Stream) -> Tensor:
    """One w* for every problem, `[B, d]`: Unif[0,1]^d (the paper's), N(0, I), or uniform on the unit sphere."""
    if prior == "uniform":
        return rng.uniform(dim)
    w = rng.normal(dim)
    return w if prior == "normal" else w / w.norm(dim=1, keepdim=True)


def moments(prior: PriorName, dim: int) -> tuple[float, float]:
    """Mean and variance of each coordinate of w*."""
    return {"uniform": (0.5, 1 / 12), "normal": (0.0, 1.0), "sphere": (0.0, 1 / dim)}[prior]
