"""The stochastic linear bandit of Section 5, in batches, under any drift.

r_t = scale_t·(⟨a_t, w_t⟩ + ε_t) + shift_t with ε_t ~ N(0, noise²), or with heavy tails, and arms ~ Unif[-1,1]^d, drawn
once for each problem (`fixed`) or anew in each round (`resampled`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from driftformer.environments import drift as drifts
from driftformer.environments import prior
from driftformer.environments.base import Truth
from driftformer.errors import InputError, require_choice, require_count, require_real
from driftformer.randomness import CHUNK, Randomness, Stream
from driftformer.storage.fingerprint import identify

ArmMode = Literal["fixed", "resampled"]
Tails = Literal["normal", "heavy"]


@dataclass(frozen=True)
class LinearBanditWorld:
    """A batch of linear bandits in round t."""

    t: int
    action_set: Tensor  # [B, A, d]
    mean_rewards: Tensor  # [B, A]
    effect: drifts.Effect
    origin: drifts.Effect  # before any drift: w* as drawn, scale 1, shift 0
    memory: Any  # the drift's
    changed: Tensor  # [B] bool: w, scale or shift are others than in the round before


@dataclass(frozen=True, kw_only=True)
class LinearBandit:
    """M = (w*, noise, A_1, …, A_T) with a drift."""

    name: str = "linear-bandit"
    horizon: int
    dim: int = 32
    arms: int = 10
    noise: float = 1.5
    tails: Tails = "normal"
    prior: prior.PriorName = "uniform"
    arm_mode: ArmMode = "fixed"
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
        require_choice("tails", self.tails, ("normal", "heavy"))
        require_choice("prior", self.prior, ("uniform", "normal", "sphere"))
        require_choice("arm_mode", self.arm_mode, ("fixed", "resampled"))

    @property
    def piecewise_constant(self) -> bool:
        """Whether w* only ever stays the same or is redrawn from the prior."""
        return drifts.is_piecewise_constant(self.drift)

    @property
    def abrupt(self) -> bool:
        """Whether rewards change at single rounds only, if at all."""
        return drifts.is_abrupt(self.drift)

    def reset(self, randomness: Randomness) -> LinearBanditWorld:
        w = prior.draw(self.prior, self.dim, randomness.stream("parameter"))
        one = torch.ones_like(w[:, 0])
        origin = drifts.Effect(w=w, scale=one, shift=torch.zeros_like(one), redrawn=torch.zeros_like(one).bool())
        rng = randomness.stream("drift")
        action_set = randomness.stream("features").symmetric(self.arms, self.dim)
        place = torch.arange(len(w), device=w.device) % randomness.size
        memory = self.drift.start(drifts.Start(w, self.horizon, self.prior, rng, action_set, place))
        effect, memory = self.drift.at(1, origin, memory, rng)
        means = mean_rewards_of(action_set, effect)
        return LinearBanditWorld(1, action_set, means, effect, origin, memory, torch.zeros_like(origin.redrawn))

    def step(
        self, world: LinearBanditWorld, arm: Tensor, randomness: Randomness
    ) -> tuple[Tensor, Tensor, LinearBanditWorld]:
        noise = _noise(self.tails, randomness.stream("noise"))  # [B]
        mean = world.mean_rewards.gather(1, arm.unsqueeze(1)).squeeze(1)
        reward = torch.addcmul(mean, world.effect.scale, noise, value=self.noise)
        suboptimality = world.mean_rewards.amax(dim=1) - mean
        # Nothing comes after the last round.
        following = self.advance(world, randomness) if world.t < self.horizon else replace(world, t=world.t + 1)
        return reward, suboptimality, following

    def advance(self, world: LinearBanditWorld, randomness: Randomness) -> LinearBanditWorld:
        """The world of the next round, whatever arm is pulled in this one."""
        t = world.t + 1
        effect, memory = self.drift.at(t, world.origin, world.memory, randomness.stream("drift"))
        action_set, mean_rewards = world.action_set, world.mean_rewards
        if self.arm_mode == "resampled":
            action_set = randomness.stream("features").symmetric(self.arms, self.dim)
        if action_set is not world.action_set or effect is not world.effect:
            mean_rewards = mean_rewards_of(action_set, effect)
        changed = world.origin.redrawn if effect is world.effect else _changed(world.effect, effect)
        return LinearBanditWorld(t, action_set, mean_rewards, effect, world.origin, memory, changed)

    def truth(self, world: LinearBanditWorld) -> Truth:
        mean, variance = prior.moments(self.prior, self.dim)
        effect = world.effect
        return Truth(
            world.mean_rewards, effect.scale, effect.shift, effect.redrawn, world.changed, self.noise, mean, variance
        )

    def describe(self) -> str:
        """The setting in one line."""
        drift = identify(self.drift)
        told = drift.items() if isinstance(drift, dict) else ()
        settings = [f"{key}={value}" for key, value in told if isinstance(value, (int, float)) and value is not False]
        settings += [f"T={self.horizon}", f"d={self.dim}", f"{self.arms} {self.arm_mode} arms"]
        return f"{self.name}: {', '.join(settings)}"

    def config(self) -> dict[str, Any]:
        plain = ("name", "horizon", "dim", "arms", "noise", "tails", "prior", "arm_mode")
        return {key: getattr(self, key) for key in plain} | {"drift": identify(self.drift)}


def _noise(tails: Tails, rng: Stream) -> Tensor:
    """Noise of unit variance, `[B]`: normal, or Student's t with three degrees of freedom."""
    if tails == "normal":
        return rng.normal()
    draws = rng.normal(4)  # [B, 4]
    return draws[:, 0] / draws[:, 1:].square().sum(dim=1).sqrt().clamp(min=1e-6)


def _changed(before: drifts.Effect, after: drifts.Effect) -> Tensor:
    moved = (before.w != after.w).any(dim=1) if before.w is not after.w else after.redrawn
    return moved | (before.scale != after.scale) | (before.shift != after.shift)


def mean_rewards_of(arms: Tensor, effect: drifts.Effect) -> Tensor:
    """The expected rewards `[B, A]` of any arms `[B, A, d]`, offered or not."""
    inner = (arms * effect.w.unsqueeze(1)).sum(-1)  # [B, A]
    return torch.addcmul(effect.shift.unsqueeze(1), inner, effect.scale.unsqueeze(1))
