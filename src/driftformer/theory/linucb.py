"""A whole network with explicit weights that is LinUCB: from tokens to arm probabilities (after Lin et al. 2024).

Ridge regression runs in the forward pass. With A = λI + Σ x_j x_jᵀ over the rounds before t, the query token solves
(A/t)·v = c for several right-hand sides at once: Σ r_j x_j, which gives t·θ̂, and every offered arm x_k, which gives
t·A⁻¹x_k. An attention layer with its 1/t computes the product (1/t)·Σ x_j⟨x_j, v⟩ in two heads, since ReLU(s) −
ReLU(−s) = s. Plain gradient steps would need a number of layers proportional to the condition number of A/t;
Chebyshev's recurrence, whose coefficients are constants, needs about its square root. Finally, heads of the token with
itself multiply, ⟨x_k, v⟩/t, an MLP of straight pieces takes the square root for the width of the confidence bound, and
a linear map reads the logits.

An argmax has probabilities of zero, whose logarithms no network can match. The reference is therefore LinUCB with a
softmax of its bounds at a stated temperature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.theory.network import Coordinates, Head, Layer, Mlp, apply, linear, slope_changes


@dataclass(frozen=True)
class SoftLinUCB:
    """The algorithm to be computed, and the size of its problems."""

    d: int = 3
    arms: int = 4
    rounds: int = 64
    alpha: float = 1.0
    ridge: float = 1.0
    temperature: float = 0.5

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
    def unknowns(self) -> range:
        """The right-hand sides: the estimate's, then one for each arm."""
        return range(self.arms + 1)


def coordinates(target: SoftLinUCB) -> Coordinates:
    """A token: the round's arms, what was played, unknowns v, directions p, −(A/t)v as g, and products."""
    sizes = {"one": 1, "t": 1, "x": target.d, "rx": target.d, "moment": target.d}
    sizes |= {f"arm{k}": target.d for k in range(target.arms)}
    sizes |= {f"{kind}{i}": target.d for kind in "vpg" for i in target.unknowns}
    return Coordinates(sizes | dict.fromkeys(("mean", "square", "width"), target.arms))


def tokens(target: SoftLinUCB, features: Tensor, arms: Tensor, rewards: Tensor) -> Tensor:
    """One sequence for each round, `[T, T, D]`: the earlier rounds with their outcomes, then this one without."""
    at, rounds = coordinates(target), len(features)
    sequence = torch.zeros(rounds, at.width, dtype=torch.double)
    sequence[:, at["one"]] = 1.0
    sequence[:, at["t"]] = torch.arange(1, rounds + 1, dtype=torch.double).unsqueeze(1)
    for k in range(target.arms):
        sequence[:, at[f"arm{k}"]] = features[:, k]
    outcome = sequence.clone()
    x = features[torch.arange(rounds), arms]
    outcome[:, at["x"]], outcome[:, at["rx"]] = x, rewards.unsqueeze(1) * x
    before = torch.ones(rounds, rounds).tril(-1).bool().unsqueeze(2)  # [t, j]: round j is past
    return torch.where(before, outcome.unsqueeze(0), sequence.unsqueeze(0))


def layers(target: SoftLinUCB, steps: int, pieces: int) -> list[Layer]:
    """The whole network: `steps` of Chebyshev's recurrence, then products, and square roots of so many pieces."""
    at = coordinates(target)
    begin = Layer([Head(at.read("t"), at.read("one"), at.move("rx", "moment"))])
    gradient = _gradient(target, at)
    body = [Layer(gradient, _advance(target, at, beta, alpha)) for beta, alpha in chebyshev(target, steps)]
    return [begin, *body, Layer(_products(target, at), _roots(target, at, pieces))]


def chebyshev(target: SoftLinUCB, steps: int) -> list[tuple[float, float]]:
    """β and α of each step, for eigenvalues of A/t between λ/T and λ + d."""
    low, high = target.ridge / target.rounds, target.ridge + target.d
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


def _self_score(target: SoftLinUCB, at: Coordinates) -> tuple[Tensor, Tensor]:
    """Rows of query and key whose product is −Γ(t − k)."""
    slope = 4.0 * (target.rounds + target.d + 1) * target.rounds  # Γ
    query = torch.cat([at.read("t", -slope), at.read("one")])
    return query, torch.cat([at.read("one"), at.read("t", slope)])


def _gradient(target: SoftLinUCB, at: Coordinates) -> list[Head]:
    """Write −(A/t)·v of every unknown: two heads each, and one of the token with itself for the ridge."""
    heads = []
    for i in target.unknowns:
        value = at.move("x", f"g{i}", -1.0)
        heads += [Head(at.read(f"v{i}", sign), at.read("x"), sign * value) for sign in (1.0, -1.0)]
    query, key = _self_score(target, at)
    ridge = torch.stack([at.move(f"v{i}", f"g{i}", -target.ridge) for i in target.unknowns]).sum(dim=0)
    heads.append(Head(torch.cat([query, at.read("one")]), torch.cat([key, at.read("one")]), ridge))
    return heads


def _advance(target: SoftLinUCB, at: Coordinates, beta: float, alpha: float) -> Mlp:
    """p ← c + g + βp, v ← v + αp, g ← 0: a linear map."""
    change = torch.zeros(at.width, at.width, dtype=torch.double)
    for i in target.unknowns:
        right = "moment" if i == 0 else f"arm{i - 1}"
        direction = at.read(right) + at.read(f"g{i}") + at.read(f"p{i}", beta)
        change[at[f"p{i}"]] += direction - at.read(f"p{i}")
        change[at[f"v{i}"]] += alpha * direction
        change[at[f"g{i}"]] -= at.read(f"g{i}")
    return linear(change)


def _products(target: SoftLinUCB, at: Coordinates) -> list[Head]:
    """⟨x_k, θ̂⟩ and x_kᵀA⁻¹x_k of every arm: the token with itself, where 1/t undoes the t in the unknowns."""
    query, key = _self_score(target, at)
    heads = []
    for k in range(target.arms):
        for entry, unknown, signs in (("mean", "v0", (1.0, -1.0)), ("square", f"v{k + 1}", (1.0,))):
            value = torch.outer(at.read(entry)[k], at.read("one")[0])
            for sign in signs:
                left = torch.cat([query, at.read(unknown, sign)])
                heads.append(Head(left, torch.cat([key, at.read(f"arm{k}")]), sign * value))
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
    read = (at.read("mean") + target.alpha * at.read("width")) / target.temperature
    return (last @ read.T).log_softmax(dim=1)


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
