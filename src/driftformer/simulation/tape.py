"""Problems that can be played again and again, always from the same start.

A bandit's world does not depend on what is played, so it is laid out over all rounds beforehand, chance included. Such
a tape is made once; then any number of behaviours, experts and policies play it, in any order, on a GPU all rounds in
one captured graph. It holds the very numbers of a rollout with the same randomness: played with the same arms, it pays
the same rewards. Problems whose course depends on what is played are lived through anew each time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from driftformer.agents.base import ProblemShape
from driftformer.environments.base import Environment, Foreseeable
from driftformer.environments.rewards import RewardLaw
from driftformer.errors import InputError
from driftformer.problem import Observation, Truth, draw_arms, pick
from driftformer.randomness import Randomness
from driftformer.simulation.rollout import Live
from driftformer.simulation.trajectories import Laid


@dataclass(frozen=True)
class Tape(Laid):
    """A batch of problems and what every arm of every round would pay."""

    spread: Tensor  # [B, T] scale of the noise
    noise: Tensor  # [B, T]
    rewards: RewardLaw

    def begin(self) -> TapeCourse:
        return TapeCourse(self)

    def along(self, arms: Tensor) -> Laid:
        return self

    def drawn(self, uniform: Tensor) -> Tensor:
        """Uniformly random offered arms, `[B, T]`, from numbers in [0, 1); -1 where a number is negative."""
        arms = draw_arms(uniform.clamp(min=0), self.values.shape[2], self.offered)
        return torch.where(uniform < 0, -1, arms)

    def rows(self, first: int, count: int) -> Tape:
        """Some of the problems, one after the other; privileged agents are not told of them."""

        def some(held: Tensor) -> Tensor:
            return held[first : first + count]

        return replace(
            self,
            features=some(self.features),
            values=some(self.values),
            offered=None if self.offered is None else some(self.offered),
            observations=(),
            truths=(),
            spread=some(self.spread),
            noise=some(self.noise),
        )

    def repeat(self, count: int) -> Tape:
        """Every problem several times, one copy of all after the other; privileged agents are not told of them."""
        once = self.features[:, :1] if self.features.stride(1) == 0 else self.features
        return replace(
            self,
            features=once.repeat(count, 1, 1, 1).expand(-1, self.values.shape[1], -1, -1),
            values=self.values.repeat(count, 1, 1),
            offered=None if self.offered is None else self.offered.repeat(count, 1, 1),
            observations=(),
            truths=(),
            spread=self.spread.repeat(count, 1),
            noise=self.noise.repeat(count, 1),
        )


class TapeCourse:
    """A run through a tape, round by round."""

    def __init__(self, tape: Tape) -> None:
        self._tape, self._t = tape, 0

    @property
    def observation(self) -> Observation:
        tape, t = self._tape, self._t
        if tape.observations:
            return tape.observations[t]
        return Observation(tape.features[:, t], None if tape.offered is None else tape.offered[:, t])

    @property
    def values(self) -> Tensor:
        return self._tape.values[:, self._t]

    def truth(self) -> Truth:
        return self._tape.truths[self._t]

    def pay(self, arm: Tensor) -> Tensor:
        tape, t = self._tape, self._t
        self._t += 1
        return tape.rewards.reward(pick(tape.values[:, t], arm), tape.spread[:, t], tape.noise[:, t])

    def laid(self) -> Laid:
        return self._tape


class Unfolding:
    """Problems whose course depends on what is played: they are lived through, from the same start each time."""

    def __init__(self, environment: Environment, randomness: Randomness, dim: int) -> None:
        self.environment, self._randomness, self._dim = environment, randomness, dim

    @property
    def shape(self) -> ProblemShape:
        here, drawn = self.environment, self._randomness
        return ProblemShape(drawn.batch, here.horizon, here.arms, self._dim, drawn.device, drawn.dtype)

    def begin(self) -> Course:
        return Course(self.environment, self._randomness.again(), self._dim)

    def repeat(self, count: int) -> Unfolding:
        """Every problem several times, one copy of all after the other."""
        return Unfolding(self.environment, self._randomness.again(self._randomness.chunks * count), self._dim)

    def along(self, arms: Tensor) -> Laid:
        """What was on offer when these arms `[B, T]` were played."""
        course = self.begin()
        for arm in arms.unbind(1):
            course.pay(arm)
        return course.laid()


class Course(Live):
    """A run through unfolding problems that remembers what was on offer; features are padded with zeros to `dim`."""

    def __init__(self, environment: Environment, randomness: Randomness, dim: int) -> None:
        super().__init__(environment, randomness)
        self._dim = dim
        self._seen: list[tuple[Observation, Tensor, Truth]] = []

    @property
    def observation(self) -> Observation:
        observation = super().observation
        missing = self._dim - observation.action_set.shape[2]
        return replace(observation, action_set=functional.pad(observation.action_set, (0, missing)))

    def pay(self, arm: Tensor) -> Tensor:
        self._seen.append((self.observation, self.values, self.truth()))
        return super().pay(arm)

    def laid(self) -> Laid:
        observations, values, truths = zip(*self._seen, strict=True)
        return lay(observations, values, truths)


def lay(observations: tuple[Observation, ...], values: tuple[Tensor, ...], truths: tuple[Truth, ...]) -> Laid:
    """All rounds side by side."""
    sets = [observation.action_set for observation in observations]
    same = all(one is sets[0] for one in sets)
    features = torch.stack(sets[:1] if same else sets, dim=1).expand(-1, len(sets), -1, -1)
    masks = [observation.offered for observation in observations]
    offered = None
    if any(mask is not None for mask in masks):
        every = torch.ones_like(values[0], dtype=torch.bool)
        offered = torch.stack([every if mask is None else mask for mask in masks], dim=1)
    return Laid(features, torch.stack(values, dim=1), offered, observations, truths)


Problems = Tape | Unfolding
"""A batch of problems that can be played again and again, always from the same start."""


def problems_of(environment: Environment, randomness: Randomness, dim: int | None = None) -> Problems:
    """Problems of an environment, laid out where that is possible; features are padded with zeros to `dim`."""
    if isinstance(environment, Foreseeable):
        return lay_out(environment, randomness, dim)
    return Unfolding(environment, randomness, environment.dim if dim is None else dim)


def lay_out(environment: Environment, randomness: Randomness, dim: int | None = None) -> Tape:
    """All rounds of an environment's problems, where they do not depend on what is played."""
    bandit: Any = environment
    if not isinstance(environment, Foreseeable):
        raise InputError(f"environment '{environment.name}' depends on what is played, so it cannot be laid out")
    dim = environment.dim if dim is None else dim
    world = bandit.reset(randomness)
    rng = randomness.stream("noise")
    worlds, noise = [world], [bandit.rewards.noise(rng)]
    for _ in range(1, bandit.horizon):
        world = bandit.advance(world, randomness)
        worlds.append(world)
        noise.append(bandit.rewards.noise(rng))
    laid = lay(
        _padded(tuple(world.observation for world in worlds), dim),
        tuple(world.values for world in worlds),
        tuple(bandit.truth(world) for world in worlds),
    )
    spread = torch.stack([world.spread for world in worlds], dim=1)
    return Tape(**vars(laid), spread=spread, noise=torch.stack(noise, dim=1), rewards=bandit.rewards)


def _padded(observations: tuple[Observation, ...], dim: int) -> tuple[Observation, ...]:
    """Features with zeros behind them; an action set that stays is padded once."""
    padded: list[Observation] = []
    for place, now in enumerate(observations):
        missing = dim - now.action_set.shape[2]
        if place and now.action_set is observations[place - 1].action_set:
            action_set = padded[-1].action_set
        else:
            action_set = functional.pad(now.action_set, (0, missing)) if missing else now.action_set
        padded.append(replace(now, action_set=action_set))
    return tuple(padded)
