"""The stochastic linear bandit of Section 5, in batches, under any drift, and its relatives.

The predictor of arm a in round t is scale_t·⟨a, w_t⟩ + shift_t. A link turns it into the mean reward (as it is, or by
σ for clicks), a reward law into a reward. Arms are

- `fixed`: Unif[-1,1]^d, drawn once for each problem (the paper's), or `resampled` in every round;
- `one-hot`: K arms without features, the unit vectors;
- `disjoint`: one context ~ Unif[-1,1]^c in every round, placed in the block of each arm, so that every arm has its own
  c parameters and d = A·c.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from driftformer.environments import drift as drifts
from driftformer.environments.rewards import LAWS, LINKS, RewardLaw
from driftformer.errors import InputError, require_choice, require_count, require_real
from driftformer.problem import LinearTruth, Observation, Traits, Truth, pick
from driftformer.randomness import CHUNK, Randomness
from driftformer.storage.fingerprint import identify

ArmMode = Literal["fixed", "resampled", "one-hot", "disjoint"]


@dataclass(frozen=True)
class LinearWorld:
    """A batch of linear bandits in round t."""

    t: int
    observation: Observation
    values: Tensor  # [B, A]
    spread: Tensor  # [B] scale·noise
    effect: drifts.Effect
    origin: drifts.Effect  # before any drift: w* as drawn, scale 1, shift 0
    memory: Any  # the drift's
    changed: Tensor  # [B] bool: w, scale or shift differ from those of the round before


@dataclass(frozen=True, kw_only=True)
class LinearBandit:
    """M = (w*, noise, A_1, …, A_T) with a drift."""

    name: str = "linear-bandit"
    horizon: int
    dim: int = 32
    arms: int = 10
    noise: float = 1.5
    law: str = "normal"
    link: str = "identity"
    prior: drifts.PriorName = "uniform"
    arm_mode: ArmMode = "fixed"
    offered: float = 1.0
    drift: drifts.Drift = field(default_factory=drifts.Stationary)

    def __post_init__(self) -> None:
        require_count("horizon", self.horizon, most=10**8)
        require_count("dim", self.dim)
        require_count("arms", self.arms)
        if CHUNK * self.dim * max(self.dim, self.arms) > 2**31:
            raise InputError(
                f"dim is {self.dim} and arms is {self.arms}; {CHUNK} problems of that size need more than 8 GiB, "
                "so give fewer"
            )
        require_real("noise", self.noise, 0.0)
        require_real("offered", self.offered, 0.0, most=1.0)
        require_choice("law", self.law, LAWS)
        require_choice("link", self.link, LINKS)
        require_choice("prior", self.prior, get_args(drifts.PriorName))
        require_choice("arm_mode", self.arm_mode, get_args(ArmMode))

    @property
    def rewards(self) -> RewardLaw:
        return LAWS[self.law]

    @cached_property
    def traits(self) -> Traits:
        return Traits(
            one_hot=self.arm_mode == "one-hot",
            same_arms=self.arm_mode in ("fixed", "one-hot"),
            linear=self.link != "logistic" and drifts.declares(self.drift, "piecewise_constant"),
            abrupt=drifts.declares(self.drift, "abrupt"),
        )

    def reset(self, randomness: Randomness) -> LinearWorld:
        w = drifts.draw(self.prior, self.dim, randomness.stream("parameter"))
        one = torch.ones_like(w[:, 0])
        origin = drifts.Effect(w=w, scale=one, shift=torch.zeros_like(one), redrawn=torch.zeros_like(one).bool())
        rng = randomness.stream("drift")
        observation = self._observe(randomness, None)
        place = torch.arange(len(w), device=w.device) % randomness.size
        start = drifts.Start(w, self.horizon, self.prior, rng, observation.action_set, place)
        effect, memory = self.drift.at(1, origin, self.drift.start(start), rng)
        values = self.values_of(observation.action_set, effect)
        return LinearWorld(1, observation, values, effect.scale * self.noise, effect, origin, memory, origin.redrawn)

    def step(self, world: LinearWorld, arm: Tensor, randomness: Randomness) -> tuple[Tensor, Tensor, LinearWorld]:
        noise = self.rewards.noise(randomness.stream("noise"))  # [B]
        mean = pick(world.values, arm)
        reward = self.rewards.reward(mean, world.spread, noise)
        suboptimality = world.observation.masked(world.values).amax(dim=1) - mean
        # Nothing comes after the last round.
        following = self.advance(world, randomness) if world.t < self.horizon else replace(world, t=world.t + 1)
        return reward, suboptimality, following

    def advance(self, world: LinearWorld, randomness: Randomness) -> LinearWorld:
        """The world of the next round, whatever arm is pulled in this one."""
        t = world.t + 1
        effect, memory = self.drift.at(t, world.origin, world.memory, randomness.stream("drift"))
        observation, values = self._observe(randomness, world.observation), world.values
        if observation.action_set is not world.observation.action_set or effect is not world.effect:
            values = self.values_of(observation.action_set, effect)
        if effect is world.effect:
            spread, changed = world.spread, world.origin.redrawn
        else:
            spread, changed = effect.scale * self.noise, _changed(world.effect, effect)
        return LinearWorld(t, observation, values, spread, effect, world.origin, memory, changed)

    def _observe(self, randomness: Randomness, before: Observation | None) -> Observation:
        """What is on offer in a round, after the one before it."""
        if before is None or self.arm_mode in ("resampled", "disjoint"):
            action_set = self._action_set(randomness)
        elif self.offered == 1:
            return before
        else:
            action_set = before.action_set
        if self.offered == 1:
            return Observation(action_set)
        chance = randomness.stream("offered").uniform(self.arms)  # [B, A]; the arm with the least is always on offer
        return Observation(action_set, (chance < self.offered) | (chance == chance.amin(dim=1, keepdim=True)))

    def _action_set(self, randomness: Randomness) -> Tensor:
        rng = randomness.stream("features")
        if self.arm_mode in ("fixed", "resampled"):
            return rng.symmetric(self.arms, self.dim)
        eye = torch.eye(self.arms, device=randomness.device, dtype=randomness.dtype)
        if self.arm_mode == "one-hot":
            return eye.expand(randomness.batch, -1, -1).contiguous()
        context = rng.symmetric(self.dim // self.arms)  # [B, c]
        return torch.einsum("ij,bc->bijc", eye, context).flatten(2)  # [B, A, A·c]

    def values_of(self, arms: Tensor, effect: drifts.Effect) -> Tensor:
        """The mean rewards `[B, A]` of any arms `[B, A, d]`, offered or not."""
        inner = (arms * effect.w.unsqueeze(1)).sum(-1)  # [B, A]
        return LINKS[self.link](torch.addcmul(effect.shift.unsqueeze(1), inner, effect.scale.unsqueeze(1)))

    def truth(self, world: LinearWorld) -> Truth:
        mean, variance = drifts.moments(self.prior, self.dim)
        noise = self.noise if self.law != "bernoulli" else 0.5  # the most that a Bernoulli variable can have
        effect = world.effect
        linear = LinearTruth(effect.scale, effect.shift, effect.redrawn, noise, mean, variance)
        return Truth(world.values, world.changed, linear if self.traits.linear else None)

    def describe(self) -> str:
        told = [f"{key}={value}" for key, value in _plain(self.drift).items()]
        told += [f"T={self.horizon}", f"d={self.dim}", f"{self.arms} {self.arm_mode} arms"]
        told += [f"{self.offered:.0%} of them on offer"] if self.offered < 1 else []
        return f"{self.name}: {', '.join(told)}"

    def config(self) -> dict[str, Any]:
        return {own.name: getattr(self, own.name) for own in fields(self)} | {"drift": identify(self.drift)}


def _plain(drift: drifts.Drift) -> dict[str, float]:
    """The plain numbers of a drift, or of those that it composes, apart from a change of units."""
    parts = [part for part in getattr(drift, "drifts", [drift]) if not isinstance(part, drifts.Affine)]
    told = {key: value for part in parts for key, value in getattr(part, "__dict__", {}).items()}
    return {key: value for key, value in told.items() if isinstance(value, (int, float)) and value is not False}


def _changed(before: drifts.Effect, after: drifts.Effect) -> Tensor:
    moved = (before.w != after.w).any(dim=1) if before.w is not after.w else after.redrawn
    return moved | (before.scale != after.scale) | (before.shift != after.shift)
