"""Fine-tuning on dynamic regret: the policy plays in the simulator and learns from what its choices cost.

Labels of the optimal arm teach posterior sampling at best; what is left to the limit is exploration, and that can only
be learned from consequences. Each problem is played several times with the same noise. One step then follows the
gradient of Σ_t Σ_k π_t(k)·gap_t(k), the exact expected regret of each round on the histories that were seen, and a
score-function term: log π_t(a_t) times the regret still to come, less its mean over the rollouts of the same problem,
scaled to unit spread in every round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.models.sampling import standard_gumbel
from driftformer.pretraining.play import Played, Player
from driftformer.pretraining.problems import Problems, unroll
from driftformer.pretraining.processes import Part
from driftformer.pretraining.recipes import Recipe
from driftformer.pretraining.stream import draw_place
from driftformer.pretraining.worlds import World
from driftformer.randomness import Randomness

TUNING_SEED, COINS_SEED = 2**42, 2**43
"""Added to the seed for the problems of fine-tuning and for how they are played."""

AHEAD = 8
"""Steps of one world whose problems are made at once."""


@dataclass(frozen=True)
class Rollouts:
    """Several rollouts of each problem: row r is rollout r // P of problem r % P."""

    problems: Problems  # R·P rows
    played: Played
    gaps: Tensor  # [R·P, T, A] suboptimality in units of the problem's average one
    count: int  # R


class Simulator:
    """One process' part of the rollouts. Everything about step n comes from (seed, n), shard by shard, and the policy.

    Laying a problem out over its rounds takes as long for a few problems as for many, so each world's are made for
    several steps at once.
    """

    def __init__(self, worlds: list[World], recipe: Recipe, dim: int, device: torch.device, part: Part) -> None:
        self._worlds, self._recipe, self._dim, self._device, self._part = worlds, recipe, dim, device, part
        self._drawn: list[int] = []  # the world of each step so far
        self._ahead: dict[int, tuple[int, Problems]] = {}  # of each world: the number of a block, and its problems

    def place_of(self, step: int) -> tuple[int, int]:
        """Which world a step shows, and how many steps before it did."""
        while len(self._drawn) <= step:
            self._drawn.append(draw_place(self._worlds, self._recipe.seed + 1, len(self._drawn)))
        place = self._drawn[step]
        return place, self._drawn[:step].count(place)

    def roll(self, step: int, player: Player) -> Rollouts:
        """Play new problems, each several times with the same noise."""
        place, uses = self.place_of(step)
        environment, count = self._worlds[place].environment, self._recipe.tuning_rollouts
        size = self._part.each(self._recipe.tuning_tokens // environment.horizon // count)
        with torch.no_grad():
            block, turn = divmod(uses, AHEAD)
            now = self._part.rows(size * AHEAD, self._device)[:, turn * size : (turn + 1) * size].flatten()
            problems = repeat(self._problems(place, block, size).rows(now), count)
            coins = self._randomness(COINS_SEED, step, size)
            noise = coins.stream("noise").normal(environment.horizon).repeat(count, 1)
            uniform = coins.stream("gumbel").uniform(count, environment.horizon, environment.arms)
            played = player.play(problems, noise, standard_gumbel(uniform.transpose(0, 1).flatten(0, 1)))
            gaps = problems.gaps
            gaps = gaps / gaps.mean(dim=(1, 2), keepdim=True).clamp(min=1e-6)
        return Rollouts(problems, played, gaps, count)

    def _problems(self, place: int, block: int, size: int) -> Problems:
        """The problems of some steps of one world."""
        if self._ahead.get(place, (-1,))[0] != block:
            randomness = self._randomness(TUNING_SEED, block * len(self._worlds) + place, size * AHEAD)
            self._ahead[place] = (block, unroll(self._worlds[place].environment, randomness, self._dim))
        return self._ahead[place][1]

    def _randomness(self, root: int, number: int, size: int) -> Randomness:
        return Randomness(root + self._recipe.seed, self._part.chunks(number), size=size, device=self._device)


def repeat(problems: Problems, count: int) -> Problems:
    """Every problem several times, one copy of all after the other."""
    first = problems.features[:, :1] if problems.features.stride(1) == 0 else problems.features
    features = first.repeat(count, 1, 1, 1).expand(-1, problems.means.shape[1], -1, -1)
    changes = problems.changes.of(lambda values: values.repeat(count, 1))
    means, spread = problems.means.repeat(count, 1, 1), problems.spread.repeat(count, 1)
    return Problems(features, means, spread, changes, problems.environment)


Average = Callable[[Tensor], Tensor]
"""A tensor's mean over all processes."""


def advantages(expected: Tensor, count: int, average: Average) -> Tensor:
    """How much more than usual is still to come after each round, `[R·P, T]`, with unit spread in every round."""
    to_come = expected.flip(1).cumsum(1).flip(1) - expected  # [R·P, T] rounds after t
    grouped = to_come.view(count, -1, to_come.shape[1])  # [R, P, T]
    centred = (grouped - grouped.mean(dim=0)).flatten(0, 1)
    spread = average(centred.square().mean(dim=0, keepdim=True)).sqrt()
    return centred / spread.clamp(min=1e-6)


def regret_loss(
    logits: Tensor, arms: Tensor, gaps: Tensor, count: int, future: float, average: Average
) -> tuple[Tensor, Tensor]:
    """What to descend on, and the expected regret of a trajectory in units of the uniform policy's per round."""
    log_policy = logits.float().log_softmax(dim=2)
    expected = (log_policy.exp() * gaps).sum(dim=2)  # [R·P, T]
    cost = advantages(expected.detach(), count, average)
    taken = log_policy.gather(2, arms.unsqueeze(2)).squeeze(2)
    return expected.mean() + future * (cost * taken).mean(), expected.detach().mean()
