"""A whole network with explicit weights that is LinUCB: from tokens to arm probabilities (after Lin et al. 2024).

Ridge regression by steps in the forward pass. With A = λI + Σ x_j x_jᵀ over the rounds before t, the query token solves
(A/t)·v = c for several right-hand sides at once: Σ r_j x_j, which gives t·θ̂, and every offered arm x_k, which gives
t·A⁻¹x_k. The product (1/t)·Σ x_j⟨x_j, v⟩ is what an attention layer with 1/t computes, in two heads, since ReLU(s) −
ReLU(−s) = s. Plain gradient steps would need as many layers as A/t is ill-conditioned; Chebyshev's recurrence, whose
coefficients are constants of the layers, needs about the square root of that. At the end heads of the token with itself
multiply, ⟨x_k, v⟩/t, an MLP of straight pieces takes the square root for the width of the confidence bound, and a
linear map reads the logits.

An argmax has probabilities of zero, whose logarithms no network can match: the reference is LinUCB with a softmax of
its bounds at a stated temperature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.theory.network import Head, Layer, Mlp, Sizes, build, run, sizes


@dataclass(frozen=True)
class SoftLinUCB:
    """What is to be computed, and for problems of which size."""

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


class Places:
    """Where everything stands in a token: the round's arms, what was played, unknowns, directions, products."""

    def __init__(self, asked: SoftLinUCB) -> None:
        d, arms = asked.d, asked.arms
        names = {"one": 1, "t": 1, "x": d, "rx": d, "moment": d}
        names |= {f"arm{k}": d for k in range(arms)}
        for kind in ("v", "p", "g"):  # unknown, direction, −(A/t)v
            names |= {f"{kind}{i}": d for i in range(arms + 1)}
        names |= {"mean": arms, "square": arms, "width": arms}
        self._slices, first = {}, 0
        for name, size in names.items():
            self._slices[name] = slice(first, first + size)
            first += size
        self.total = first

    def __getitem__(self, name: str) -> slice:
        return self._slices[name]

    def read(self, name: str, times: float = 1.0) -> Tensor:
        """Rows that read an entry, `[size, D]`."""
        place = self[name]
        rows = torch.zeros(place.stop - place.start, self.total, dtype=torch.double)
        rows[:, place] = times * torch.eye(rows.shape[0], dtype=torch.double)
        return rows

    def move(self, source: str, target: str, times: float = 1.0) -> Tensor:
        """The matrix that adds one entry to another, `[D, D]`."""
        return self.read(target).T @ self.read(source, times)


def tokens(asked: SoftLinUCB, features: Tensor, arms: Tensor, rewards: Tensor) -> Tensor:
    """A sequence for every round, `[T, T, D]`: the rounds before with what came of them, then this one without."""
    places, rounds = Places(asked), len(features)
    sequence = torch.zeros(rounds, places.total, dtype=torch.double)
    sequence[:, places["one"]] = 1.0
    sequence[:, places["t"]] = torch.arange(1, rounds + 1, dtype=torch.double).unsqueeze(1)
    for k in range(asked.arms):
        sequence[:, places[f"arm{k}"]] = features[:, k]
    outcome = sequence.clone()
    x = features[torch.arange(rounds), arms]
    outcome[:, places["x"]], outcome[:, places["rx"]] = x, rewards.unsqueeze(1) * x
    before = torch.ones(rounds, rounds).tril(-1).bool().unsqueeze(2)  # [t, j]: round j is past
    return torch.where(before, outcome.unsqueeze(0), sequence.unsqueeze(0))


def layers(asked: SoftLinUCB, steps: int, pieces: int) -> list[Layer]:
    """The whole network: `steps` of Chebyshev's recurrence, then products and square roots of so many pieces."""
    places = Places(asked)
    far = 4.0 * (asked.rounds + asked.d + 1) * asked.rounds
    everything = (places.read("t"), places.read("one"))
    begin = Layer([Head(*everything, places.move("rx", "moment"))])
    body = [
        Layer(_gradient(asked, places, far), _advance(asked, places, *coefficients))
        for coefficients in chebyshev(asked, steps)
    ]
    return [begin, *body, Layer(_products(asked, places, far), _roots(asked, places, pieces))]


def chebyshev(asked: SoftLinUCB, steps: int) -> list[tuple[float, float]]:
    """β and α of each step for eigenvalues of A/t between λ/T and λ + d."""
    low, high = asked.ridge / asked.rounds, asked.ridge + asked.d
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


def _self_score(places: Places, far: float) -> tuple[Tensor, Tensor]:
    """Rows of query and key whose product is −Γ(t − k)."""
    query = torch.cat([places.read("t", -far), places.read("one")])
    return query, torch.cat([places.read("one"), places.read("t", far)])


