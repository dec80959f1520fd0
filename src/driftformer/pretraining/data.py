"""Training data, made while it is used: a generation of problems is played and labelled, then cut into batches.

Everything about generation g comes from (seed, g), shard by shard, and from the policy's weights at that time where it
plays some of the trajectories itself. So a training that stops between two generations goes on exactly as if it had
not.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from driftformer.errors import InputError
from driftformer.models.configuration import tokens_in
from driftformer.models.sampling import standard_gumbel
from driftformer.pretraining.labels import label
from driftformer.pretraining.play import Player
from driftformer.pretraining.processes import Part
from driftformer.pretraining.recipes import Recipe
from driftformer.pretraining.worlds import TrainingWorld, worlds_of
from driftformer.randomness import Randomness
from driftformer.simulation.collect import collect
from driftformer.simulation.tape import problems_of
from driftformer.simulation.trajectories import Trajectories

TRAINING_SEED, TUNING_SEED, OWN_SEED = 2**41, 2**42, 2**43
"""Added to the seeds of trainings: no evaluation shows problems that a training has seen."""

_CPU_GENERATION = 1024
"""Trajectories that a CPU makes at once at most: a GPU's thousands would take it many minutes."""


@dataclass(frozen=True)
class Batch:
    """Labelled trajectories as a model reads them."""

    features: Tensor  # [B, T, A, d]
    arms: Tensor  # [B, T]
    rewards: Tensor  # [B, T]
    labels: Tensor  # [B, T]
    offered: Tensor | None = None  # [B, T, A] bool

    def inputs(self) -> tuple[Tensor, ...]:
        """What the loss takes."""
        mask = () if self.offered is None else (self.offered,)
        return (self.features, self.arms, self.rewards, self.labels, *mask)


def batch_of(trajectories: Trajectories, labels: Tensor, rows: Tensor) -> Batch:
    """Some rows of labelled trajectories."""
    laid = trajectories.on_offer
    offered = None if laid.offered is None else laid.offered[rows]
    return Batch(laid.features[rows], trajectories.arms[rows], trajectories.rewards[rows], labels[rows], offered)


class TrainingData(Protocol):
    """Where a training gets its trajectories from."""

    @property
    def worlds(self) -> list[TrainingWorld]: ...
    @property
    def identity(self) -> str | None:
        """Of a dataset; None where trajectories are made while they are used."""
        ...

    def world_of(self, generation: int, step: int) -> TrainingWorld:
        """Which world a generation shows that begins after so many steps."""
        ...

    def generation(self, number: int, step: int, player: Player) -> Iterator[Batch]:
        """The batches of one generation."""
        ...


