"""UCB that forgets, after Garivier and Moulines (2011): old rewards fade, or only the last rounds count.

    D-UCB:   mean + 2·√(ξ·ln n / N_k), where a play s rounds ago counts γ^s and n is the sum of all N_k
    SW-UCB:  mean + √(ξ·ln min(t, W) / N_k), over the last W rounds

Rewards lie in [0, 1]; their simulations have ξ = ½, γ = 1 − 1/(4√T) and W = 4·√(T·ln T).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, require_window
from driftformer.agents.counts import Counts, IndexInfo, add, begin, choose_bound, count, log_rounds, no_features
from driftformer.errors import require_count, require_real
from driftformer.problem import Observation, Traits, place_of, take
from driftformer.randomness import Stream


@dataclass(frozen=True)
class DiscountedUCB:
    """D-UCB: every reward counts γ times as much as the one of the round after it."""

    gamma: float = 0.99
    xi: float = 0.5
    name: ClassVar[str] = "discounted-ucb"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_real("gamma", self.gamma, 0.0, above=True, most=1.0)
        require_real("xi", self.xi, 0.0, above=True)

    def why_not(self, traits: Traits) -> str | None:
        return no_features(traits)

    def init(self, shape: ProblemShape) -> Counts:
        return begin(shape)

    def act(self, state: Counts, observation: Observation, rng: Stream) -> tuple[Tensor, IndexInfo]:
        # n stays below 2 where γ ≤ ½, and is 1 after the first round: the width must not vanish
        return choose_bound(observation, state, log_rounds(state.rounds).mul_(4 * self.xi))

    def update(self, state: Counts, observation: Observation, arm: Tensor, reward: Tensor, info: IndexInfo) -> Counts:
        for weights in (state.plays, state.paid, state.rounds):
            weights.mul_(self.gamma)
        return count(state, arm, reward)


@dataclass
class WindowCounts:
    counts: Counts  # of the window; `rounds` is min(t, W)
    arms: Tensor  # [B, W] what was played, a ring
    rewards: Tensor  # [B, W]
    age: Tensor  # [B] rounds so far


@dataclass(frozen=True)
class SlidingWindowUCB:
    """SW-UCB: only the last `window` rounds count."""

    window: int = 50
    xi: float = 0.5
    name: ClassVar[str] = "sliding-window-ucb"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_count("window", self.window)
        require_real("xi", self.xi, 0.0, above=True)

    def why_not(self, traits: Traits) -> str | None:
        return no_features(traits)

    def init(self, shape: ProblemShape) -> WindowCounts:
        require_window("window", self.window, shape)
        counts = begin(shape)
        age = torch.zeros(shape.batch, dtype=torch.long, device=shape.device)
        ring = age.unsqueeze(1).repeat(1, self.window)
        return WindowCounts(counts, ring, ring.to(counts.paid.dtype), age)

    def act(self, state: WindowCounts, observation: Observation, rng: Stream) -> tuple[Tensor, IndexInfo]:
        return choose_bound(observation, state.counts, log_rounds(state.counts.rounds).mul_(self.xi))

    def update(
        self, state: WindowCounts, observation: Observation, arm: Tensor, reward: Tensor, info: IndexInfo
    ) -> WindowCounts:
        counts = count(state.counts, arm, reward)
        place = place_of(state.age.remainder(self.window), self.window)  # [B] of the round that leaves the window
        leaving = (state.age >= self.window).to(counts.plays.dtype).neg_()  # [B] −1, or 0 while the window fills
        oldest = take(state.arms, place)
        add(counts.plays, oldest, leaving)
        add(counts.paid, oldest, take(state.rewards, place) * leaving)
        counts.rounds.add_(leaving)
        state.arms.view(-1).index_copy_(0, place, arm)
        state.rewards.view(-1).index_copy_(0, place, reward.to(state.rewards.dtype))
        state.age.add_(1)
        return state
