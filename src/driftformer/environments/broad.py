"""A prior over what happens in the world: every problem draws its own kind of arms, weights, noise and change.

This is what the generalist is pretrained on. Nothing here fits a named environment; most of them are possible draws.
Units play no part (a policy that reads statistics does not see them), so the noise has standard deviation 1 throughout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from driftformer.environments.linear import ArmMode
from driftformer.environments.rewards import LAWS, RewardLaw
from driftformer.errors import require_choice, require_count
from driftformer.problem import Observation, Traits, Truth, pick
from driftformer.randomness import Randomness, Stream

FEATURES = {"uniform": 0.45, "normal": 0.15, "binary": 0.1, "sparse": 0.1, "positive": 0.1, "correlated": 0.1}
"""Kinds of features, by share; arms without features are a mode of their own."""

WEIGHTS = {"positive": 0.35, "both signs": 0.4, "sparse": 0.1, "around a mean": 0.15}
"""Kinds of weights w."""

CHANGES = {
    "none": 0.14,
    "cosine": 0.18,
    "chirp": 0.02,
    "jumps": 0.16,
    "flips": 0.1,
    "walk": 0.11,
    "rising": 0.12,
    "swings": 0.05,
    "seasons": 0.06,
    "recurring": 0.06,
}
"""Kinds of change; a tenth of the problems has two of them."""

_EPOCHS = 8
"""Draws of w that a problem has."""
_PAPER_SIGNAL = 1.58
"""Variance of rewards over that of the noise in the paper's worlds."""


@dataclass(frozen=True)
class BroadWorld:
    t: int
    observation: Observation
    values: Tensor  # [B, A]
    spread: Tensor  # [B]
    course: _Course


@dataclass(frozen=True)
class _Course:
    """All that is drawn at the start."""

    kind: Tensor  # [B] of features
    columns: Tensor  # [B, 1, d] their sizes
    mixing: tuple[Tensor, Tensor]  # [B, d, 1], [B, 1, d]
    w: Tensor  # [B, T, d]
    scale: Tensor  # [B, T]
    shift: Tensor  # [B, T]
    spread: Tensor  # [B, T]
    size: Tensor  # [B, 1] standard deviation of rewards between arms
    curve: Tensor  # [B, 1] bool: rewards bend
    click: tuple[Tensor, Tensor]  # [B, 1] each: slope and offset of a click's log-odds


