"""Thompson sampling for rewards in [0, 1]: play the arm with the highest draw from Beta(1 + S_k, 1 + F_k).

S_k and F_k are an arm's successes and failures; a reward between 0 and 1 counts as a fraction of each. With γ < 1 all
of them fade in every round, dTS of Raj and Kalyani (2017), so that arms long unseen are uncertain again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo, choose
from driftformer.agents.ucb import add, begin, no_features
from driftformer.errors import require_real
from driftformer.problem import Observation
from driftformer.randomness import Stream

_PROPOSALS = 6
"""How many proposals each gamma variable has. One is turned down with probability at most .049, so all six in one of
10^8 cases: less than the resolution of the numbers that they are made of."""


@dataclass
class Posterior:
    successes: Tensor  # [B, A]
    failures: Tensor  # [B, A]


@dataclass(frozen=True)
class BetaThompson:
    """Posterior sampling with a uniform prior over each arm's mean; γ = 1 forgets nothing."""

    gamma: float = 1.0
    name: ClassVar[str] = "beta-thompson"
    learns: ClassVar[bool] = True
    why_not = staticmethod(no_features)

    def __post_init__(self) -> None:
        require_real("gamma", self.gamma, 0.0, above=True, most=1.0)

    def init(self, shape: ProblemShape) -> Posterior:
        counts = begin(shape)
        return Posterior(counts.plays, counts.paid)

    def act(self, state: Posterior, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        return choose(observation, sample_beta(state.successes + 1, state.failures + 1, rng))

    def update(
        self, state: Posterior, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo
    ) -> Posterior:
        if self.gamma < 1:
            state.successes.mul_(self.gamma)
            state.failures.mul_(self.gamma)
        success = reward.to(state.successes.dtype).clamp(0.0, 1.0)
        add(state.successes, arm, success)
        add(state.failures, arm, 1 - success)
        return state


def sample_beta(a: Tensor, b: Tensor, rng: Stream) -> Tensor:
    """Beta(a, b) variables for a, b ≥ 1, `[B, A]`: X/(X+Y) of gamma variables with shapes a and b."""
    x, y = sample_gamma(torch.cat([a, b], dim=1), rng).chunk(2, dim=1)
    return x / (x + y)


def sample_gamma(shape: Tensor, rng: Stream, proposals: int = _PROPOSALS) -> Tensor:
    """Gamma variables of shapes `[B, N]`, each at least 1, by the rejection method of Marsaglia and Tsang (2000).

    Always the same number of draws, so many `proposals` for each variable; only the first are computed for all of them.
    """
    normal = rng.normal(proposals, shape.shape[1]).to(shape.dtype)  # [B, P, N]
    uniform = rng.uniform(proposals, shape.shape[1]).to(shape.dtype)
    d = shape - 1 / 3
    gamma, accepted = _propose(d, normal[:, 0], uniform[:, 0])
    gamma, again = gamma.view(-1), (~accepted).view(-1).nonzero().squeeze(1)
    for proposal in range(1, proposals):
        if not again.numel():
            break
        row, place = again // shape.shape[1], again % shape.shape[1]
        value, accepted = _propose(d.view(-1)[again], normal[row, proposal, place], uniform[row, proposal, place])
        gamma[again] = value
        again = again[~accepted]
    return gamma.view(shape.shape)


def _propose(d: Tensor, normal: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """A proposal d·v with v = (1 + x/√(9d))³, and whether ln u < x²/2 + d·(1 − v + ln v) accepts it."""
    root = torch.addcdiv(torch.ones_like(d), normal, (9 * d).sqrt_())
    v = root.clamp_min(1e-6).pow(3)
    bound = torch.addcmul(normal.square() / 2, d, 1 - v + v.log())
    return d * v, (uniform.log() < bound) & (root > 0)
