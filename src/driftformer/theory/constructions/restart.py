"""RM, the restart mechanism (`prop-approx-rm`), and the test matrix T of `def-test-matrix`.

Where the change signal is set, everything that remembers the past becomes zero, and what identifies the round stays.
x·g for a gate g in {0, 1} is ReLU(x − Γ(1−g)) − ReLU(−x − Γ(1−g)) as long as |x| ≤ Γ. Two more units cancel the
residual: four hidden units per entry, where the proposition has O(1) in all. Zero must mean "nothing yet" for every
entry that is reset; a running minimum U is therefore stored as C − U with a ceiling C, so that zero is "no bound yet".

The text says that the first D−7 entries are preserved. The matrix itself resets four entries of every order and three
shared ones, 4(n+1)+3 in all, and so do we.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.theory.network import Layer, Mlp
from driftformer.theory.tokens import Layout

RESET_ORDER = ("window_sum", "rand", "lower_sum", "auxiliary")
RESET_SHARED = ("reward_sum", "auxiliary_sum", "bound")


def reset_places(layout: Layout) -> list[int]:
    """The coordinates that the test matrix sets to zero."""
    by_order = [layout.place(name, order) for order in layout.orders for name in RESET_ORDER]
    return by_order + [layout.place(name) for name in RESET_SHARED]


def reference(tokens: Tensor, gate: Tensor, layout: Layout) -> Tensor:
    """T·h: the listed entries times the gate `[B, T]`, which is 1 where all tests pass."""
    kept = tokens.clone()
    kept[..., reset_places(layout)] *= gate.unsqueeze(-1)
    return kept


def build(layout: Layout, gate: Tensor, largest: float) -> Layer:
    """Multiply every entry that is reset by the gate that the row `gate` reads; |entries| ≤ `largest`."""
    closed = largest * (layout.unit("one") - gate)  # Γ(1 − g)
    entries = torch.eye(layout.width, dtype=torch.double)[reset_places(layout)]  # [m, D]
    first = torch.stack([entries - closed, -entries - closed, entries, -entries], dim=1)
    second = torch.stack([entries, -entries, -entries, entries], dim=1)
    return Layer(mlp=Mlp(first.flatten(0, 1), second.flatten(0, 1).T))