@dataclass(frozen=True, kw_only=True)
class BroadBandit:
    """A bandit about which nothing is known but its size."""

    name: str = "broad"
    horizon: int = 200
    dim: int = 32
    arms: int = 10
    arm_mode: ArmMode = "fixed"
    law: str = "normal"
    offered: float = 1.0
    bent: float = 0.0
    """Share of problems whose rewards are no linear function of features."""

    def __post_init__(self) -> None:
        for size in ("horizon", "dim", "arms"):
            require_count(size, getattr(self, size))
        require_choice("law", self.law, LAWS)

    @property
    def rewards(self) -> RewardLaw:
        return LAWS[self.law]

    @cached_property
    def traits(self) -> Traits:
        same = self.arm_mode in ("fixed", "one-hot")
        return Traits(one_hot=self.arm_mode == "one-hot", same_arms=same, linear=False, abrupt=False)

    def reset(self, randomness: Randomness) -> BroadWorld:
        rng = randomness.stream("parameter")
        kind = _choice(FEATURES, rng.uniform())
        columns = torch.where(rng.uniform() < 0.2, 1.0, 0.0)[:, None, None] * rng.normal(1, self.dim)
        mixing = (_unit(rng.normal(self.dim)).unsqueeze(2), _unit(rng.normal(self.dim)).unsqueeze(1))
        blank = torch.zeros(randomness.batch, 1, device=randomness.device, dtype=randomness.dtype)
        empty = _Course(kind, columns.exp(), mixing, *(blank,) * 4, blank, blank > 0, (blank, blank))
        action_set = self._action_set(empty, randomness)
        course = self._changes(replace(empty, **self._weights(empty, action_set, rng)), action_set, rng)
        return self._at(1, self._offer(action_set, randomness), course)

    def advance(self, world: BroadWorld, randomness: Randomness) -> BroadWorld:
        """The world of the next round, whatever arm is pulled in this one."""
        same = self.arm_mode in ("fixed", "one-hot")
        observation = world.observation
        if not same or self.offered < 1:
            action_set = observation.action_set if same else self._action_set(world.course, randomness)
            observation = self._offer(action_set, randomness)
        return self._at(world.t + 1, observation, world.course)

    def step(self, world: BroadWorld, arm: Tensor, randomness: Randomness) -> tuple[Tensor, Tensor, BroadWorld]:
        mean = pick(world.values, arm)
        reward = self.rewards.reward(mean, world.spread, self.rewards.noise(randomness.stream("noise")))
        suboptimality = world.observation.masked(world.values).amax(dim=1) - mean
        following = self.advance(world, randomness) if world.t < self.horizon else replace(world, t=world.t + 1)
        return reward, suboptimality, following

    def truth(self, world: BroadWorld) -> Truth:
        return Truth(world.values, torch.zeros_like(world.spread).bool(), None)

    def describe(self) -> str:
        return f"{self.name}: T={self.horizon}, d={self.dim}, {self.arms} {self.arm_mode} arms, {self.law} rewards"

    def config(self) -> dict[str, Any]:
        plain = ("name", "horizon", "dim", "arms", "arm_mode", "law", "offered", "bent")
        return {key: getattr(self, key) for key in plain}

    def _offer(self, action_set: Tensor, randomness: Randomness) -> Observation:
        if self.offered == 1:
            return Observation(action_set)
        chance = randomness.stream("offered").uniform(self.arms)
        return Observation(action_set, (chance < self.offered) | (chance == chance.amin(dim=1, keepdim=True)))

    def _action_set(self, course: _Course, randomness: Randomness) -> Tensor:
        if self.arm_mode == "one-hot":
            eye = torch.eye(self.arms, self.dim, device=randomness.device, dtype=randomness.dtype)
            return eye.expand(randomness.batch, -1, -1).contiguous()
        rows = 1 if self.arm_mode == "disjoint" else self.arms
        width = self.dim // self.arms if self.arm_mode == "disjoint" else self.dim
        u = randomness.stream("features").symmetric(rows, width)
        kinds = {
            "uniform": u,
            "normal": torch.erfinv(u * 0.999) * math.sqrt(2),
            "binary": (u > 0).to(u),
            "sparse": u * 4 * (u.abs() < 0.25),
            "positive": (u + 1) / 2,
            "correlated": u,
        }
        which = course.kind[:, None, None]
        x = sum((which == place) * value for place, value in enumerate(kinds.values()))
        assert isinstance(x, Tensor)
        if self.arm_mode == "disjoint":
            eye = torch.eye(self.arms, device=u.device, dtype=u.dtype)
            return torch.einsum("ij,bc->bijc", eye, x.squeeze(1)).flatten(2)  # [B, A, A·c]
        x = x * course.columns
        along = torch.bmm(x, course.mixing[0]) * (2.0 * (which == list(kinds).index("correlated")))
        return x + along * course.mixing[1]

    def _weights(self, course: _Course, action_set: Tensor, rng: Stream) -> dict[str, Any]:
        """Draws of w, one after the other in `w`, such that rewards have a drawn size."""
        kind = _choice(WEIGHTS, rng.uniform())[:, None, None]
        normal, uniform = rng.normal(_EPOCHS, self.dim), rng.uniform(_EPOCHS, self.dim)
        density = 0.1 + 0.4 * rng.uniform()
        sparse = normal * (uniform[:, :1] < density[:, None, None])
        centre = 1.5 * rng.normal()[:, None, None]
        kinds = (uniform, normal, sparse + 1e-3 * normal, normal + centre)
        w = sum((kind == place) * value for place, value in enumerate(kinds))
        assert isinstance(w, Tensor)
        signal = torch.exp(math.log(0.05) + math.log(30 / 0.05) * rng.uniform())
        signal = torch.where(rng.uniform() < 0.4, _PAPER_SIGNAL, signal).sqrt()  # [B]
        between = action_set - action_set.mean(dim=1, keepdim=True)
        size = torch.einsum("bad,bed->bae", between, w).square().mean(dim=(1, 2)).sqrt()
        size = size * math.sqrt(self.arms / max(1, self.arms - 1))
        least = 0.1 * w.square().sum(2).mean(1).sqrt()  # where the first arms happen to be nearly alike
        w = w * (signal / torch.maximum(size, least))[:, None, None]
        slope, offset = 0.3 + 2.2 * rng.uniform(), 4 * rng.uniform() - 3
        curve = (rng.uniform() < self.bent).unsqueeze(1)
        return {
            "w": w,
            "size": signal.unsqueeze(1),
            "curve": curve,
            "click": (slope.unsqueeze(1), offset.unsqueeze(1)),
        }

    def _changes(self, course: _Course, action_set: Tensor, rng: Stream) -> _Course:
        horizon, epochs = self.horizon, course.w  # [B, E, d]
        kind = _choice(CHANGES, rng.uniform())
        second = torch.where(rng.uniform() < 0.1, _choice(CHANGES, rng.uniform()), -1)

        def has(name: str) -> Tensor:
            place = list(CHANGES).index(name)
            return ((kind == place) | (second == place)).unsqueeze(1)  # [B, 1]

        t = torch.arange(1, horizon + 1, device=epochs.device, dtype=epochs.dtype)  # [T]
        done = t / horizon
        low, high = math.log(0.4 / horizon), math.log(0.035)
        spread_out = 0.002 + 0.033 * rng.uniform(1)
        b = torch.where(rng.uniform(1) < 0.7, spread_out, (low + (high - low) * rng.uniform(1)).exp())
        phase = 2 * math.pi * rng.uniform(1) * (rng.uniform(1) > 0.6)
        last = 0.002 + 0.033 * rng.uniform(1)
        scale = torch.ones_like(phase * t)  # [B, T]
        scale = torch.where(has("cosine"), torch.cos(2 * math.pi * b * t + phase), scale)
        scale = torch.where(has("chirp"), torch.cos(2 * math.pi * (b + (last - b) * done / 2) * t), scale)
        count = self._count(rng, done)  # [B, T] changes so far
        scale = scale * torch.where(has("flips"), 1 - 2 * (count % 2), 1.0)
        worlds = 2 + (rng.uniform(1) < 0.3).to(count)
        epoch = torch.where(has("jumps"), count, torch.where(has("recurring"), count % worlds, 0.0)).long()
        w = epochs.gather(1, epoch.unsqueeze(2).expand(-1, -1, self.dim))  # [B, T, d]
        period = horizon * (0.1 + 1.4 * rng.uniform(1))
        season = (1 - torch.cos(2 * math.pi * (t / period + phase))) / 2 * has("seasons")
        w = w + season.unsqueeze(2) * (epochs[:, -1:] - w)
        length = epochs[:, 0].norm(dim=1, keepdim=True) * 7 * rng.uniform(1).square() / horizon  # [B, 1]
        steps = _unit(rng.normal(horizon, self.dim)) * (length * has("walk")).unsqueeze(2)
        w = w + steps.cumsum(1)
        pace = 2 * math.pi * (0.3 + 3.7 * rng.uniform(1, self.dim)) * done[:, None]  # [B, T, d]
        swing = torch.sin(pace + 2 * math.pi * rng.uniform(1, self.dim))  # each weight at its own pace
        height = 1.5 * rng.uniform(1, 1) * has("swings").unsqueeze(2)
        w = w + swing * height * epochs[:, :1].square().mean(dim=2, keepdim=True).sqrt()
        w = w + self._rise(action_set, done, course.size, rng) * has("rising").unsqueeze(2)
        noise = torch.where(rng.uniform(1) < 0.75, scale, 1.0)  # as the paper's, or of constant size
        lift = course.size * torch.exp(math.log(0.5) + math.log(40) * rng.uniform(1)) * rng.symmetric(1).sign()
        begin = rng.uniform(2, 1)  # [B, 2, 1] windows
        inside = ((begin < done) & (done < begin + 0.02 + 0.2 * rng.uniform(2, 1))).any(dim=1)  # [B, T]
        shift = lift * inside * (rng.uniform(1) < 0.2) + course.size * rng.normal(1) * 2
        return replace(course, w=w, scale=scale, shift=shift, spread=noise)

    def _count(self, rng: Stream, done: Tensor) -> Tensor:
        """How many of 1 to 7 changes, at random times, have come by each round, `[B, T]`."""
        most = _EPOCHS - 1
        times = rng.uniform(most, 1)
        asked = 1 + torch.floor(rng.uniform(1, 1) * most)
        every = torch.arange(most, device=done.device)[:, None] < asked
        return ((times <= done) & every).sum(dim=1).to(done)

    def _rise(self, action_set: Tensor, done: Tensor, size: Tensor, rng: Stream) -> Tensor:
        """w moves such that one arm, of those first on offer, gains or loses steadily, `[B, T, d]`."""
        gram = torch.bmm(action_set, action_set.mT)
        gram = gram + (1e-2 * gram.diagonal(dim1=1, dim2=2).mean(1) + 1e-2)[:, None, None] * torch.eye(
            self.arms, device=gram.device, dtype=gram.dtype
        )
        first = torch.nn.functional.one_hot(torch.zeros_like(size[:, 0]).long(), self.arms).to(gram)
        several = torch.where(rng.uniform(1) < 0.3, rng.normal(self.arms) * 0.5, first)  # [B, A]
        direction = torch.bmm(action_set.mT, torch.linalg.solve(gram, several.unsqueeze(2))).squeeze(2)  # [B, d]
        height = size * (1 + 5 * rng.uniform(1)) * torch.where(rng.uniform(1) < 0.85, 1.0, -1.0)
        start = 0.7 * rng.uniform(1) * (rng.uniform(1) < 0.5)
        ramp = ((done - start) / (1 - start)).clamp(min=0)
        return (height * ramp).unsqueeze(2) * direction.unsqueeze(1)

    def _at(self, t: int, observation: Observation, course: _Course) -> BroadWorld:
        w, scale = course.w[:, t - 1], course.scale[:, t - 1 : t]
        inner = torch.bmm(observation.action_set, w.unsqueeze(2)).squeeze(2)  # [B, A]
        if self.bent:
            bend = course.size * (torch.tanh(inner / course.size) + 0.7 * torch.cos(2 * inner / course.size))
            inner = torch.where(course.curve, bend, inner)
        values = inner * scale
        if self.law == "bernoulli":
            slope, offset = course.click
            values = torch.sigmoid(offset + slope * values / course.size)
        else:
            values = values + course.shift[:, t - 1 : t]
        return BroadWorld(t, observation, values, course.spread[:, t - 1], course)


def _choice(shares: dict[str, float], uniform: Tensor) -> Tensor:
    """The place of one of the names, by share, `[B]`."""
    ends = torch.tensor(list(shares.values()), device=uniform.device, dtype=uniform.dtype).cumsum(0)
    return (uniform.unsqueeze(1) * ends[-1] >= ends[:-1]).sum(dim=1)


def _unit(vectors: Tensor) -> Tensor:
    return torch.nn.functional.normalize(vectors, dim=-1)
