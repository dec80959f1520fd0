"""How fast a training goes, in tokens and floating-point operations, and how large a batch a GPU's memory holds."""

from __future__ import annotations

import torch
from torch import nn

from driftformer.models.configuration import PolicyConfig


def training_flops_per_token(config: PolicyConfig, tokens: int) -> float:
    """Operations of the model for one token of a trajectory, forward and backward, recomputation not counted.

    Six for each weight of the blocks, and twelve for each pair of a token with one that it sees, of which causality
    leaves half. Embeddings and heads, a few percent, are left out.
    """
    weights = 12 * config.layers * config.width**2
    pairs = config.layers * config.width * tokens / 2
    return 6 * weights + 12 * pairs


class Meter:
    """Counts what was done since it was last read."""

    def __init__(self) -> None:
        self._tokens, self._flops, self._seconds = 0, 0.0, 0.0

    def add(self, tokens: int, flops: float, seconds: float) -> None:
        self._tokens += tokens
        self._flops += flops
        self._seconds += seconds

    def read(self) -> tuple[float, float]:
        """Tokens per second and TFLOP/s, and begin anew."""
        seconds = max(self._seconds, 1e-9)
        speed = self._tokens / seconds, self._flops / seconds / 1e12
        self._tokens, self._flops, self._seconds = 0, 0.0, 0.0
        return speed


_SPARE = 0.8
"""Share of the free memory to plan with: allocators and libraries want some of it."""


def fitting_tokens(model: nn.Module, config: PolicyConfig, horizon: int) -> int:
    """Tokens of the largest step that would fit into the device's free memory, from one trajectory's."""
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    device = next(model.parameters()).device
    features = torch.zeros(1, horizon, config.arms, config.dim, device=device)
    arms = torch.zeros(1, horizon, dtype=torch.long, device=device)
    model(features, arms, torch.zeros(1, horizon, device=device)).float().sum().backward()
    used = max(1, torch.cuda.max_memory_allocated() - before)
    return int(_SPARE * free / used) * config.tokens_in(horizon)
