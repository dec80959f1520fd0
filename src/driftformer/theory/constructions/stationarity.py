"""TEST (`def-test`; lines 6 to 8 of Algorithm 2): the stationarity tests from ReLUs.

One round's numbers stand in a vector, in this order: for each order m the average reward of its window, whether an
instance of it ends, then U as C − U, the sum of r̃ − r over the block, 3·τ·ρ̂(τ) for its τ rounds, the new auxiliary
value, and the constant.

Test 1 fails where an instance of *some* order m ends and the average reward of its window exceeds U_t by 9ρ̂(2^m); Test
2 where the block's average of r̃ − r reaches 3ρ̂(τ). The text's test1 is 0 "otherwise", so it would restart whenever no
instance ends, and looks at the active order alone; its test2 sums from 1 rather than from the block's beginning. These
are Algorithm 2's.

Layer 1 updates U_t = min(U_{t−1}, r̃_t), as C − U_t = (C − U_{t−1}) + ReLU(C − r̃_t − (C − U_{t−1})). Layer 2 has an
indicator for each comparison, layer 3 the AND with "ends" and the OR of all: ReLU(a + b − 1), and s − ReLU(s − 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.theory.constructions import indicator
from driftformer.theory.network import Layer, Mlp


@dataclass(frozen=True)
class Entries:
    """Where everything stands, for orders 0..n; `exceeds` and `fails` are written by the network."""

    n: int

    def average(self, order: int) -> int:
        return order

    def ends(self, order: int) -> int:
        return self.n + 1 + order

    def exceeds(self, order: int) -> int:
        return 2 * (self.n + 1) + order

    @property
    def _shared(self) -> int:
        return 3 * (self.n + 1)

    @property
    def bound(self) -> int:
        return self._shared

    @property
    def hoped(self) -> int:
        return self._shared + 1

    @property
    def allowed(self) -> int:
        return self._shared + 2

    @property
    def auxiliary(self) -> int:
        return self._shared + 3

    @property
    def one(self) -> int:
        return self._shared + 4

    @property
    def second(self) -> int:
        return self._shared + 5

    @property
    def fails(self) -> int:
        return self._shared + 6

    @property
    def width(self) -> int:
        return self._shared + 7

    def row(self, **weights: float) -> Tensor:
        """A row that reads shared entries, each times a number."""
        read = torch.zeros(self.width, dtype=torch.double)
        for name, weight in weights.items():
            read[getattr(self, name)] = weight
        return read


RhoHat = Callable[[int], float]


def reference(vectors: Tensor, entries: Entries, rho_hat: RhoHat, ceiling: float) -> tuple[Tensor, Tensor]:
    """U_t and whether a test fails, `[B]` each, plainly."""
    bound = torch.minimum(ceiling - vectors[:, entries.bound], vectors[:, entries.auxiliary])
    fails = vectors[:, entries.hoped] > vectors[:, entries.allowed]
    for order in range(entries.n + 1):
        exceeds = vectors[:, entries.average(order)] > bound + 9 * rho_hat(2**order)
        fails = fails | (exceeds & (vectors[:, entries.ends(order)] > 0.5))
    return bound, fails


def margins(vectors: Tensor, entries: Entries, rho_hat: RhoHat, ceiling: float) -> Tensor:
    """What each comparison's indicator sees, `[B, n+2]`: inside the ramp where it is between 0 and 1/k."""
    bound, _ = reference(vectors, entries, rho_hat, ceiling)
    firsts = [vectors[:, entries.average(m)] - bound - 9 * rho_hat(2**m) for m in range(entries.n + 1)]
    return torch.stack([*firsts, vectors[:, entries.hoped] - vectors[:, entries.allowed]], dim=1)


def build(entries: Entries, rho_hat: RhoHat, ceiling: float, k: float) -> list[Layer]:
    """Four MLPs of 1, 2(n+2), n+2 and 1 hidden units."""
    one, orders = entries.row(one=1.0), range(entries.n + 1)
    update = entries.row(one=ceiling, auxiliary=-1.0, bound=-1.0).unsqueeze(0)
    compare = []
    for order in orders:  # average − U − 9ρ̂, with U = C − bound
        row = entries.row(bound=1.0, one=-ceiling - 9 * rho_hat(2**order))
        row[entries.average(order)] = 1.0
        compare.append(row)
    compare.append(entries.row(hoped=1.0, allowed=-1.0))
    places = [*(entries.exceeds(order) for order in orders), entries.second]
    return [
        Layer(mlp=Mlp(update, _column(entries.width, [(entries.bound, 1.0)]))),
        Layer(mlp=indicator.build(compare, one, places, k)),
        *_gates(entries),
    ]


def _gates(entries: Entries) -> list[Layer]:
    """`fails` = OR(second, AND(exceeds_m, ends_m) for every m)."""
    rows = []
    for order in range(entries.n + 1):
        both = entries.row(one=-1.0)
        both[entries.exceeds(order)] = both[entries.ends(order)] = 1.0
        rows.append(both)
    rows.append(entries.row(second=1.0))
    total = Mlp(torch.stack(rows), _row_of(entries.width, entries.fails, [1.0] * len(rows)))
    above = entries.row(fails=1.0, one=-1.0).unsqueeze(0)
    return [Layer(mlp=total), Layer(mlp=Mlp(above, _column(entries.width, [(entries.fails, -1.0)])))]


def _column(width: int, values: list[tuple[int, float]]) -> Tensor:
    column = torch.zeros(width, 1, dtype=torch.double)
    for place, value in values:
        column[place] = value
    return column


def _row_of(width: int, place: int, values: list[float]) -> Tensor:
    matrix = torch.zeros(width, len(values), dtype=torch.double)
    matrix[place] = torch.tensor(values, dtype=torch.double)
    return matrix
