"""A table played as a bandit, one row in each round.

Arm k's features are the row's features and a constant 1 in the k-th of A blocks, zeros elsewhere, so that linear agents
learn a model of their own for each arm. Rewards have no noise: an arm pays exactly what it is worth.
Labels may change their meaning: see `relabelling.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from driftformer.environments.relabelling import check_changes, draw_labels, draw_orders, draw_times, epoch_of
from driftformer.environments.rewards import LAWS, RewardLaw
from driftformer.environments.table import Order
from driftformer.environments.table_data import LARGEST_FEATURE, TableData
from driftformer.errors import InputError, require_count
from driftformer.problem import Observation, Traits, Truth, pick
from driftformer.randomness import CHUNK, Randomness


@dataclass(frozen=True)
class Course:
    """What a batch of problems will meet: drawn once, read round by round."""

    contexts: Tensor  # [N, c + 1]
    pays: Tensor  # [N] classes, or [N, A] rewards
    rows: Tensor  # [B, T] int32
    times: Tensor  # [B, J] rounds in which new labels begin, in ascending order
    labels: Tensor  # [B, J + 1, A] the class that each arm stands for, before and after each change


@dataclass(frozen=True)
class TableWorld:
    """A batch of problems in round t."""

    t: int
    observation: Observation
    values: Tensor  # [B, A]
    spread: Tensor  # [B] zeros: there is no noise
    epoch: Tensor  # [B] which of the labels are in use
    changed: Tensor  # [B] bool: others than in the round before
    course: Course


@dataclass(frozen=True, kw_only=True)
class TableBandit:
    """One pass through a table, or through part of it."""

    largest_feature: ClassVar[float] = LARGEST_FEATURE
    name: str = "table"
    data: TableData
    horizon: int
    order: Order = "shuffled"
    changes: int = 0
    times: tuple[int, ...] = ()
    width: int = 0

    def __post_init__(self) -> None:
        rows = len(self.data.contexts)
        require_count("horizon", self.horizon)
        if self.horizon > rows:
            raise InputError(
                f"horizon is {self.horizon}, but the table has {rows} rows; give at most that, or 0 for all"
            )
        if CHUNK * self.dim * max(self.dim, self.arms) > 2**31:
            raise InputError(
                f"data is {self.data.label}, where {self.arms} arms with {self.dim // self.arms} features each make "
                f"d = {self.dim}; {CHUNK} problems of that size need more than 8 GiB, so drop columns or classes"
            )
        times = check_changes(self.changes, self.times, self.width, self.horizon)
        object.__setattr__(self, "times", times)

    @property
    def arms(self) -> int:
        return self.data.arms

    @property
    def dim(self) -> int:
        return self.data.arms * (1 + int(self.data.contexts.shape[1]))

    @property
    def rewards(self) -> RewardLaw:
        return LAWS["normal"]  # its noise is multiplied by a spread of 0

    @property
    def traits(self) -> Traits:
        return Traits(abrupt=self.width == 0)

    def reset(self, randomness: Randomness) -> TableWorld:
        contexts = torch.from_numpy(self.data.contexts).to(randomness.device, randomness.dtype)
        contexts = torch.cat([contexts, torch.ones_like(contexts[:, :1])], dim=1)
        pays = torch.from_numpy(self.data.pays).to(randomness.device)
        pays = pays.to(randomness.dtype) if pays.ndim == 2 else pays
        course = Course(contexts, pays, self._rows(randomness), *self._labels(randomness))
        first = torch.zeros(randomness.batch, dtype=torch.long, device=randomness.device)
        return self._world(1, first, first.bool(), course)

    def step(self, world: TableWorld, arm: Tensor, randomness: Randomness) -> tuple[Tensor, Tensor, TableWorld]:
        reward = pick(world.values, arm)
        # Nothing comes after the last round.
        following = self.advance(world, randomness) if world.t < self.horizon else replace(world, t=world.t + 1)
        return reward, world.values.amax(dim=1) - reward, following

    def advance(self, world: TableWorld, randomness: Randomness) -> TableWorld:
        """The world of the next round, whatever arm is pulled in this one."""
        t, course = world.t + 1, world.course
        epoch = epoch_of(t, course.times, self.width, randomness)  # [B]
        return self._world(t, epoch, epoch != world.epoch, course)

    def _rows(self, randomness: Randomness) -> Tensor:
        """The row of each round, `[B, T]`."""
        if self.order == "stored":
            rows = torch.arange(self.horizon, dtype=torch.int32, device=randomness.device)
            return rows.expand(randomness.batch, -1)
        return draw_orders(randomness.stream("rows"), len(self.data.contexts))[:, : self.horizon].int()

    def _labels(self, randomness: Randomness) -> tuple[Tensor, Tensor]:
        """When labels change, `[B, J]`, and the class that each arm stands for before and after, `[B, J+1, A]`."""
        rng, like = randomness.stream("drift"), torch.empty(randomness.batch, device=randomness.device)
        times = draw_times(rng, like, self.changes, self.times, self.width, self.horizon)
        return times, draw_labels(rng, like, self.arms, times.shape[1])

    def _world(self, t: int, epoch: Tensor, changed: Tensor, course: Course) -> TableWorld:
        row = course.rows[:, t - 1].long()  # [B]
        context = course.contexts.index_select(0, row)  # [B, c + 1]
        blocks = context.new_zeros(len(row), self.arms, self.arms, context.shape[1])
        blocks.diagonal(dim1=1, dim2=2).copy_(context.unsqueeze(2))
        labels = pick(course.labels, epoch)  # [B, A]
        pays = course.pays.index_select(0, row)
        values = (labels == pays.unsqueeze(1)).to(context.dtype) if pays.ndim == 1 else pays.gather(1, labels)
        return TableWorld(t, Observation(blocks.flatten(2)), values, values.new_zeros(len(row)), epoch, changed, course)

    def truth(self, world: TableWorld) -> Truth:
        return Truth(world.values, world.changed)

    def describe(self) -> str:
        told = [self.data.label, "in stored order" if self.order == "stored" else self.order]
        told += [f"changes={self.changes}"] if self.changes else []
        told += [f"changes in rounds {', '.join(map(str, self.times))}"] if self.times else []
        told += [f"width={self.width}"] if self.width else []
        return f"{self.name}: {', '.join(told)}, T={self.horizon}, d={self.dim}, {self.arms} arms"

    def config(self) -> dict[str, Any]:
        plain = ("name", "horizon", "dim", "arms", "order", "changes", "width")
        content = dict(zip(("features", "pays"), self.data.content, strict=True))
        return {key: getattr(self, key) for key in plain} | {"times": list(self.times), "data": content}
