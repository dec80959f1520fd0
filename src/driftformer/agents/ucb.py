"""Index policies for K arms without features: play the arm with the highest index. Rewards lie in [0, 1].

    UCB1:    mean_k + √(α·ln t / N_k)  (Auer, Cesa-Bianchi and Fischer, 2002)
    D-UCB:   mean_k + 2·√(ξ·ln n / N_k), where a play s rounds ago counts γ^s and n is the sum of all N_k
    SW-UCB:  mean_k + √(ξ·ln min(t, W) / N_k), over the last W rounds
    kl-UCB:  max{q : N_k·kl(mean_k, q) ≤ ln t + c·ln ln t}, the tightest of its kind (Garivier and Cappé, 2011)

with kl(p, q) = p·ln(p/q) + (1−p)·ln((1−p)/(1−q)). D-UCB and SW-UCB forget; Garivier and Moulines (2011) simulate them
with ξ = ½, γ = 1 − 1/(4√T) and W = 4·√(T·ln T).

Each offered arm is played once before any two are compared, the first of them first. An arm that was never played, or
is all but forgotten, has no finite index; the auxiliary value is then the largest that an arm played once could have.
Equal indices go to the first arm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo, require_window
from driftformer.agents.linucb import precise
from driftformer.errors import require_count, require_real
from driftformer.problem import Observation, Traits, place_of, take
from driftformer.randomness import Stream

_STEPS = 5
"""Newton steps after which no index of kl-UCB moves any more (a test measures it)."""


@dataclass
class Counts:
    plays: Tensor  # [B, A] N_k, perhaps discounted
    paid: Tensor  # [B, A] the sum of an arm's rewards, weighted alike
    rounds: Tensor  # [B] the sum of all plays


def no_features(traits: Traits) -> str | None:
    """Why an agent that counts plays cannot play such a problem; None if it can."""
    return None if traits.one_hot else "it counts how often each arm pays, so arms must have no features"


def begin(shape: ProblemShape) -> Counts:
    shape = precise(shape)
    plays = torch.zeros(shape.batch, shape.arms, device=shape.device, dtype=shape.dtype)
    return Counts(plays, torch.zeros_like(plays), torch.zeros_like(plays[:, 0]))


def count(counts: Counts, arm: Tensor, reward: Tensor) -> Counts:
    """Take in the reward of one arm, in place."""
    add(counts.plays, arm, torch.ones_like(counts.rounds))
    add(counts.paid, arm, reward.to(counts.paid.dtype))
    counts.rounds.add_(1)
    return counts


def add(values: Tensor, arm: Tensor, amount: Tensor) -> None:
    """Add an amount `[B]` to the entry of each problem's arm in `[B, A]`, in place."""
    values.view(-1).index_add_(0, place_of(arm, values.shape[1]), amount)


def mean(counts: Counts) -> Tensor:
    """What each arm has paid on average, `[B, A]`; 0 where it was never played."""
    return counts.paid / counts.plays.clamp_min(torch.finfo(counts.plays.dtype).tiny)


def log_rounds(rounds: Tensor) -> Tensor:
    """ln t, `[B]`, of at least two rounds: with fewer, or where old ones fade fast, an index would have no width."""
    return rounds.clamp_min(2).log_()


def choose_bound(observation: Observation, counts: Counts, factor: float) -> tuple[Tensor, ValueInfo]:
    """The offered arm with the highest mean + √(factor·ln n / N_k), where n is the sum of all N_k."""
    level = log_rounds(counts.rounds).mul_(factor)  # [B]
    index = (level.unsqueeze(1) / counts.plays).sqrt_().add_(mean(counts))  # [B, A]
    arm, highest = observation.choose(index)
    return arm, ValueInfo(index, torch.minimum(highest, level.sqrt().add_(1)))


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

    def act(self, state: Counts, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        return choose_bound(observation, state, self.alpha)

    def update(self, state: Counts, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo) -> Counts:
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

    def act(self, state: Counts, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        return choose_bound(observation, state, 4 * self.xi)

    def update(self, state: Counts, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo) -> Counts:
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

    def act(self, state: WindowCounts, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        return choose_bound(observation, state.counts, self.xi)

    def update(
        self, state: WindowCounts, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo
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


@dataclass(frozen=True)
class KLUCB:
    """Optimism in the Kullback–Leibler divergence; its authors advise c = 0 and prove c = 3."""

    c: float = 0.0
    name: ClassVar[str] = "kl-ucb"
    learns: ClassVar[bool] = True
    why_not = staticmethod(no_features)
    init = staticmethod(begin)

    def __post_init__(self) -> None:
        require_real("c", self.c, 0.0)

    def act(self, state: Counts, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        level = log_rounds(state.rounds)
        if self.c:
            level = level + self.c * level.log().clamp_min_(0)
        index = kl_bound(state, level.unsqueeze(1))  # [B, A]
        arm, highest = observation.choose(index)
        return arm, ValueInfo(index, highest.clamp_max_(1))

    def update(self, state: Counts, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo) -> Counts:
        return count(state, arm, reward)


def kl_bound(counts: Counts, level: Tensor) -> Tensor:
    """The q of each arm with N_k·kl(mean_k, q) = level, `[B, A]` or `[B, 1]`; infinite where it was never played."""
    return upper(mean(counts), level / counts.plays).masked_fill_(counts.plays == 0, torch.inf)


def upper(p: Tensor, level: Tensor) -> Tensor:
    """The q ≥ p with kl(p, q) = level > 0; means outside [0, 1] count as 0 or 1.

    Newton's method on y = −ln(1−q), in which kl(p, ·) is convex and rises with slope (q−p)/q. It begins to the right of
    the solution and so only moves left: at the smaller of Pinsker's bound q ≤ p + √(level/2) and what follows from
    kl(p, q) ≥ (1−p)·y − h(p), where h is the entropy.
    """
    p = p.clamp(0.0, 1 - 1e-6)
    rest = 1 - p
    entropy = torch.special.entr(p).add_(torch.special.entr(rest))  # h(p)
    height = entropy.add_(level)
    pinsker = (level / 2).sqrt_().add_(p).clamp_max_(1.0).neg_().log1p_().neg_()
    y = torch.minimum(pinsker, height / rest)
    for _ in range(_STEPS):
        q = y.neg().expm1_().neg_()
        excess = torch.addcmul(height.neg(), rest, y).sub_(torch.xlogy(p, q)).clamp_min_(0.0)
        y = torch.addcdiv(y, excess * q, (q - p).clamp_min_(1e-7), value=-1)
    return y.neg_().expm1_().neg_()
