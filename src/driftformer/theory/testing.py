"""What follows a round, by weights: sums of rewards, TEST (`def-test`; lines 6 to 8 of Algorithm 2), and RM.

The functions `exact_…` are what the weights must compute.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.theory.bounds import Rho
from driftformer.theory.network import Coordinates, Head, Layer, Mlp, beside, gated, indicators, linear
from driftformer.theory.tokens import Layout

ORDER_ENTRIES = ("average", "ends", "exceeds")
"""The average reward over each order's window, whether an instance of it ends; written: whether it exceeds Test 1."""
SHARED_ENTRIES = ("bound", "excess", "allowed", "auxiliary", "one", "test2", "fails")
"""U as C − U, the block's sum of r̃ − r, 3·τ·ρ̂(τ) for its τ rounds, r̃_t, the constant; written: Test 2, the verdict."""
RESET_ORDER = ("window_sum", "rand", "lower_sum", "auxiliary")
RESET_SHARED = ("reward_sum", "auxiliary_sum", "bound")
"""What a restart sets to zero: of every order, and shared."""


def exact_sums(values: Tensor, window: int | None = None) -> Tensor:
    """The sums of values `[B, T]` up to each round: of all of them, or of the last `window`."""
    total = values.cumsum(dim=1)
    if window is None or window >= values.shape[1]:
        return total
    return total - torch.cat([torch.zeros_like(values[:, :window]), total[:, :-window]], dim=1)


def sums(layout: Layout) -> Layer:
    """Write the sums of `eq-input1` and `eq-input2`: of rewards and auxiliary values so far, and every order's window.

    A head whose score is t for every earlier round adds Σ_{k≤t} V h_k, since t undoes the 1/t. For the last 2^i rounds,
    with x = k − (t − 2^i), the difference ReLU(x) − ReLU(x − 1) is 1 for k > t − 2^i and 0 before: two heads, exact on
    integers. Their scores contain t·k, t² and t·2^i, so t² is in the input. 2(n+1)+2 heads in all.
    """
    one, now, squared, reward = (layout.unit(name) for name in ("one", "t", "t_squared", "reward"))
    everything = (now.unsqueeze(0), one.unsqueeze(0))
    heads = [
        Head(*everything, torch.outer(layout.unit("reward_sum"), reward)),
        Head(*everything, torch.outer(layout.unit("auxiliary_sum"), layout.unit("active_auxiliary"))),
    ]
    for order in layout.orders:
        value = torch.outer(layout.unit("window_sum", order), reward)
        key = torch.stack([now, one, one])
        for shift, sign in ((0.0, 1.0), (-1.0, -1.0)):
            query = torch.stack([now, -squared, (2**order + shift) * now])
            heads.append(Head(query, key, sign * value))
    return Layer(heads)


def coordinates(n: int) -> Coordinates:
    """Where the numbers of one round stand that the tests read and write, for orders 0..n."""
    return Coordinates(dict.fromkeys(ORDER_ENTRIES, n + 1) | dict.fromkeys(SHARED_ENTRIES, 1))


def margins(vectors: Tensor, n: int, rho_hat: Rho, ceiling: float) -> tuple[Tensor, Tensor]:
    """U_t `[B]`, and what each indicator sees `[B, n+2]`: Test 1 of every order, then Test 2."""
    at = coordinates(n)
    bound = torch.minimum(ceiling - vectors[:, at["bound"]], vectors[:, at["auxiliary"]])  # [B, 1]
    allowed = torch.tensor([9 * rho_hat(2**order) for order in range(n + 1)], dtype=torch.double)
    first = vectors[:, at["average"]] - (bound + allowed)
    return bound.squeeze(1), torch.cat([first, vectors[:, at["excess"]] - vectors[:, at["allowed"]]], dim=1)


def exact_tests(vectors: Tensor, n: int, rho_hat: Rho, ceiling: float) -> tuple[Tensor, Tensor]:
    """U_t and whether a test fails, `[B]` each."""
    bound, margin = margins(vectors, n, rho_hat, ceiling)
    ends = vectors[:, coordinates(n)["ends"]] > 0.5
    return bound, ((margin[:, :-1] > 0) & ends).any(dim=1) | (margin[:, -1] > 0)


