"""Fine-tuning on dynamic regret: the policy plays in the simulator and learns from what its choices cost.

Labels of the optimal arm teach posterior sampling at best; what is left to the limit is exploration, and that can only
be learned from consequences. Each problem is played several times with the same noise. One step then follows the
gradient of Σ_t Σ_k π_t(k)·gap_t(k), the exact expected regret of each round on the histories that were seen, and a
score-function term: log π_t(a_t) times the regret still to come, less its mean over the rollouts of the same problem,
scaled to unit spread in every round.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.models.sampling import standard_gumbel
from driftformer.pretraining.play import Played, Player
from driftformer.pretraining.problems import Problems, unroll
from driftformer.pretraining.recipes import Recipe
from driftformer.pretraining.worlds import World
from driftformer.randomness import Randomness

TUNING_SEED = 2**42
"""Added to the seeds of fine-tuning: other problems than those with labels."""


@dataclass(frozen=True)
class Rollouts:
    """Several rollouts of each problem: row r is rollout r // P of problem r % P."""

    problems: Problems  # R·P rows
    played: Played
    gaps: Tensor  # [R·P, T, A] suboptimality in units of the problem's average one
    count: int  # R


def roll(
    world: World, recipe: Recipe, player: Player, number: int, dim: int, device: torch.device, process: int, of: int
) -> Rollouts:
    """Play new problems, each several times."""
    horizon, count = world.environment.horizon, recipe.tuning_rollouts
    size = max(1, recipe.tuning_tokens // horizon // count // of)
    randomness = Randomness(TUNING_SEED + recipe.seed, (number * of + process,), size=size, device=device)
    with torch.no_grad():
        once = unroll(world.environment, randomness, dim)
        problems = repeat(once, count)
        noise = randomness.stream("tuning-noise").normal(horizon).repeat(count, 1)
        uniform = randomness.stream("tuning-gumbel").uniform(count, horizon, world.environment.arms)
        gumbel = standard_gumbel(uniform.transpose(0, 1).flatten(0, 1))
        played = player.play(problems, noise, gumbel)
        gaps = problems.gaps
        gaps = gaps / gaps.mean(dim=(1, 2), keepdim=True).clamp(min=1e-6)
    return Rollouts(problems, played, gaps, count)


def repeat(problems: Problems, count: int) -> Problems:
    """Every problem several times, one copy of all after the other."""
    first = problems.features[:, :1] if problems.features.stride(1) == 0 else problems.features
    features = first.repeat(count, 1, 1, 1).expand(-1, problems.means.shape[1], -1, -1)
    return Problems(features, problems.means.repeat(count, 1, 1), problems.spread.repeat(count, 1))


def advantages(expected: Tensor, count: int) -> Tensor:
    """How much more than usual is still to come after each round, `[R·P, T]`, with unit spread in every round."""
    to_come = expected.flip(1).cumsum(1).flip(1) - expected  # [R·P, T] rounds after t
    grouped = to_come.view(count, -1, to_come.shape[1])  # [R, P, T]
    centred = (grouped - grouped.mean(dim=0)).flatten(0, 1)
    spread = centred.std(dim=0, keepdim=True)
    return centred / spread.clamp(min=1e-6)


def regret_loss(logits: Tensor, arms: Tensor, gaps: Tensor, count: int, future: float) -> tuple[Tensor, Tensor]:
    """What to descend on, and the expected regret of a trajectory in units of the uniform policy's per round."""
    log_policy = logits.float().log_softmax(dim=2)
    expected = (log_policy.exp() * gaps).sum(dim=2)  # [R·P, T]
    cost = advantages(expected.detach(), count)
    taken = log_policy.gather(2, arms.unsqueeze(2)).squeeze(2)
    return expected.mean() + future * (cost * taken).mean(), expected.detach().mean()
