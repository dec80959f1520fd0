"""RM, the restart mechanism (`prop-approx-rm`), and the test matrix T of `def-test-matrix`.

Where the change signal is set, everything that remembers the past becomes zero, and what identifies the round stays:
x·g for a gate g in {0, 1} is ReLU(x − Γ(1−g)) − ReLU(−x − Γ(1−g)) as long as |x| ≤ Γ. Together with the residual that
is x − (x − x·g): four hidden units an entry. The proposition
says O(1) in all. Zero must mean "nothing yet" for every entry
that is reset; a running minimum U is therefore kept as C − U with a ceiling C, so that zero is "no bound yet".

The text says that the first D−7 entries stay; the matrix itself resets four entries of every order and three shared
ones, 4(n+1)+3 in all, and so do we.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.theory.network import Layer, Mlp
from driftformer.theory.tokens import Layout

RESET_ORDER = ("window_sum", "rand", "lower_sum", "auxiliary")
RESET_SHARED = ("reward_sum", "auxiliary_sum", "bound")


def reset_places(layout: Layout) -> list[int]:
    """Coordinates that the test matrix sets to zero."""
    by_order = [layout.place(name, order) for order in layout.orders for name in RESET_ORDER]
    return by_order + [layout.place(name) for name in RESET_SHARED]


def reference(tokens: Tensor, gate: Tensor, layout: Layout) -> Tensor:
    """T·h: the listed entries times the gate `[B, T]`, 1 where all tests pass."""
    kept = tokens.clone()
    kept[..., reset_places(layout)] *= gate.unsqueeze(-1)
    return kept


def build(layout: Layout, gate: Tensor, largest: float) -> Layer:
    """An MLP that multiplies every entry that is reset by the gate that a row reads; |entries| ≤ `largest`."""
    closed = largest * (layout.unit("one") - gate)  # Γ(1 − g)
    first, second = [], torch.zeros(layout.width, 4 * len(reset_places(layout)), dtype=torch.double)
    for number, place in enumerate(reset_places(layout)):
        entry = torch.zeros(layout.width, dtype=torch.double)
        entry[place] = 1.0
        first += [entry - closed, -entry - closed, entry, -entry]
        second[place, 4 * number : 4 * number + 4] = torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=torch.double)
    return Layer(mlp=Mlp(torch.stack(first), second))
