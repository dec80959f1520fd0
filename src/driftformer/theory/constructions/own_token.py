"""A head through which every token attends to itself alone: the common part of holding numbers, σ1 and σ2."""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.theory.network import Head
from driftformer.theory.tokens import Layout


def attend_to_itself(layout: Layout, weight: Tensor, value: Tensor) -> Head:
    """Add ⟨weight, h_t⟩·V h_t to token t, for a weight ≥ 0: the score is t·⟨weight, h_k⟩ − Γ(t − k)."""
    one, now, slope = layout.unit("one"), layout.unit("t"), layout.slope
    return Head(torch.stack([now, now, one]), torch.stack([weight, -slope * one, slope * now]), value)
