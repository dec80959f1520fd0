"""UCB1 (Auer, Cesa-Bianchi and Fischer, 2002): play the arm with the highest mean + √(α·ln t / N_k)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from driftformer.agents.base import ProblemShape
from driftformer.agents.counts import Counts, IndexInfo, begin, choose_bound, count, log_rounds, no_features
from driftformer.errors import require_real
from driftformer.problem import Observation, Traits
from driftformer.randomness import Stream


@dataclass(frozen=True)
class UCB:
    """Optimism over the mean of each arm's rewards in [0, 1]; α = 2 is the paper's, ½ the least its proof allows."""

    alpha: float = 2.0
    name: ClassVar[str] = "ucb"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_real("alpha", self.alpha, 0.0, above=True)

    def why_not(self, traits: Traits) -> str | None:
        return no_features(traits)

    def init(self, shape: ProblemShape) -> Counts:
        return begin(shape)

    def act(self, state: Counts, observation: Observation, rng: Stream) -> tuple[Tensor, IndexInfo]:
        return choose_bound(observation, state, log_rounds(state.rounds).mul_(self.alpha))

    def update(self, state: Counts, observation: Observation, arm: Tensor, reward: Tensor, info: IndexInfo) -> Counts:
        return count(state, arm, reward)
