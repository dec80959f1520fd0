"""PSRL (Strens, 2000; Osband, Russo and Van Roy, 2013): solve an MDP drawn from the posterior before each episode.

Where an arm leads has a Dirichlet prior of total weight `prior`, spread evenly over the states; what it pays, a uniform
one, a reward between 0 and 1 counting as a fraction of a success, as in beta-thompson. Its r̃ is the value of the state
in the MDP that was drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo
from driftformer.agents.beta_thompson import sample_beta, sample_gamma
from driftformer.agents.episodes import play, stage_of, unbounded
from driftformer.agents.tabular_model import Model, expected, learn
from driftformer.agents.ucb_vi import Planned, hope_for
from driftformer.errors import require_real
from driftformer.problem import Observation
from driftformer.randomness import Stream

_PROPOSALS = 3
"""For each gamma variable of a Dirichlet draw. All are turned down in one of 10^4 cases at most; the last one is taken
then, which no estimate from so many draws would show."""


@dataclass(frozen=True)
class Drawn(ValueInfo):
    """What one MDP of the posterior says."""

    q: Tensor  # [B, H, S, A]


@dataclass(frozen=True)
class PSRL:
    """Posterior sampling, an MDP an episode."""

    prior: float = 1.0
    name: ClassVar[str] = "psrl"
    learns: ClassVar[bool] = True
    episodic: ClassVar[bool] = True
    why_not = staticmethod(unbounded)

    def __post_init__(self) -> None:
        require_real("prior", self.prior, 1e-3)

    def init(self, shape: ProblemShape) -> Planned:
        return hope_for(shape)

    def act(self, state: Planned, observation: Observation, rng: Stream) -> tuple[Tensor, Drawn]:
        stage = stage_of(observation)
        q = self._draw(state.model, state.q.shape[1], rng) if stage == 0 else state.q
        arm, info = play(q, observation, stage)
        return arm, Drawn(info.values, info.auxiliary_value, q)

    def update(self, state: Planned, observation: Observation, arm: Tensor, reward: Tensor, info: Drawn) -> Planned:
        return Planned(learn(state.model, observation, stage_of(observation), arm, reward), info.q)

    def _draw(self, model: Model, stages: int, rng: Stream) -> Tensor:
        """Q of an MDP of the posterior, `[B, H, S, A]`."""
        transitions = sample_dirichlet(model.moves + self.prior / model.moves.shape[-1], rng)
        earned, missed = 1 + model.paid.clamp_min(0), 1 + (model.visits - model.paid).clamp_min(0)
        rewards = sample_beta(earned.flatten(1), missed.flatten(1), rng).view_as(model.visits)
        return solve(rewards, transitions, stages)


def sample_dirichlet(weights: Tensor, rng: Stream) -> Tensor:
    """Dirichlet variables over the last dimension, `[B, …, N]`, for any positive weights.

    They are gamma variables G over their sum. That of weight a is G(a + 1)·U^(1/a), which may be too small for a float,
    so its logarithm is what is computed.
    """
    flat = weights.flatten(1)
    gamma = sample_gamma(flat + 1, rng, _PROPOSALS)
    uniform = rng.uniform(flat.shape[1]).to(flat.dtype).clamp_min(2.0**-25)
    return (gamma.log_() + uniform.log_() / flat).view_as(weights).softmax(dim=-1)


def solve(rewards: Tensor, transitions: Tensor, stages: int) -> Tensor:
    """Q `[B, H, S, A]` of MDPs with rewards `[B, K, S, A]` and transitions `[B, K, S, A, S]`, by backward induction."""
    tables = rewards.shape[1]
    q = rewards[:, -1:].repeat(1, stages, 1, 1)
    for stage in range(stages - 2, -1, -1):
        table = stage if tables > 1 else 0
        q[:, stage] = rewards[:, table] + expected(transitions[:, table], q[:, stage + 1].amax(dim=2))
    return q
