"""What to do when a GPU's memory is full: measure a small step, and say how large a batch would fit."""

from __future__ import annotations

import torch
from torch import nn

from driftformer.models.configuration import PolicyConfig

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
