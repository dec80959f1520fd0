"""TEST (`def-test`; lines 6 to 8 of Algorithm 2): the stationarity tests from ReLUs.

Test 1 fails where an instance of *some* order m ends and the average reward of its window exceeds U_t by 9ρ̂(2^m);
Test 2 fails where the block's average of r̃ − r exceeds 3ρ̂(τ). These are Algorithm 2's tests. The text's test1 is 0
"otherwise", so it would restart whenever no instance ends, and it looks at the active order alone; its test2 sums from
1 rather than from the start of the block.

Layer 1 updates U_t = min(U_{t−1}, r̃_t), as C − U_t = (C − U_{t−1}) + ReLU(C − r̃_t − (C − U_{t−1})). Layer 2 has an
indicator for each comparison. Layer 3 takes the AND with "ends", ReLU(a + b − 1), and layer 4 the OR, s − ReLU(s − 1).
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.theory.bounds import Rho
from driftformer.theory.constructions import indicator
from driftformer.theory.network import Coordinates, Layer, Mlp

ORDER_ENTRIES = ("average", "ends", "exceeds")
"""The average reward over each order's window, whether an instance of it ends; written: whether it exceeds Test 1."""
SHARED_ENTRIES = ("bound", "excess", "allowed", "auxiliary", "one", "test2", "fails")
"""U as C − U, the block's sum of r̃ − r, 3·τ·ρ̂(τ) for its τ rounds, r̃_t, the constant; written: Test 2, the verdict."""


def coordinates(n: int) -> Coordinates:
    """Where the numbers of one round stand, for orders 0..n."""
    return Coordinates(dict.fromkeys(ORDER_ENTRIES, n + 1) | dict.fromkeys(SHARED_ENTRIES, 1))


def margins(vectors: Tensor, n: int, rho_hat: Rho, ceiling: float) -> tuple[Tensor, Tensor]:
    """U_t `[B]`, and what each indicator sees `[B, n+2]`: Test 1 of every order, then Test 2."""
    at = coordinates(n)
    bound = torch.minimum(ceiling - vectors[:, at["bound"]], vectors[:, at["auxiliary"]])  # [B, 1]
    allowed = torch.tensor([9 * rho_hat(2**order) for order in range(n + 1)], dtype=torch.double)
    first = vectors[:, at["average"]] - (bound + allowed)
    return bound.squeeze(1), torch.cat([first, vectors[:, at["excess"]] - vectors[:, at["allowed"]]], dim=1)


def reference(vectors: Tensor, n: int, rho_hat: Rho, ceiling: float) -> tuple[Tensor, Tensor]:
    """U_t and whether a test fails, `[B]` each."""
    bound, margin = margins(vectors, n, rho_hat, ceiling)
    ends = vectors[:, coordinates(n)["ends"]] > 0.5
    return bound, ((margin[:, :-1] > 0) & ends).any(dim=1) | (margin[:, -1] > 0)


def build(n: int, rho_hat: Rho, ceiling: float, k: float) -> list[Layer]:
    """Four MLPs of 1, 2(n+2), n+2 and 1 hidden units."""
    read = coordinates(n).read
    one, bound, fails = read("one"), read("bound"), read("fails")  # [1, D] each
    update = Mlp(ceiling * one - read("auxiliary") - bound, bound.T)
    shifts = torch.tensor([[ceiling + 9 * rho_hat(2**order)] for order in range(n + 1)], dtype=torch.double)
    above = read("average") + bound - shifts * one  # average − U − 9ρ̂, with U = C − bound
    compared = torch.cat([above, read("excess") - read("allowed")])
    compare = indicator.build(compared, one[0], torch.cat([read("exceeds"), read("test2")]), k)
    either = torch.cat([read("exceeds") + read("ends") - one, read("test2")])
    count = Mlp(either, fails.T.expand(-1, len(either)))
    cap = Mlp(fails - one, -fails.T)
    return [Layer(mlp=mlp) for mlp in (update, compare, count, cap)]
