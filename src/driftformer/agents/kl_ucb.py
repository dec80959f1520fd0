"""kl-UCB (Garivier and Cappé, 2011): for rewards in [0, 1], the tightest index of its kind.

q_k = max{q : N_k·kl(mean_k, q) ≤ ln t + c·ln ln t},   kl(p, q) = p·ln(p/q) + (1−p)·ln((1−p)/(1−q))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.counts import Counts, IndexInfo, begin, count, log_rounds, mean, no_features
from driftformer.errors import require_real
from driftformer.problem import Observation
from driftformer.randomness import Stream

_STEPS = 5
"""Newton steps after which no index moves any more (a test measures it)."""


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

    def act(self, state: Counts, observation: Observation, rng: Stream) -> tuple[Tensor, IndexInfo]:
        level = log_rounds(state.rounds)
        if self.c:
            level = level + self.c * level.log().clamp_min_(0)
        return choose_kl_bound(observation, state, level.unsqueeze(1))

    def update(self, state: Counts, observation: Observation, arm: Tensor, reward: Tensor, info: IndexInfo) -> Counts:
        return count(state, arm, reward)


def choose_kl_bound(observation: Observation, counts: Counts, level: Tensor) -> tuple[Tensor, IndexInfo]:
    """The offered arm with the highest q such that N_k·kl(mean_k, q) = level, `[B, A]` or `[B, 1]`."""
    index = upper(mean(counts), level / counts.plays)
    arm = observation.best(index.masked_fill_(counts.plays == 0, torch.inf))
    return arm, IndexInfo(index, arm, torch.ones_like(index[:, 0]))


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
