"""A whole network with explicit weights that is LinUCB: from tokens to arm probabilities (after Lin et al. 2024).

The query token solves (A/t)·v = c for several right-hand sides at once (see regression.py): Σ r_j x_j, which gives
t·θ̂, and every offered arm x_k, which gives t·A⁻¹x_k. Then heads of the token with itself multiply, ⟨x_k, v⟩/t, an MLP
of straight pieces takes the square root for the width of the confidence bound, and a linear map reads the logits.

An argmax has probabilities of zero, whose logarithms no network can match. The reference is therefore LinUCB with a
softmax of its bounds at a stated temperature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.agents.linucb import LinUCB
from driftformer.theory.network import Coordinates, Head, Layer, Mlp, apply, slope_changes
from driftformer.theory.regression import (
    Seat,
    System,
    advance,
    chebyshev,
    everywhere,
    moment,
    products,
    spectrum,
    steps_for,
)
from driftformer.theory.soft import Soft

PIECES = 2048
"""Of the square root: its error is below 1e-6 for the widths of a few hundred rounds."""


@dataclass(frozen=True)
class SoftLinUCB:
    """The algorithm to be computed, and the size of its problems."""

    d: int = 3
    arms: int = 4
    rounds: int = 64
    alpha: float = 1.0
    ridge: float = 1.0
    temperature: float = 0.5

    @property
    def agent(self) -> Soft:
        """The same as an agent."""
        return Soft(LinUCB(self.alpha, self.ridge), self.temperature)

    @property
    def inputs(self) -> dict[str, int]:
        """It needs nothing besides arms and outcomes."""
        return {}

    def log_probabilities(self, features: Tensor, arms: Tensor, rewards: Tensor) -> Tensor:
        """log alg(· | D_{t−1}, s_t) of every round, exactly: `[T, A, d]`, `[T]`, `[T]` to `[T, A]`."""
        gram, moment = self.ridge * torch.eye(self.d, dtype=torch.double), torch.zeros(self.d, dtype=torch.double)
        rows = []
        for t in range(len(features)):
            inverse = torch.linalg.inv(gram)
            width = ((features[t] @ inverse) * features[t]).sum(1).sqrt()
            rows.append((features[t] @ inverse @ moment + self.alpha * width) / self.temperature)
            x = features[t, arms[t]]
            gram, moment = gram + torch.outer(x, x), moment + rewards[t] * x
        return torch.stack(rows).log_softmax(dim=1)

    @property
    def systems(self) -> list[System]:
        """The right-hand sides: the estimate's, then one for each arm."""
        rights = ["moment", *(f"arm{k}" for k in range(self.arms))]
        return [System(right, f"v{i}", f"p{i}", f"g{i}") for i, right in enumerate(rights)]

    @property
    def entries(self) -> dict[str, int]:
        """What it needs to compute: the moment, unknowns v, directions p, −(A/t)v as g, and products."""
        sizes = {"moment": self.d}
        sizes |= {f"{kind}{i}": self.d for kind in "vpg" for i in range(self.arms + 1)}
        return sizes | dict.fromkeys(("mean", "square", "width"), self.arms)

    def layers(self, seat: Seat, steps: int, pieces: int) -> list[Layer]:
        """The whole network: `steps` of Chebyshev's recurrence, then products, and square roots of so many pieces."""
        gradient = products(seat, {one.solution: one.product for one in self.systems}, self.ridge)
        pace = chebyshev(*spectrum(self.ridge, self.d, seat.tokens), steps)
        body = [Layer(gradient, advance(seat.at, self.systems, beta, alpha)) for beta, alpha in pace]
        return [Layer(moment(seat, "moment")), *body, Layer(_products(self, seat), _roots(self, seat.at, pieces))]

    def network(self, seat: Seat, error: float) -> list[Layer]:
        """So many steps that the regression has such an error."""
        return self.layers(seat, steps_for(error, self.ridge, self.d, seat.tokens), PIECES)

    def values(self, at: Coordinates) -> Tensor:
        """Rows `[A, D]` that read the upper confidence bounds."""
        return at.read("mean") + self.alpha * at.read("width")


