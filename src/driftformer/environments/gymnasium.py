"""Our environments as Gymnasium's: one problem as an `Env`, a whole batch as a `VectorEnv`.

An observation is the action set `[arms, dim]`, an action the index of an arm, an episode one problem of `horizon`
rounds, after which it is truncated. `info` tells the exact mean reward of each arm and the suboptimality of the last
choice. `reset(seed=…)` draws new problems from that seed; without one, from the generator that went before.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from driftformer.environments.linear import LinearBandit, LinearBanditWorld
from driftformer.environments.presets import make_env
from driftformer.errors import InputError, require_count
from driftformer.randomness import Randomness

Observation = NDArray[np.float32]


class _Batch:
    """A batch of problems that is played round by round."""

    def __init__(self, environment: LinearBandit, size: int) -> None:
        self.environment, self.size = environment, size
        self._randomness: Randomness | None = None
        self._world: LinearBanditWorld | None = None

    def reset(self, generator: np.random.Generator) -> tuple[Observation, dict[str, NDArray[Any]]]:
        self._randomness = Randomness(int(generator.integers(2**63)), size=self.size)
        self._world = self.environment.reset(self._randomness)
        return self._observe(), self._info(np.zeros(self.size, np.float32))

    def step(self, arm: NDArray[np.int64]) -> tuple[Observation, NDArray[np.float64], bool, dict[str, NDArray[Any]]]:
        if self._world is None or self._randomness is None:
            raise InputError("step was called before reset; call reset first")
        if self._world.t > self.environment.horizon:
            raise InputError(f"all {self.environment.horizon} rounds are played; call reset first")
        if arm.shape != (self.size,) or arm.min() < 0 or arm.max() >= self.environment.arms:
            raise InputError(f"action is {arm.tolist()}; give {self.size} of 0..{self.environment.arms - 1}")
        reward, gap, self._world = self.environment.step(self._world, torch.from_numpy(arm), self._randomness)
        rewards = reward.numpy().astype(np.float64)
        if not np.isfinite(rewards).all():
            raise InputError(f"rewards are NaN or infinite in round {self._world.t - 1}; the drift must stay finite")
        return self._observe(), rewards, self._world.t > self.environment.horizon, self._info(gap.numpy())

    def _observe(self) -> Observation:
        assert self._world is not None
        return self._world.action_set.numpy().copy()

    def _info(self, gap: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        assert self._world is not None
        return {"suboptimality": gap, "mean_rewards": self._world.mean_rewards.numpy().copy()}


def _arms(actions: Any) -> NDArray[np.int64]:
    arms = np.asarray(actions)
    if arms.dtype.kind not in "iu":
        raise InputError(f"action is {actions!r:.60}; give whole numbers")
    return arms.astype(np.int64)


def _spaces(environment: LinearBandit) -> tuple[Any, Any]:
    box = gymnasium.spaces.Box(-1.0, 1.0, (environment.arms, environment.dim), np.float32)
    return box, gymnasium.spaces.Discrete(environment.arms)


class DriftingBandit(gymnasium.Env[Observation, np.int64]):
    """One problem of a named environment."""

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium declares it so)

    def __init__(self, preset: str, **options: Any) -> None:
        self._batch = _Batch(make_env(preset, **options), 1)
        self.observation_space, self.action_space = _spaces(self._batch.environment)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        observation, info = self._batch.reset(self.np_random)
        return observation[0], {key: value[0] for key, value in info.items()}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        observation, reward, over, info = self._batch.step(_arms([action]))
        return observation[0], float(reward[0]), False, over, {key: value[0] for key, value in info.items()}


class DriftingBanditVector(VectorEnv[Observation, NDArray[np.int64], NDArray[Any]]):
    """Many problems of a named environment at once, in one batch; all begin and end together."""

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, preset: str, num_envs: int = 1, **options: Any) -> None:
        require_count("num_envs", num_envs)
        self.num_envs = num_envs
        self._batch = _Batch(make_env(preset, **options), num_envs)
        self._over = False
        self.single_observation_space, self.single_action_space = _spaces(self._batch.environment)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        mask = (options or {}).get("reset_mask")
        if mask is not None and not np.all(mask):
            raise InputError("reset_mask leaves some problems out; all of them begin and end together here")
        super().reset(seed=seed)
        self._over = False
        return self._batch.reset(self.np_random)

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Observation, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        none = np.zeros(self.num_envs, bool)
        if self._over:  # Gymnasium's next-step mode: the action after the last round only begins new problems
            observation, info = self.reset()
            return observation, np.zeros(self.num_envs), none, none.copy(), info
        observation, reward, self._over, info = self._batch.step(_arms(actions))
        return observation, reward, none, np.full(self.num_envs, self._over), info
