"""Our environments as Gymnasium's: one problem as an `Env`, a whole batch as a `VectorEnv`.

An observation is the action set `[arms, dim]`; where arms come and go, or there are states, a dictionary with
`action_set`, `offered`, `state` and `stage`, as far as the environment has them; in an MDP, `state` and `stage` alone.
An action is the index of an arm. An episode is one problem of `horizon` rounds, in an MDP all of its episodes, after
which it is truncated. `info` tells the exact value of each arm and the suboptimality of the last choice.
`reset(seed=…)` draws new problems from that seed; without one, from the generator that went before.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from driftformer.environments.base import Environment
from driftformer.environments.registry import make_env
from driftformer.errors import InputError, require_count
from driftformer.problem import traits_of
from driftformer.randomness import Randomness

Info = dict[str, NDArray[Any]]


class _Batch:
    """A batch of problems that is played round by round."""

    def __init__(self, environment: Environment, size: int) -> None:
        self.environment, self.size = environment, size
        self._randomness: Randomness | None = None
        self._world: Any = None
        first = environment.reset(Randomness(0, size=1)).observation  # what kind of things will be seen
        self._parts = [name for name in ("offered", "state", "stage") if getattr(first, name) is not None]
        if not traits_of(environment).stages:
            self._parts = ["action_set", *self._parts]

    def space(self) -> Any:
        """The space of one problem's observations."""
        unless_told = 1.0 if hasattr(self.environment, "arm_mode") else np.inf
        within = getattr(self.environment, "largest_feature", unless_told)
        features = Box(-within, within, (self.environment.arms, self.environment.dim), np.float32)
        traits = traits_of(self.environment)
        kinds = {"action_set": features, "offered": MultiBinary(self.environment.arms)}
        kinds |= {
            "state": Discrete(max(traits.states, 1)),
            "stage": Discrete(traits.stages or self.environment.horizon),
        }
        return features if self._parts == ["action_set"] else Dict({name: kinds[name] for name in self._parts})

    def reset(self, generator: np.random.Generator) -> tuple[Any, Info]:
        self._randomness = Randomness(int(generator.integers(2**63)), size=self.size)
        self._world = self.environment.reset(self._randomness)
        return self._observe(), self._info(np.zeros(self.size, np.float32))

    def step(self, arm: NDArray[np.int64]) -> tuple[Any, NDArray[np.float64], bool, Info]:
        if self._world is None or self._randomness is None:
            raise InputError("step was called before reset; call reset first")
        if self._world.t > self.environment.horizon:
            raise InputError(f"all {self.environment.horizon} rounds are played; call reset first")
        if arm.shape != (self.size,) or arm.min() < 0 or arm.max() >= self.environment.arms:
            raise InputError(f"action is {arm.tolist()}; give {self.size} of 0..{self.environment.arms - 1}")
        offered = self._world.observation.offered
        if offered is not None and not bool(offered[torch.arange(self.size), torch.from_numpy(arm)].all()):
            raise InputError(f"action is {arm.tolist()}, of which one is not on offer; see `offered`")
        reward, suboptimality, self._world = self.environment.step(self._world, torch.from_numpy(arm), self._randomness)
        rewards = reward.numpy().astype(np.float64)
        if not np.isfinite(rewards).all():
            raise InputError(f"rewards are NaN or infinite in round {self._world.t - 1}; the drift must stay finite")
        return self._observe(), rewards, self._world.t > self.environment.horizon, self._info(suboptimality.numpy())

    def _observe(self) -> Any:
        seen = self._world.observation
        kinds = {"action_set": np.float32, "offered": np.int8, "state": np.int64, "stage": np.int64}
        told = {name: getattr(seen, name).numpy().astype(kinds[name]) for name in self._parts}
        return told["action_set"] if self._parts == ["action_set"] else told

    def _info(self, suboptimality: NDArray[np.float32]) -> Info:
        return {"suboptimality": suboptimality, "values": self._world.values.numpy().copy()}


def _arms(actions: Any) -> NDArray[np.int64]:
    arms = np.asarray(actions)
    if arms.dtype.kind not in "iu":
        raise InputError(f"action is {actions!r:.60}; give whole numbers")
    return arms.astype(np.int64)


def _one(batch: Any) -> Any:
    """The only problem of a batch."""
    return {name: value[0] for name, value in batch.items()} if isinstance(batch, dict) else batch[0]


class Problem(gymnasium.Env[Any, np.int64]):
    """One problem of a named environment."""

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium declares it so)

    def __init__(self, preset: str, **options: Any) -> None:
        self._batch = _Batch(make_env(preset, **options), 1)
        self.observation_space = self._batch.space()
        self.action_space = Discrete(self._batch.environment.arms)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        observation, info = self._batch.reset(self.np_random)
        return _one(observation), _one(info)

    def step(self, action: np.int64) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, over, info = self._batch.step(_arms([action]))
        return _one(observation), float(reward[0]), False, over, _one(info)


class ProblemVector(VectorEnv[Any, NDArray[np.int64], NDArray[Any]]):
    """Many problems of a named environment at once, in one batch; all begin and end together."""

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, preset: str, num_envs: int = 1, **options: Any) -> None:
        require_count("num_envs", num_envs)
        self.num_envs = num_envs
        self._batch = _Batch(make_env(preset, **options), num_envs)
        self._over = False
        self.single_observation_space = self._batch.space()
        self.single_action_space = Discrete(self._batch.environment.arms)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        mask = (options or {}).get("reset_mask")
        if mask is not None and not np.all(mask):
            raise InputError("reset_mask leaves some problems out; all of them begin and end together here")
        super().reset(seed=seed)
        self._over = False
        return self._batch.reset(self.np_random)

    def step(self, actions: NDArray[np.int64]) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        none = np.zeros(self.num_envs, bool)
        if self._over:  # Gymnasium's next-step mode: the action after the last round only begins new problems
            observation, info = self.reset()
            return observation, np.zeros(self.num_envs), none, none.copy(), info
        observation, reward, self._over, info = self._batch.step(_arms(actions))
        return observation, reward, none, np.full(self.num_envs, self._over), info
