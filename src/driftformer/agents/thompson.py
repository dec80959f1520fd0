"""Linear Thompson sampling: act greedily on a sample of N(θ̂, v·A⁻¹)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo, choose
from driftformer.agents.ridge import RootRidge, absorb_root, draw, identity, inner, precise, require_ridge, vector
from driftformer.errors import require_real
from driftformer.problem import Observation
from driftformer.randomness import Stream


@dataclass(frozen=True)
class Thompson:
    """Posterior sampling with noise variance v around ridge regression."""

    variance: float = 0.3
    ridge: float = 1.0
    name: ClassVar[str] = "thompson"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_real("variance", self.variance, 0.0)
        require_ridge(self.ridge)

    def init(self, shape: ProblemShape) -> RootRidge:
        shape = precise(shape)
        return RootRidge(root=identity(shape, self.ridge**-0.5), theta=vector(shape, 0.0))

    def act(self, state: RootRidge, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        noise = rng.normal(observation.action_set.shape[2]).to(state.root.dtype)
        sampled = draw(state, noise, math.sqrt(self.variance))  # [B, d]
        return choose(observation, inner(observation.action_set, sampled))

    def update(
        self, state: RootRidge, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo
    ) -> RootRidge:
        return absorb_root(state, observation.features(arm).to(state.root.dtype), reward)