def coordinates(target: SoftLinUCB) -> Coordinates:
    """A token: the round's arms, what was played, and what the network needs."""
    given = {"one": 1, "t": 1, "x": target.d, "reward": 1}
    return Coordinates(given | {f"arm{k}": target.d for k in range(target.arms)} | target.entries)


def tokens(target: SoftLinUCB, features: Tensor, arms: Tensor, rewards: Tensor) -> Tensor:
    """One sequence for each round, `[T, T, D]`: the earlier rounds with their outcomes, then this one without."""
    at, rounds = coordinates(target), len(features)
    sequence = torch.zeros(rounds, at.width, dtype=torch.double)
    sequence[:, at["one"]] = 1.0
    sequence[:, at["t"]] = torch.arange(1, rounds + 1, dtype=torch.double).unsqueeze(1)
    for k in range(target.arms):
        sequence[:, at[f"arm{k}"]] = features[:, k]
    outcome = sequence.clone()
    outcome[:, at["x"]], outcome[:, at["reward"]] = features[torch.arange(rounds), arms], rewards.unsqueeze(1)
    before = torch.ones(rounds, rounds).tril(-1).bool().unsqueeze(2)  # [t, j]: round j is past
    return torch.where(before, outcome.unsqueeze(0), sequence.unsqueeze(0))


def layers(target: SoftLinUCB, steps: int, pieces: int) -> list[Layer]:
    """The network by itself, where all earlier rounds count."""
    at = coordinates(target)
    return target.layers(everywhere(at, target.d, target.rounds, target.ridge), steps, pieces)


def _products(target: SoftLinUCB, seat: Seat) -> list[Head]:
    """⟨x_k, θ̂⟩ and x_kᵀA⁻¹x_k of every arm: the token with itself, where 1/t undoes the t in the unknowns."""
    heads = []
    for k in range(target.arms):
        for entry, unknown, signs in (("mean", "v0", (1.0, -1.0)), ("square", f"v{k + 1}", (1.0,))):
            value = torch.outer(seat.read(entry)[k], seat.read("one")[0])
            for sign in signs:
                heads.append(seat.itself(seat.read(unknown, sign), seat.read(f"arm{k}"), sign * value))
    return heads


def _roots(target: SoftLinUCB, at: Coordinates, pieces: int) -> Mlp:
    """√ of every square by straight pieces between knots that are denser near zero; squares are at most d/λ."""
    knots = target.d / target.ridge * torch.linspace(0, 1, pieces + 1, dtype=torch.double) ** 2
    shifts = knots[:-1].unsqueeze(1) * at.read("one")  # [pieces, D]
    first = (at.read("square").unsqueeze(1) - shifts).flatten(0, 1)  # [A · pieces, D]
    return Mlp(first, torch.kron(at.read("width"), slope_changes(knots, knots.sqrt()).unsqueeze(1)).T)


def log_probabilities(target: SoftLinUCB, built: list[Layer], played: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """log alg_θ of every round: softmax(A·TF_θ(H)_{−1}) (Equation alg-by-tf)."""
    at, rounds = coordinates(target), torch.arange(target.rounds)
    last = apply(built, tokens(target, *played))[rounds, rounds]  # [T, D]
    return (last @ target.values(at).T / target.temperature).log_softmax(dim=1)


def history(target: SoftLinUCB, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Features, arms and rewards of one problem with fixed arms, played at random."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.rand(target.arms, target.d, generator=generator, dtype=torch.double) * 2 - 1
    features = features.expand(target.rounds, -1, -1)
    w = torch.rand(target.d, generator=generator, dtype=torch.double)
    arms = torch.randint(target.arms, (target.rounds,), generator=generator)
    noise = torch.randn(target.rounds, generator=generator, dtype=torch.double) * 0.5
    return features, arms, features[0, arms] @ w + noise


def largest_error(target: SoftLinUCB, steps: int, pieces: int = 64, problems: int = 3) -> float:
    """max |log alg_θ − log alg_E| over all rounds, all arms and some problems."""
    built = layers(target, steps, pieces)
    worst = 0.0
    for seed in range(problems):
        played = history(target, seed)
        error = log_probabilities(target, built, played) - target.log_probabilities(*played)
        worst = max(worst, float(error.abs().max()))
    return worst if math.isfinite(worst) else math.inf
