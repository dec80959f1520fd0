"""Ridge regression in the forward pass of a transformer with ReLU attention (after Lin et al. 2024).

With A = λI + Σ x_j x_jᵀ over the rounds that count, token t solves (A/t)·v = c, or applies another function of A/t,
for several right-hand sides c at once. An attention layer with its 1/t computes −(A/t)·v: two heads per unknown v give
(1/t)·Σ x_j⟨x_j, v⟩, since ReLU(s) − ReLU(−s) = s, and one head of the token with itself adds λ/t. An MLP then takes the
step of a recurrence of Chebyshev, whose coefficients are constants; the number of steps grows with the root of the
condition number, where that of plain gradient steps grows with the number itself.

Which rounds count is a pair of rows whose product is 0 for those rounds, and so negative for all others that the ReLU
of every head is shut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.theory.network import Coordinates, Head, Mlp, linear, with_itself


@dataclass(frozen=True)
class Seat:
    """Where a base network works: the entries of a token, the largest t, and which rounds count."""

    at: Coordinates
    tokens: int
    counts: tuple[Tensor, Tensor]  # rows [q, D] of the query and of the key
    largest: float  # Γ, above every product of an unknown and features

    def read(self, name: str, times: float = 1.0) -> Tensor:
        return self.at.read(name, times)

    def itself(self, left: Tensor, right: Tensor, value: Tensor) -> Head:
        """A head of the token with itself."""
        return with_itself(self.read("one")[0], self.read("t")[0], self.largest, (left, right), value)

    def others(self, left: Tensor, right: Tensor, value: Tensor) -> Head:
        """A head with all rounds that count."""
        return Head(torch.cat([left, self.counts[0]]), torch.cat([right, self.counts[1]]), value)


ENTRIES = ("one", "t", "reward", "x")
"""What a token must have: the constant, its number, and the outcome of a round, zero where there is none."""


def everywhere(at: Coordinates, d: int, tokens: int, ridge: float) -> Seat:
    """A seat where all rounds count."""
    nothing = torch.zeros(0, at.width, dtype=torch.double)
    return Seat(at, tokens, (nothing, nothing), largest_product(d, tokens, ridge))


def largest_product(d: int, tokens: int, ridge: float) -> float:
    """Above |⟨v, x⟩| for features in [−1, 1]^d: unknowns grow to t·d/λ, and the recurrence overshoots a little."""
    return 16.0 * tokens * (d + 1) / ridge


def spectrum(ridge: float, d: int, tokens: int) -> tuple[float, float]:
    """Where the eigenvalues of A/t lie, for features in [−1, 1]^d: between λ/T and λ + d."""
    return ridge / tokens, ridge + d


def steps_for(error: float, ridge: float, d: int, tokens: int) -> int:
    """So many steps of Chebyshev's recurrence make an error that much smaller."""
    low, high = spectrum(ridge, d, tokens)
    root = math.sqrt(high / low)
    return math.ceil(math.log(2 / error) / math.log((root + 1) / (root - 1)))


def chebyshev(low: float, high: float, steps: int) -> list[tuple[float, float]]:
    """β and α of each step that solves a linear system with eigenvalues between `low` and `high`."""
    middle, half = (high + low) / 2, (high - low) / 2
    found: list[tuple[float, float]] = []
    alpha = 1 / middle
    for step in range(steps):
        beta = 0.0
        if step:
            beta = (half * alpha) ** 2 / (2 if step == 1 else 4)
            alpha = 1 / (middle - beta / alpha)
        found.append((beta, alpha))
    return found


def moment(seat: Seat, target: str) -> list[Head]:
    """Write Σ r_j x_j of the rounds that count: the score is ±t·r_j, whose t undoes the 1/t."""
    value = seat.at.move("x", target)
    return [seat.others(seat.read("t", sign), seat.read("reward"), sign * value) for sign in (1.0, -1.0)]


def products(seat: Seat, unknowns: Mapping[str, str], ridge: float) -> list[Head]:
    """Write −(A/t)·v of every unknown v to the entry it names."""
    heads: list[Head] = []
    for unknown, target in unknowns.items():
        value = seat.at.move("x", target, -1.0)
        heads += [seat.others(seat.read(unknown, sign), seat.read("x"), sign * value) for sign in (1.0, -1.0)]
    total = torch.stack([seat.at.move(unknown, target, -ridge) for unknown, target in unknowns.items()]).sum(dim=0)
    return [*heads, seat.itself(seat.read("one"), seat.read("one"), total)]


@dataclass(frozen=True)
class System:
    """One linear system: the entries of the right-hand side, the solution, the direction and −(A/t)·v."""

    right: str
    solution: str
    direction: str
    product: str


def advance(at: Coordinates, systems: Sequence[System], beta: float, alpha: float) -> Mlp:
    """p ← c + g + βp, v ← v + αp, g ← 0: a linear map."""
    change = torch.zeros(at.width, at.width, dtype=torch.double)
    for one in systems:
        direction = at.read(one.right) + at.read(one.product) + at.read(one.direction, beta)
        change += at.overwrite(one.direction, direction) + alpha * at.read(one.solution).T @ direction
        change -= at.move(one.product, one.product)
    return linear(change)
