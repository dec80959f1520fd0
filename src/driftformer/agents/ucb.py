"""UCB on K arms: play the one with the highest mean + width. Rewards lie in [0, 1].

    UCB1:    √(α·ln t / N_k)  (Auer, Cesa-Bianchi and Fischer, 2002)
    D-UCB:   2·√(ξ·ln n / N_k), where a play s rounds ago counts γ^s and n is the sum of all N_k
    SW-UCB:  √(ξ·ln min(t, W) / N_k), over the last W rounds

The last two forget; they are of Garivier and Moulines (2011), who simulate ξ = ½, γ = 1 − 1/(4√T) and W = 4·√(T·ln T).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, require_window
from driftformer.agents.counts import Counts, IndexInfo, add, begin, count, log_rounds, mean, no_features
from driftformer.errors import require_count, require_real
from driftformer.problem import Observation, place_of, take
from driftformer.randomness import Stream


def choose_bound(observation: Observation, counts: Counts, factor: float) -> tuple[Tensor, IndexInfo]:
    """The offered arm with the highest mean + √(factor·ln n / N_k), where n is the sum of all N_k."""
    level = log_rounds(counts.rounds).mul_(factor)  # [B]
    index = (level.unsqueeze(1) / counts.plays).sqrt_().add_(mean(counts))  # [B, A]
    arm = observation.best(index)
    return arm, IndexInfo(index, arm, level.sqrt().add_(1))


@dataclass(frozen=True)
class UCB:
    """UCB1; α = 2 is the paper's, ½ the least its proof allows."""

    alpha: float = 2.0
    name: ClassVar[str] = "ucb"
    learns: ClassVar[bool] = True
    why_not = staticmethod(no_features)
    init = staticmethod(begin)

    def __post_init__(self) -> None:
        require_real("alpha", self.alpha, 0.0, above=True)

    def act(self, state: Counts, observation: Observation, rng: Stream) -> tuple[Tensor, IndexInfo]:
        return choose_bound(observation, state, self.alpha)

    def update(self, state: Counts, observation: Observation, arm: Tensor, reward: Tensor, info: IndexInfo) -> Counts:
        return count(state, arm, reward)


@dataclass(frozen=True)
class DiscountedUCB:
    """D-UCB: every reward counts γ times as much as the one of the round after it."""

    gamma: float = 0.99
    xi: float = 0.5
    name: ClassVar[str] = "discounted-ucb"
    learns: ClassVar[bool] = True
    why_not = staticmethod(no_features)
    init = staticmethod(begin)

    def __post_init__(self) -> None:
        require_real("gamma", self.gamma, 0.0, above=True, most=1.0)
        require_real("xi", self.xi, 0.0, above=True)

    def act(self, state: Counts, observation: Observation, rng: Stream) -> tuple[Tensor, IndexInfo]:
        return choose_bound(observation, state, 4 * self.xi)

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
    why_not = staticmethod(no_features)

    def __post_init__(self) -> None:
        require_count("window", self.window)
        require_real("xi", self.xi, 0.0, above=True)

    def init(self, shape: ProblemShape) -> WindowCounts:
        require_window("window", self.window, shape)
        counts = begin(shape)
        age = torch.zeros(shape.batch, dtype=torch.long, device=shape.device)
        ring = age.unsqueeze(1).repeat(1, self.window)
        return WindowCounts(counts, ring, ring.to(counts.paid.dtype), age)

    def act(self, state: WindowCounts, observation: Observation, rng: Stream) -> tuple[Tensor, IndexInfo]:
        return choose_bound(observation, state.counts, self.xi)

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
