"""Rows of a table on offer as items, some in each round.

An item's features are its row's, standardised, and a constant 1. With `class`, an item of the wanted class pays 1 and
all others 0, without noise; another class is wanted after each change. With `linear`, an item is worth 2⟨x, w⟩/√c with
w ~ N(0, I), so that worths vary by about 1 over the table, and pays that plus noise; w is drawn anew at each change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from driftformer.environments.items import Pays
from driftformer.environments.relabelling import check_changes, draw_labels, draw_times, epoch_of
from driftformer.environments.rewards import LAWS, RewardLaw
from driftformer.environments.table_data import LARGEST_FEATURE, TableData
from driftformer.errors import InputError, require_count, require_real
from driftformer.problem import Observation, Traits, Truth, pick
from driftformer.randomness import Randomness


@dataclass(frozen=True)
class Demand:
    """What is wanted: drawn once, read round by round."""

    contexts: Tensor  # [N, c + 1]
    classes: Tensor  # [N]
    times: Tensor  # [B, J] rounds in which the demand changes, in ascending order
    wanted: Tensor  # [B, J + 1] the class, before and after each change
    weights: Tensor  # [B, J + 1, c + 1] of a linear law


@dataclass(frozen=True)
class ItemsWorld:
    """A batch of problems in round t."""

    t: int
    observation: Observation
    values: Tensor  # [B, A]
    spread: Tensor  # [B] standard deviation of the noise
    epoch: Tensor  # [B] which demand is in force
    changed: Tensor  # [B] bool: another one than in the round before
    demand: Demand


@dataclass(frozen=True, kw_only=True)
class ItemsBandit:
    """Random rows on offer in each round."""

    largest_feature: ClassVar[float] = LARGEST_FEATURE
    name: str = "items"
    data: TableData
    horizon: int
    arms: int
    pays: Pays = "class"
    noise: float = 0.0
    changes: int = 0
    times: tuple[int, ...] = ()
    width: int = 0

    def __post_init__(self) -> None:
        require_count("horizon", self.horizon)
        require_count("arms", self.arms, 2)
        require_real("noise", self.noise, 0.0)
        if self.data.pays.ndim == 2:
            raise InputError(f"data is {self.data.label} with a reward for each arm; items need classes")
        times = check_changes(self.changes, self.times, self.width, self.horizon)
        object.__setattr__(self, "times", times)

    @property
    def dim(self) -> int:
        return 1 + int(self.data.contexts.shape[1])

    @property
    def rewards(self) -> RewardLaw:
        return LAWS["normal"]

    @property
    def traits(self) -> Traits:
        return Traits(abrupt=self.width == 0)

    def reset(self, randomness: Randomness) -> ItemsWorld:
        rng, like = randomness.stream("drift"), torch.empty(randomness.batch, device=randomness.device)
        contexts = torch.from_numpy(self.data.contexts).to(randomness.device, randomness.dtype)
        contexts = torch.cat([contexts, torch.ones_like(contexts[:, :1])], dim=1)
        times = draw_times(rng, like, self.changes, self.times, self.width, self.horizon)
        epochs = times.shape[1] + 1
        first = (rng.uniform() * self.data.arms).long().unsqueeze(1)  # [B, 1]
        wanted = draw_labels(rng, like, self.data.arms, epochs - 1).gather(2, first.unsqueeze(1).expand(-1, epochs, -1))
        weights = randomness.stream("weights").normal(epochs, self.dim) * (2 / (self.dim - 1) ** 0.5)
        weights[:, :, -1] = 0  # the constant says nothing of an item
        classes = torch.from_numpy(self.data.pays).to(randomness.device)
        demand = Demand(contexts, classes, times, wanted.squeeze(2), weights)
        epoch = torch.zeros_like(first[:, 0])
        return self._world(1, epoch, epoch.bool(), demand, randomness)

    def step(self, world: ItemsWorld, arm: Tensor, randomness: Randomness) -> tuple[Tensor, Tensor, ItemsWorld]:
        worth = pick(world.values, arm)
        reward = self.rewards.reward(worth, world.spread, self.rewards.noise(randomness.stream("noise")))
        # Nothing comes after the last round.
        following = self.advance(world, randomness) if world.t < self.horizon else replace(world, t=world.t + 1)
        return reward, world.values.amax(dim=1) - worth, following

    def advance(self, world: ItemsWorld, randomness: Randomness) -> ItemsWorld:
        """The world of the next round, whatever arm is pulled in this one."""
        t, demand = world.t + 1, world.demand
        epoch = epoch_of(t, demand.times, self.width, randomness)
        return self._world(t, epoch, epoch != world.epoch, demand, randomness)

    def _world(self, t: int, epoch: Tensor, changed: Tensor, demand: Demand, randomness: Randomness) -> ItemsWorld:
        drawn = randomness.stream("rows").uniform(self.arms)
        rows = (drawn * len(demand.contexts)).long()  # [B, A]
        features = demand.contexts[rows]  # [B, A, c + 1]
        if self.pays == "class":
            values = (demand.classes[rows] == pick(demand.wanted, epoch).unsqueeze(1)).to(features.dtype)
        else:
            values = (features * pick(demand.weights, epoch).unsqueeze(1)).sum(-1)
        spread = torch.full_like(values[:, 0], self.noise)
        return ItemsWorld(t, Observation(features), values, spread, epoch, changed, demand)

    def truth(self, world: ItemsWorld) -> Truth:
        return Truth(world.values, world.changed)

    def describe(self) -> str:
        told = [self.data.label, f"items that pay by {'class' if self.pays == 'class' else 'a linear law'}"]
        told += [f"changes={self.changes}"] if self.changes else []
        told += [f"changes in rounds {', '.join(map(str, self.times))}"] if self.times else []
        told += [f"width={self.width}"] if self.width else []
        return f"{self.name}: {', '.join(told)}, T={self.horizon}, d={self.dim}, {self.arms} on offer"

    def config(self) -> dict[str, Any]:
        plain = ("name", "horizon", "dim", "arms", "pays", "noise", "changes", "width")
        content = dict(zip(("features", "pays"), self.data.content, strict=True))
        return {key: getattr(self, key) for key in plain} | {"times": list(self.times), "data": content}
