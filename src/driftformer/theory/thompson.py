"""A network with explicit weights that is linear Thompson sampling, given standard normal noise in its tokens.

It samples from N(θ̂, v·A⁻¹) as θ̂ + √v·A^{−½}z. Beside the linear system for θ̂ (see regression.py), the same heads
apply Chebyshev's polynomials T_k of A/t to z, and a sum with constant coefficients makes (A/t)^{−½}z of them, whose
error falls as fast as that of the linear system. Heads of the token with itself then multiply: ⟨x_k, v⟩/t, and
⟨x_k, (A/t)^{−½}z⟩·√t/t with √t from the positions.

`agents.thompson` samples with another root of A⁻¹, which it can update; the law is the same, the draw for a given z is
not. The reference here, `SymmetricThompson`, takes the symmetric root.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo, choose
from driftformer.agents.linucb import identity, inner, vector
from driftformer.problem import Observation
from driftformer.randomness import Stream
from driftformer.theory.network import Coordinates, Head, Layer, Mlp, beside, linear
from driftformer.theory.regression import Seat, System, advance, chebyshev, moment, products, spectrum, steps_for
from driftformer.theory.soft import Soft


@dataclass(frozen=True)
class Normal:
    gram: Tensor  # [B, d, d] A
    moment: Tensor  # [B, d] Σ r x


@dataclass(frozen=True)
class SymmetricThompson:
    """Thompson sampling as θ̂ + √v·A^{−½}z with the symmetric root, by eigenvalues."""

    variance: float = 0.3
    ridge: float = 1.0
    name: ClassVar[str] = "symmetric-thompson"
    learns: ClassVar[bool] = True

    def init(self, shape: ProblemShape) -> Normal:
        return Normal(identity(shape, self.ridge), vector(shape, 0.0))

    def act(self, state: Normal, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        noise = rng.normal(observation.action_set.shape[2])
        values, vectors = torch.linalg.eigh(state.gram)
        mean = torch.linalg.solve(state.gram, state.moment)
        rotated = (vectors.mT @ noise.unsqueeze(2)).squeeze(2) * values.rsqrt()  # [B, d]
        sampled = mean + math.sqrt(self.variance) * (vectors @ rotated.unsqueeze(2)).squeeze(2)
        return choose(observation, inner(observation.action_set, sampled))

    def update(self, state: Normal, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo) -> Normal:
        x = observation.features(arm)
        return Normal(state.gram + x.unsqueeze(2) * x.unsqueeze(1), state.moment + reward.unsqueeze(1) * x)


def inverse_root_series(low: float, high: float, terms: int) -> list[float]:
    """c with λ^{−½} ≈ Σ c_k T_k(λ') for λ in [low, high] and λ' in [−1, 1]: the first terms of Chebyshev's series."""
    nodes = 4 * terms
    angles = (torch.arange(nodes, dtype=torch.double) + 0.5) * math.pi / nodes
    values = ((high + low) / 2 + (high - low) / 2 * angles.cos()).rsqrt()
    found = [2 / nodes * float((values * (k * angles).cos()).sum()) for k in range(terms)]
    return [found[0] / 2, *found[1:]]


@dataclass(frozen=True)
class SoftThompson:
    """Thompson sampling whose arms are drawn by a softmax of their sampled values, and the size of its problems."""

    d: int = 3
    arms: int = 4
    variance: float = 0.3
    ridge: float = 1.0
    temperature: float = 0.5

    @property
    def agent(self) -> Soft:
        """The same as an agent."""
        return Soft(SymmetricThompson(self.variance, self.ridge), self.temperature)

    @property
    def inputs(self) -> dict[str, int]:
        """z, standard normal, for every round."""
        return {"normal": self.d}

    @property
    def entries(self) -> dict[str, int]:
        """The estimate's system; T_k z and T_{k−1} z, −(A/t)·T_k z, and the sum of the series."""
        vectors = ("moment", "v", "p", "g", "present", "past", "applied", "root")
        return dict.fromkeys(vectors, self.d) | {"sampled": self.arms}

    def values(self, at: Coordinates) -> Tensor:
        """Rows `[A, D]` that read ⟨x_k, θ̃⟩ of every arm."""
        return at.read("sampled")

    def network(self, seat: Seat, error: float) -> list[Layer]:
        """So many steps that both recurrences have such an error; the root's converges a little more slowly."""
        low, high = spectrum(self.ridge, self.d, seat.tokens)
        steps = steps_for(error, self.ridge, self.d, seat.tokens)
        series = inverse_root_series(low, high, steps + 1)
        system = System("moment", "v", "p", "g")
        heads = products(seat, {system.solution: system.product, "present": "applied"}, self.ridge)
        at = seat.at
        begin = at.move("normal", "present") + at.move("normal", "root", series[0])
        layers = [Layer(moment(seat, "moment"), linear(begin))]
        for (beta, alpha), coefficient, first in zip(
            chebyshev(low, high, steps), series[1:], [True] + [False] * (steps - 1), strict=True
        ):
            climb = self._climb(at, (low, high), coefficient, first)
            layers.append(Layer(heads, beside(advance(at, [system], beta, alpha), climb)))
        return [*layers, Layer(self._multiply(seat))]

    def _climb(self, at: Coordinates, ends: tuple[float, float], coefficient: float, first: bool) -> Mlp:
        """T_{k+1} z = 2M'·T_k z − T_{k−1} z with M' = (2·A/t − (high + low))/(high − low); T_1 z = M'z."""
        low, high = ends
        mapped = (-2 * at.read("applied") - (high + low) * at.read("present")) / (high - low)  # M'·T_k z
        following = mapped if first else 2 * mapped - at.read("past")
        change = at.overwrite("present", following) + at.overwrite("past", at.read("present"))
        change += coefficient * at.read("root").T @ following - at.move("applied", "applied")
        return linear(change)

    def _multiply(self, seat: Seat) -> list[Head]:
        """⟨x_k, θ̂⟩ + √v·⟨x_k, A^{−½}z⟩ of every arm, two heads for each product."""
        heads = []
        deviation = math.sqrt(self.variance)
        for k in range(self.arms):
            target = seat.read("sampled")[k]
            for unknown, position, times in (("v", "one", 1.0), ("root", "root_t", deviation)):
                value = torch.outer(target, seat.read(position, times)[0])
                for sign in (1.0, -1.0):
                    heads.append(seat.itself(seat.read(unknown, sign), seat.read(f"arm{k}"), sign * value))
        return heads