def _gradient(asked: SoftLinUCB, places: Places, far: float) -> list[Head]:
    """Writes −(A/t)·v of every unknown: two heads each, and one of the token with itself for the ridge."""
    heads = []
    for i in range(asked.arms + 1):
        value = places.move("x", f"g{i}", -1.0)
        for sign in (1.0, -1.0):
            heads.append(Head(places.read(f"v{i}", sign), places.read("x"), sign * value))
    query, key = _self_score(places, far)
    ridge = sum((places.move(f"v{i}", f"g{i}", -asked.ridge) for i in range(asked.arms + 1)), torch.zeros(1))
    heads.append(Head(torch.cat([query, places.read("one")]), torch.cat([key, places.read("one")]), ridge))
    return heads


def _advance(asked: SoftLinUCB, places: Places, beta: float, alpha: float) -> Mlp:
    """p ← c + g + βp, v ← v + αp, g ← 0: a linear map, as ReLU(s) − ReLU(−s)."""
    change = torch.zeros(places.total, places.total, dtype=torch.double)
    for i in range(asked.arms + 1):
        right = "moment" if i == 0 else f"arm{i - 1}"
        direction = places.read(right) + places.read(f"g{i}") + places.read(f"p{i}", beta)
        change[places[f"p{i}"]] += direction - places.read(f"p{i}")
        change[places[f"v{i}"]] += alpha * direction
        change[places[f"g{i}"]] -= places.read(f"g{i}")
    rows = change.abs().sum(dim=1) > 0
    write = torch.eye(places.total, dtype=torch.double)[:, rows]
    return Mlp(torch.cat([change[rows], -change[rows]]), torch.cat([write, -write], dim=1))


def _products(asked: SoftLinUCB, places: Places, far: float) -> list[Head]:
    """⟨x_k, θ̂⟩ and x_kᵀA⁻¹x_k of every arm: the token with itself, whose 1/t undoes the t in the unknowns."""
    query, key = _self_score(places, far)
    heads = []
    for k in range(asked.arms):
        for target, unknown, signs in (("mean", "v0", (1.0, -1.0)), ("square", f"v{k + 1}", (1.0,))):
            value = torch.zeros(places.total, places.total, dtype=torch.double)
            value[places[target].start + k] = places.read("one")[0]
            for sign in signs:
                left = torch.cat([query, places.read(unknown, sign)])
                heads.append(Head(left, torch.cat([key, places.read(f"arm{k}")]), sign * value))
    return heads


def _roots(asked: SoftLinUCB, places: Places, pieces: int) -> Mlp:
    """√ of every square by straight pieces between knots that lie closer near zero; squares are at most d/λ."""
    knots = asked.d / asked.ridge * torch.linspace(0, 1, pieces + 1, dtype=torch.double) ** 2
    slopes = (knots[1:].sqrt() - knots[:-1].sqrt()) / (knots[1:] - knots[:-1])
    changes = torch.cat([slopes[:1], slopes[1:] - slopes[:-1]])
    first: list[Tensor] = []
    second = torch.zeros(places.total, asked.arms * pieces, dtype=torch.double)
    for k in range(asked.arms):
        square = places.read("square")[k]
        for piece in range(pieces):
            second[places["width"].start + k, len(first)] = changes[piece]
            first.append(square - knots[piece] * places.read("one")[0])
    return Mlp(torch.stack(first), second)


def log_probabilities(asked: SoftLinUCB, built: list[Layer], features: Tensor, arms: Tensor, rewards: Tensor) -> Tensor:
    """log alg_θ of every round: softmax(A·TF_θ(H)_{−1}) (Equation alg-by-tf)."""
    places = Places(asked)
    network = build(built, places.total)
    out = run(network, tokens(asked, features, arms, rewards))
    rounds = torch.arange(len(features))
    last = out[rounds, rounds]  # [T, D]
    read = (places.read("mean") + asked.alpha * places.read("width")) / asked.temperature
    return (last @ read.T).log_softmax(dim=1)


def network_sizes(asked: SoftLinUCB, built: list[Layer]) -> Sizes:
    return sizes(built, Places(asked).total)


def history(asked: SoftLinUCB, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Features, arms and rewards of one problem with fixed arms, played at random."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.rand(asked.arms, asked.d, generator=generator, dtype=torch.double) * 2 - 1
    features = features.expand(asked.rounds, -1, -1)
    w = torch.rand(asked.d, generator=generator, dtype=torch.double)
    arms = torch.randint(asked.arms, (asked.rounds,), generator=generator)
    noise = torch.randn(asked.rounds, generator=generator, dtype=torch.double) * 0.5
    return features, arms, features[0, arms] @ w + noise


def largest_error(asked: SoftLinUCB, steps: int, pieces: int = 64, problems: int = 3) -> float:
    """max |log alg_θ − log alg_E| over all rounds, arms and some problems."""
    built = layers(asked, steps, pieces)
    worst = 0.0
    for seed in range(problems):
        given = history(asked, seed)
        gap = log_probabilities(asked, built, *given) - asked.log_probabilities(*given)
        worst = max(worst, float(gap.abs().max()))
    return worst if math.isfinite(worst) else math.inf
