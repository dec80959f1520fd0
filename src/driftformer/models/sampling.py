"""Sampling from logits with the random numbers of a stream."""

from __future__ import annotations

import torch
from torch import Tensor


def standard_gumbel(uniform: Tensor) -> Tensor:
    """Standard Gumbel numbers from uniform ones: argmax(logits + Gumbel) is a sample from the softmax."""
    return -torch.log(-torch.log(uniform.clamp(1e-7, 1 - 1e-7)))
