"""How far the law of the network's coins is from MALG's: the distribution of the active order, round by round.

The network's random numbers are ranks of noise among the tokens so far, (j + π/8)/t for j = 0, …, t−1. For independent
continuous noise they are independent of each other and each j is equally likely (Rényi), so the chance that a coin
falls well is the share of those t numbers for which the weights write a flag. MALG's chance is ρ(2^n)/ρ(2^i). The more
tokens came before, the finer are the ranks: hence the burn-in.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.agents.schedule import malg
from driftformer.theory.network import Layer, apply
from driftformer.theory.noncontinuous import SHIFT, NonContinuous


@dataclass(frozen=True)
class Distance:
    """Total variation between two laws of the active order, over the rounds of a block."""

    mean: float
    first: float  # in the block's first round
    largest: float


def falls_well(network: NonContinuous, n: int, t: int) -> Tensor:
    """The chance of each order's coin in token t, in a block of 2^n rounds, by the network's weights: `[M]`."""
    at = network.memory.at
    tokens = torch.zeros(1, t, at.width, dtype=torch.double)
    tokens[..., at["one"]] = 1.0
    tokens[..., at["next_n"].start + n] = 1.0
    tokens[..., at["next_rand"]] = ((torch.arange(t, dtype=torch.double) + SHIFT) / t).unsqueeze(1)
    flags: Tensor = apply([Layer(mlp=network.parts["coins"][0].mlp)], tokens)[0, :, at["falls_well"]]
    return flags.mean(dim=0)


def law_of_active(chances: Tensor) -> Tensor:
    """How likely each order is the lowest of those that are live, from independent chances `[…, M]`."""
    none_lower = (1 - chances).cumprod(dim=-1).roll(1, dims=-1)
    none_lower[..., 0] = 1.0
    return chances * none_lower


def network_law(network: NonContinuous, n: int) -> Tensor:
    """The law of the active order in a block of 2^n rounds that begins right after the burn-in, `[2^n, n+1]`.

    No block begins earlier, so in any other one ranks are finer.
    """
    first = network.burn_in + 1
    begins = {t: falls_well(network, n, t)[: n + 1] for t in range(first, first + 2**n)}
    chances = torch.stack(
        [torch.stack([begins[first + r - r % 2**i][i] for i in range(n + 1)]) for r in range(2**n)]
    )  # [2^n, n+1]
    return law_of_active(chances)


def distance(network: NonContinuous, n: int) -> Distance:
    """From MALG's law, which is the same in every round of a block."""
    wanted = law_of_active(torch.tensor(malg(n, network.master.rho).probabilities, dtype=torch.double))
    apart = (network_law(network, n) - wanted).abs().sum(dim=1) / 2  # [2^n]
    return Distance(float(apart.mean()), float(apart[0]), float(apart.max()))


def sampled_law(network: NonContinuous, n: int, draws: int) -> Tensor:
    """The same law as `network_law`, from noise that goes through all heads: `[2^n, n+1]`."""
    at, first = network.memory.at, network.burn_in
    tokens = torch.zeros(draws, first + 2**n, at.width, dtype=torch.double)
    generator = torch.Generator().manual_seed(0)
    tokens[..., at["noise"]] = torch.rand(*tokens[..., at["noise"]].shape, generator=generator, dtype=torch.double)
    tokens[..., at["one"]] = 1.0
    tokens[..., at["t"]] = torch.arange(1.0, first + 2**n + 1, dtype=torch.double).unsqueeze(1)
    tokens[..., at["next_n"].start + n] = 1.0
    flags = apply(network.parts["coins"][:1], tokens)[:, first:, at["falls_well"]]  # [draws, 2^n, M]
    rounds = torch.arange(2**n)
    live = torch.stack([flags[:, rounds - rounds % 2**order, order] for order in range(n + 1)], dim=2) > 0.5
    active = live.int().argmax(dim=2)
    return torch.nn.functional.one_hot(active, n + 1).double().mean(dim=0)