def tests(n: int, rho_hat: Rho, ceiling: float, k: float) -> list[Layer]:
    """The stationarity tests of Algorithm 2 from ReLUs: four MLPs of 1, 2(n+2), n+2 and 1 hidden units.

    Test 1 fails where an instance of *some* order m ends and the average reward of its window exceeds U_t by 9ρ̂(2^m);
    Test 2 fails where the block's average of r̃ − r exceeds 3ρ̂(τ). (The text's test1 is 0 "otherwise", so it would
    restart whenever no instance ends, and it looks at the active order alone; its test2 sums from 1 rather than from
    the start of the block.)

    Layer 1 updates U_t = min(U_{t−1}, r̃_t), as C − U_t = (C − U_{t−1}) + ReLU(C − r̃_t − (C − U_{t−1})). Layer 2 has
    an indicator for each comparison. Layer 3 takes the AND with "ends", ReLU(a + b − 1), and layer 4 the OR, s − ReLU(s
    − 1).
    """
    read = coordinates(n).read
    one, bound, fails = read("one"), read("bound"), read("fails")  # [1, D] each
    update = Mlp(ceiling * one - read("auxiliary") - bound, bound.T)
    shifts = torch.tensor([[ceiling + 9 * rho_hat(2**order)] for order in range(n + 1)], dtype=torch.double)
    above = read("average") + bound - shifts * one  # average − U − 9ρ̂, with U = C − bound
    compared = torch.cat([above, read("excess") - read("allowed")])
    compare = indicators(compared, one[0], torch.cat([read("exceeds"), read("test2")]), k)
    either = torch.cat([read("exceeds") + read("ends") - one, read("test2")])
    count = Mlp(either, fails.T.expand(-1, len(either)))
    cap = Mlp(fails - one, -fails.T)
    return [Layer(mlp=mlp) for mlp in (update, compare, count, cap)]


def reset_places(layout: Layout) -> list[int]:
    """The coordinates that the test matrix T of `def-test-matrix` sets to zero.

    The text says that the first D−7 entries are preserved. The matrix itself resets four entries of every order and
    three shared ones, 4(n+1)+3 in all, and so do we.
    """
    by_order = [layout.place(name, order) for order in layout.orders for name in RESET_ORDER]
    return by_order + [layout.place(name) for name in RESET_SHARED]


def exact_restart(tokens: Tensor, gate: Tensor, layout: Layout) -> Tensor:
    """T·h with the diagonal of `def-test-matrix` as it is printed, for a gate `[B, T]` that is 1 where tests pass.

    It counts places and knows no names, so that it cannot share a mistake with `reset_places`; entries that the text
    does not list stay as they are.
    """
    printed = ([1] * (layout.d + 1) + [0] * 4) * (layout.n + 1) + [1, 1, 0, 0, 0]
    preserved = torch.tensor(printed + [1] * (layout.width - len(printed)), dtype=torch.bool)
    return torch.where(preserved, tokens, tokens * gate.unsqueeze(-1))


def restart(layout: Layout, gate: Tensor, largest: float) -> Layer:
    """RM (`prop-approx-rm`): multiply what remembers the past by the gate that the row `gate` reads; |x| ≤ `largest`.

    x·g for a gate g in {0, 1} is ReLU(x − Γ(1−g)) − ReLU(−x − Γ(1−g)) as long as |x| ≤ Γ. Two more units cancel the
    residual: four hidden units per entry, where the proposition has O(1) in all. Zero must mean "nothing yet" for every
    entry that is reset; a running minimum U is therefore stored as C − U with a ceiling C, so that zero is "no bound
    yet".
    """
    entries = torch.eye(layout.width, dtype=torch.double)[reset_places(layout)]  # [m, D]
    closed = (layout.unit("one") - gate).unsqueeze(0)
    return Layer(mlp=beside(gated(entries, closed, entries, largest), linear(-entries.T @ entries)))
