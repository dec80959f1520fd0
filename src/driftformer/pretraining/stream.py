"""Training data, made while it is used: a generation of problems is unrolled, played and labelled, then cut in batches.

Everything about generation g comes from (seed, g), shard by shard, and from the policy's weights at that time where it
plays some of the trajectories itself. So a training that stops between two generations goes on exactly as if it had
not.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from driftformer.models.configuration import tokens_in
from driftformer.models.sampling import standard_gumbel
from driftformer.pretraining.collect import Trajectories, collect, uniform_arms
from driftformer.pretraining.label import label
from driftformer.pretraining.play import Player
from driftformer.pretraining.problems import Problems, unroll
from driftformer.pretraining.processes import Part
from driftformer.pretraining.recipes import Recipe
from driftformer.pretraining.worlds import World, worlds_of
from driftformer.randomness import Randomness

TRAINING_SEED = 2**41
"""Added to the seeds of trainings: no evaluation shows problems that a training has seen."""


@dataclass(frozen=True)
class Batch:
    """Labelled trajectories as a model reads them."""

    features: Tensor  # [B, T, A, d]
    arms: Tensor  # [B, T]
    rewards: Tensor  # [B, T]
    labels: Tensor  # [B, T]


class Stream(Protocol):
    """Where a training gets its data from."""

    @property
    def worlds(self) -> list[World]: ...
    @property
    def identity(self) -> str | None:
        """Of a dataset; None where trajectories are made while they are used."""
        ...

    def world_of(self, generation: int, step: int) -> World:
        """Which world a generation shows that begins after so many steps."""
        ...

    def generation(self, number: int, step: int, player: Player) -> Iterator[Batch]:
        """The batches of one generation."""
        ...


class FreshStream:
    """Generations of new trajectories: one process' part of them."""

    def __init__(self, recipe: Recipe, dim: int, device: torch.device, part: Part) -> None:
        self._recipe, self._dim, self._device, self._part = recipe, dim, device, part
        self.worlds = worlds_of(recipe.worlds)
        self.identity: str | None = None

    def world_of(self, generation: int, step: int) -> World:
        """Drawn by share, the same in every process; at first its rounds are cut short."""
        world = self.worlds[draw_place(self.worlds, self._recipe.seed, generation)]
        horizon = max(1, world.environment.horizon >> halvings(step, self._recipe))
        return replace(world, environment=replace(world.environment, horizon=horizon))

    def batch_of(self, world: World) -> int:
        """Trajectories of a shard in a step."""
        return self._part.each(self._recipe.tokens // tokens_in(self._recipe.form, world.environment.horizon))

    def steps_of(self, world: World) -> int:
        """Steps in a generation: where rounds are more than in the first world, up to half as many trajectories."""
        horizon = self.worlds[0].environment.horizon
        most = self._recipe.generation * horizon // world.environment.horizon
        most = max(most, self._recipe.generation // 2)
        return max(1, most // (self._recipe.shards * self.batch_of(world)))

    def generation(self, number: int, step: int, player: Player) -> Iterator[Batch]:
        world = self.world_of(number, step)
        batch, steps = self.batch_of(world), self.steps_of(world)
        chunks, size = self._part.chunks(number), batch * steps
        randomness = Randomness(TRAINING_SEED + self._recipe.seed, chunks, size=size, device=self._device)
        with torch.no_grad():
            problems = unroll(world.environment, randomness, self._dim)
            places = self._part.rows(size, self._device)
            own = places[:, : round(self._recipe.own * size)].flatten()
            trajectories = self._play(problems, own, randomness, player)
            labels = label(problems, trajectories, self._recipe.labels, randomness)
            order = places.gather(1, randomness.stream("order").uniform().view_as(places).argsort(dim=1))
        for rows in order.view(-1, steps, batch).unbind(1):
            rows = rows.flatten()  # of every shard as many
            features = problems.features[rows]
            yield Batch(features, trajectories.arms[rows], trajectories.rewards[rows], labels[rows])

    def _play(self, problems: Problems, own: Tensor, randomness: Randomness, player: Player) -> Trajectories:
        """Trajectories at the places `own` by the policy, with a few uniform arms; the others by the behaviours."""
        others = collect(problems, self._recipe.behaviours, randomness)
        if not len(own):
            return others
        _, horizon, arms = problems.means.shape
        noise = randomness.stream("own-noise").normal(horizon)[own]
        gumbel = standard_gumbel(randomness.stream("own-gumbel").uniform(horizon, arms)[own])
        share = randomness.stream("own-share").uniform()[own, None] ** 2
        uniform = uniform_arms(problems, randomness.stream("own-uniform"))[own]
        forced = torch.where(randomness.stream("own-coins").uniform(horizon)[own] < share, uniform, -1)
        mine = player.play(problems.rows(own), noise, gumbel, forced)
        arms_played, rewards = others.arms.clone(), others.rewards.clone()
        arms_played[own], rewards[own] = mine.arms, mine.rewards
        return Trajectories(arms_played, rewards)


def halvings(step: int, recipe: Recipe) -> int:
    """How often the horizon is halved at some step: three times at first, then twice, then once."""
    short = recipe.short * recipe.steps
    return 3 - int(3 * step / short) if step < short else 0


def draw_place(worlds: list[World], seed: int, number: int) -> int:
    """The place of one of several worlds, drawn by share, from (seed, number) alone."""
    root = np.random.SeedSequence(seed, spawn_key=(number, zlib.crc32(b"world")))
    shares = np.array([world.share for world in worlds])
    return int(np.random.default_rng(root).choice(len(worlds), p=shares / shares.sum()))
