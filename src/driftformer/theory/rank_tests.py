"""Are ranks random? Tests of uniformity and independence for the numbers that `scheduler.ranks` makes from data.

Each position has its own discrete distribution, so positions are tested one by one: χ² against the uniform distribution
on {0, …, (i−1)/i}, and χ² of independence for pairs of positions. Bonferroni's rule turns the p-values into one: the
smallest times their number.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def chi_square_p(statistic: float, freedom: int) -> float:
    """P(χ² ≥ statistic), by the regularised upper incomplete gamma function."""
    half = torch.tensor(freedom / 2, dtype=torch.double)
    return float(torch.special.gammaincc(half, torch.tensor(statistic / 2, dtype=torch.double)))


def uniformity(numbers: Tensor, bins: int) -> float:
    """p-value for integers `[B]` in 0..bins−1 being uniform."""
    if bins == 1:
        return 1.0
    seen = torch.bincount(numbers, minlength=bins).double()
    expected = len(numbers) / bins
    return chi_square_p(float(((seen - expected) ** 2 / expected).sum()), bins - 1)


def independence(first: Tensor, second: Tensor, bins: tuple[int, int]) -> float:
    """p-value for the numbers of two positions, `[B]` each, being independent."""
    if min(bins) == 1:
        return 1.0
    joint = torch.bincount(first * bins[1] + second, minlength=bins[0] * bins[1]).double().view(bins)
    expected = joint.sum(1, keepdim=True) * joint.sum(0, keepdim=True) / joint.sum()
    statistic = float(((joint - expected) ** 2 / expected.clamp(min=1e-12)).sum())
    return chi_square_p(statistic, (bins[0] - 1) * (bins[1] - 1))


def bonferroni(p_values: list[float]) -> float:
    return min(1.0, min(p_values) * len(p_values))


def rank_tests(ranks: Tensor) -> tuple[float, float]:
    """p-values for ranks `[B, T]`: uniformity of every position, and independence of all pairs of the first 8."""
    rounds = ranks.shape[1]
    whole = [(ranks[:, i] * (i + 1)).round().long() for i in range(rounds)]
    uniform = bonferroni([uniformity(whole[i], i + 1) for i in range(rounds)])
    few = range(min(rounds, 8))
    pairs = [independence(whole[i], whole[j], (i + 1, j + 1)) for i in few for j in few if i < j]
    return uniform, bonferroni(pairs or [1.0])


def independence_of_orders(ranks: Tensor) -> float:
    """p-value for the numbers of different orders in the same token being independent, for ranks `[B, T, n+1]`."""
    few, orders = range(1, min(ranks.shape[1], 8)), range(ranks.shape[2])
    whole = (ranks * torch.arange(1, ranks.shape[1] + 1).unsqueeze(1)).round().long()
    pairs = [(whole[:, t, i], whole[:, t, j], t + 1) for t in few for i in orders for j in orders if i < j]
    return bonferroni([independence(first, second, (bins, bins)) for first, second, bins in pairs])


def full_sequence_independence(ranks: Tensor) -> float:
    """p-value for independence of the first two ranks among all rounds: they are never equal, so it is tiny."""
    rounds = ranks.shape[1]
    if rounds == 1:
        return math.nan
    whole = (ranks * rounds).round().long()
    return independence(whole[:, 0], whole[:, 1], (rounds, rounds))