class FreshData:
    """Generations of new trajectories: one process' part of them."""

    def __init__(self, recipe: Recipe, dim: int, device: torch.device, part: Part) -> None:
        self._recipe, self._dim, self._device, self._part = recipe, dim, device, part
        self.worlds = worlds_of(recipe.worlds)
        self.identity: str | None = None

    def world_of(self, generation: int, step: int) -> TrainingWorld:
        """Drawn by share, the same in every process; at first its rounds are cut short."""
        world = self.worlds[draw_place(self.worlds, self._recipe.seed, generation)]
        times = halvings(step, self._recipe)
        return world if not times else shortened(world, times)

    def sizes_of(self, world: TrainingWorld) -> tuple[int, int]:
        """A shard's trajectories in a step, and steps in a generation.

        Where rounds are more than in the first world, a generation has up to half as many trajectories.
        """
        recipe, horizon = self._recipe, world.environment.horizon
        batch = self._part.each(recipe.tokens // tokens_in(recipe.form, horizon))
        whole = recipe.generation if self._device.type != "cpu" else min(recipe.generation, _CPU_GENERATION)
        most = max(whole * self.worlds[0].environment.horizon // horizon, whole // 2)
        return batch, max(1, most // (recipe.shards * batch))

    def generation(self, number: int, step: int, player: Player) -> Iterator[Batch]:
        world = self.world_of(number, step)
        batch, steps = self.sizes_of(world)
        own = round(self._recipe.own * batch * steps)  # trajectories of a shard that the policy plays itself
        with torch.no_grad():
            parts = []
            if own < batch * steps:
                randomness = self._randomness(TRAINING_SEED, number, batch * steps - own)
                problems = problems_of(world.environment, randomness, self._dim)
                parts.append(self._labelled(collect(problems, self._recipe.behaviours, randomness), randomness))
            if own:
                randomness = self._randomness(OWN_SEED, number, own)
                parts.append(self._labelled(self._own(world, randomness, player), randomness))
            order = self._randomness(TRAINING_SEED, number, batch * steps).stream("order").uniform()
            order = order.view(self._part.count, -1).argsort(dim=1)  # [S, rows] of every shard on its own
        for rows in order.view(self._part.count, steps, batch).unbind(1):
            yield self._mixed(parts, rows)

    def _randomness(self, root: int, number: int, size: int) -> Randomness:
        return Randomness(root + self._recipe.seed, self._part.chunks(number), size=size, device=self._device)

    def _labelled(self, trajectories: Trajectories, randomness: Randomness) -> tuple[Trajectories, Tensor]:
        return trajectories, label(trajectories, self._recipe.labels, randomness)

    def _own(self, world: TrainingWorld, randomness: Randomness, player: Player) -> Trajectories:
        """Trajectories of the policy, with a few uniform arms."""
        horizon, arms = world.environment.horizon, world.environment.arms
        problems = problems_of(world.environment, randomness, self._dim)
        gumbel = standard_gumbel(randomness.stream("own-gumbel").uniform(horizon, arms))
        share = randomness.stream("own-share").uniform().unsqueeze(1) ** 2
        uniform = randomness.stream("own-uniform").uniform(horizon)
        explore = torch.where(randomness.stream("own-coins").uniform(horizon) < share, uniform, -1.0)
        return player.play(problems, gumbel, explore)

    def _mixed(self, parts: list[tuple[Trajectories, Tensor]], rows: Tensor) -> Batch:
        """A batch of some rows `[S, n]` of every shard, out of the behaviours' trajectories and the policy's own."""
        first, pieces, places = 0, [], []
        for trajectories, labels in parts:
            size = len(labels) // self._part.count
            mine = (rows >= first) & (rows < first + size)
            shard = torch.arange(self._part.count, device=rows.device).unsqueeze(1) * size
            pieces.append(batch_of(trajectories, labels, (rows - first + shard)[mine]))
            places.append(mine.flatten().nonzero().squeeze(1))
            first += size
        if len(pieces) == 1:
            return pieces[0]
        order = torch.cat(places).argsort()  # shard after shard again
        names = ("features", "arms", "rewards", "labels") + (("offered",) if pieces[0].offered is not None else ())
        return Batch(**{name: torch.cat([getattr(piece, name) for piece in pieces])[order] for name in names})


def shortened(world: TrainingWorld, times: int) -> TrainingWorld:
    """The same world with its rounds halved so many times."""
    horizon = max(1, world.environment.horizon >> times)
    try:
        return replace(world, environment=replace(cast(Any, world.environment), horizon=horizon))
    except TypeError:
        raise InputError(
            f"short is set, but '{world.environment.name}' cannot be cut short; make it a dataclass with a field "
            "horizon, or give short 0"
        ) from None


def halvings(step: int, recipe: Recipe) -> int:
    """How often the horizon is halved at some step: three times at first, then twice, then once."""
    short = recipe.short * recipe.steps
    return 3 - int(3 * step / short) if step < short else 0


def draw_place(worlds: list[TrainingWorld], seed: int, number: int) -> int:
    """The place of one of several worlds, drawn by share, from (seed, number) alone."""
    root = np.random.SeedSequence(seed, spawn_key=(number, zlib.crc32(b"world")))
    shares = np.array([world.share for world in worlds])
    return int(np.random.default_rng(root).choice(len(worlds), p=shares / shares.sum()))


@dataclass(frozen=True)
class Rollouts:
    """Several rollouts of each problem: row r is rollout r // P of problem r % P."""

    trajectories: Trajectories  # R·P rows
    suboptimality: Tensor  # [R·P, T, A] of every arm, in units of the problem's average
    count: int  # R


class OwnRollouts:
    """One process' part of the rollouts that fine-tuning learns from. All about step n comes from (seed, n)."""

    def __init__(self, worlds: list[TrainingWorld], recipe: Recipe, dim: int, device: torch.device, part: Part) -> None:
        self._worlds, self._recipe, self._dim, self._device, self._part = worlds, recipe, dim, device, part

    def roll(self, step: int, player: Player) -> Rollouts:
        """Play new problems, each several times with the same chance."""
        recipe, count = self._recipe, self._recipe.tuning_rollouts
        environment = self._worlds[draw_place(self._worlds, recipe.seed + 1, step)].environment
        size = self._part.each(recipe.tuning_tokens // environment.horizon // count)
        with torch.no_grad():
            chunks = self._part.chunks(step)
            randomness = Randomness(TUNING_SEED + recipe.seed, chunks, size=size, device=self._device)
            problems = problems_of(environment, randomness, self._dim).repeat(count)
            uniform = randomness.stream("gumbel").uniform(count, environment.horizon, environment.arms)
            played = player.play(problems, standard_gumbel(uniform.transpose(0, 1).flatten(0, 1)))
            suboptimality = played.on_offer.suboptimality
            suboptimality = suboptimality / suboptimality.mean(dim=(1, 2), keepdim=True).clamp(min=1e-6)
        return Rollouts(played, suboptimality, count)
