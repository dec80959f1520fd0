"""Gradient steps, one after the other: on labels (Equation sup-train-goal), then on the policy's own regret."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

import torch
from torch import Tensor

from driftformer.models.configuration import tokens_in
from driftformer.models.incontext import InContextPolicy
from driftformer.pretraining.data import Batch, OwnRollouts, TrainingData
from driftformer.pretraining.losses import Average, label_loss, tuning_loss
from driftformer.pretraining.play import Player
from driftformer.pretraining.processes import Part
from driftformer.pretraining.recipes import Recipe
from driftformer.pretraining.state import TrainingState
from driftformer.pretraining.step import Stepper


@dataclass(frozen=True)
class Step:
    """What one step did."""

    phase: str  # labels or regret
    number: int
    of: int
    loss: Tensor  # still on its device
    rate: float
    rows: int
    tokens: int  # of each row
    seen: int  # how many of them a token sees at most


def learning_rate(step: int, steps: int, warmup: int, highest: float) -> float:
    """Linear warm-up, then a cosine down to a twentieth of the highest rate."""
    if step < warmup:
        return highest * (step + 1) / warmup
    done = min(1.0, (step - warmup) / max(1, steps - warmup))
    return highest * (0.05 + 0.95 * (1 + math.cos(math.pi * done)) / 2)


@dataclass
class Loop:
    """All that a step needs; `state` says where the training stands and may be saved after any step."""

    recipe: Recipe
    policy: InContextPolicy
    data: TrainingData
    rollouts: OwnRollouts
    player: Player
    stepper: Stepper
    part: Part
    average: Average
    state: TrainingState
    earlier: dict[str, Tensor]  # weights at the beginning of a generation that is under way, if they play part of it

    def steps(self) -> Iterator[Step]:
        """One step after the other, from where the training stands."""
        while self.state.step < self.recipe.steps:
            yield from self._generation()
        if self.state.used:  # the last step was saved before its generation was over
            self._end_generation()
        while self.state.tuning_step < self.recipe.tuning_steps:
            yield self._tuning_step()

    def _generation(self) -> Iterator[Step]:
        recipe, state = self.recipe, self.state
        for batch in self._batches():
            rate = learning_rate(state.step, recipe.steps, recipe.warmup, recipe.rate)
            loss = self.average(self.stepper.accumulate(label_loss, batch.inputs()))
            self.stepper.descend(rate, recipe.clip)
            state.step, state.used = state.step + 1, state.used + 1
            length = tokens_in(recipe.form, batch.arms.shape[1])
            yield Step("labels", state.step, recipe.steps, loss, rate, len(batch.arms), length, length)
            if state.step >= recipe.steps:
                break
        self._end_generation()

    def _end_generation(self) -> None:
        self.state.generation, self.state.used, self.earlier = self.state.generation + 1, 0, {}

    def _batches(self) -> Iterator[Batch]:
        """What is left of a generation; one that was begun earlier is played again by the weights of then."""
        state = self.state
        now = {name: value.clone() for name, value in self.policy.state_dict().items()} if self.recipe.own else {}
        if self.earlier:
            self.policy.load_state_dict(self.earlier)
        step = state.step - state.used  # where the generation began
        batches = self.data.generation(state.generation, step, self.player)
        first = list(islice(batches, 1))  # all of it has been played now
        if self.earlier:
            self.policy.load_state_dict(now)
        else:
            self.earlier = now
        return islice(chain(first, batches), state.used, None)

    def _tuning_step(self) -> Step:
        recipe, state = self.recipe, self.state
        if state.tuning_step == 0:
            self._sharpen(recipe.tuning_sharpen)
        rolled = self.rollouts.roll(state.tuning_step, self.player)
        rate = learning_rate(state.tuning_step, recipe.tuning_steps, recipe.warmup // 10, recipe.tuning_rate)
        played, laid = rolled.trajectories, rolled.trajectories.on_offer
        rows, horizon = played.arms.shape
        every = torch.arange(rows, device=played.arms.device).view(
            rolled.count, self.part.count, -1
        )  # [R, S, problems]
        parts = torch.tensor_split(every, min(every.shape[2], recipe.tuning_updates), dim=2)  # some of every shard
        loss = functools.partial(tuning_loss, recipe.tuning_rollouts, recipe.tuning_future, self.average)
        regrets = []
        for chosen in (part.flatten() for part in parts):
            inputs = [laid.features, played.arms, played.rewards, rolled.suboptimality]
            inputs += [] if laid.offered is None else [laid.offered]
            regrets.append(self.stepper.accumulate(loss, tuple(value[chosen] for value in inputs)))
            self.stepper.descend(rate, recipe.tuning_clip)
        state.tuning_step += 1
        regret = self.average(torch.stack(regrets).mean())
        length = tokens_in(recipe.form, horizon)
        return Step("regret", state.tuning_step, recipe.tuning_steps, regret, rate, rows, length, length)

    @torch.no_grad()
    def _sharpen(self, factor: float) -> None:
        """Multiply all logits."""
        for parameter in self.policy.head.parameters():
            parameter.mul_(factor)
