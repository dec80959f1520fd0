"""Problems played as they unfold: a batch of an environment's problems in one round after the other.

An environment may come from anyone, so what it says is checked at the door, before anything is stored.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from driftformer.agents.base import ProblemShape
from driftformer.environments.base import Environment
from driftformer.errors import InputError, require_count
from driftformer.problem import Observation, Truth, pick
from driftformer.randomness import Randomness
from driftformer.simulation.trajectories import Laid


class Live:
    """A batch of problems in play."""

    def __init__(self, environment: Environment, randomness: Randomness) -> None:
        self._environment, self._randomness = environment, randomness
        self._world = environment.reset(randomness)
        _check_world(environment, self._world, randomness)
        self.suboptimality = torch.zeros_like(self._world.values[:, 0])  # [B] of the arms that were last paid for

    @property
    def observation(self) -> Observation:
        observation: Observation = self._world.observation
        return observation

    @property
    def values(self) -> Tensor:
        values: Tensor = self._world.values
        return values

    def truth(self) -> Truth:
        return self._environment.truth(self._world)

    def pay(self, arm: Tensor) -> Tensor:
        """The rewards `[B]` of some arms; the next round begins."""
        before = self._world
        offered = before.observation.offered
        if offered is not None and not bool(pick(offered, arm).all()):
            raise InputError(f"an arm that is not on offer was chosen in round {before.t}; choose among `offered`")
        reward, self.suboptimality, self._world = self._environment.step(before, arm, self._randomness)
        if before.t == 1:
            _check_step(self._environment, reward, self.suboptimality, before, self._world)
        if self._world.observation.offered is not None and self._world.t <= self._environment.horizon:
            _check_offered(self._environment, self._world)
        return reward


class Unfolding:
    """Problems whose course depends on what is played: they are lived through, from the same start each time."""

    def __init__(self, environment: Environment, randomness: Randomness, dim: int) -> None:
        self.environment, self._randomness, self._dim = environment, randomness, dim

    @property
    def shape(self) -> ProblemShape:
        here, drawn = self.environment, self._randomness
        return ProblemShape(drawn.batch, here.horizon, here.arms, self._dim, drawn.device, drawn.dtype)

    def begin(self) -> Course:
        return Course(self.environment, self._randomness.again(), self._dim)

    def repeat(self, count: int) -> Unfolding:
        """Every problem several times, one copy of all after the other."""
        return Unfolding(self.environment, self._randomness.again(self._randomness.chunks * count), self._dim)

    def along(self, arms: Tensor) -> Laid:
        """What was on offer when these arms `[B, T]` were played."""
        course = self.begin()
        for arm in arms.unbind(1):
            course.pay(arm)
        return course.laid()


class Course(Live):
    """A run through unfolding problems that remembers what was on offer; features are padded with zeros to `dim`."""

    def __init__(self, environment: Environment, randomness: Randomness, dim: int) -> None:
        super().__init__(environment, randomness)
        self._dim = dim
        self._seen: list[tuple[Observation, Tensor, Truth]] = []

    @property
    def observation(self) -> Observation:
        observation = super().observation
        missing = self._dim - observation.action_set.shape[2]
        return replace(observation, action_set=functional.pad(observation.action_set, (0, missing)))

    def pay(self, arm: Tensor) -> Tensor:
        self._seen.append((self.observation, self.values, self.truth()))
        return super().pay(arm)

    def laid(self) -> Laid:
        observations, values, truths = zip(*self._seen, strict=True)
        return lay(observations, values, truths)


def lay(observations: tuple[Observation, ...], values: tuple[Tensor, ...], truths: tuple[Truth, ...]) -> Laid:
    """All rounds side by side."""
    sets = [observation.action_set for observation in observations]
    same = all(one is sets[0] for one in sets)
    features = torch.stack(sets[:1] if same else sets, dim=1).expand(-1, len(sets), -1, -1)
    masks = [observation.offered for observation in observations]
    offered = None
    if any(mask is not None for mask in masks):
        every = torch.ones_like(values[0], dtype=torch.bool)
        offered = torch.stack([every if mask is None else mask for mask in masks], dim=1)
    return Laid(features, torch.stack(values, dim=1), offered, observations, truths)


def check_environment(environment: Environment) -> None:
    """Refuse an environment whose description is wrong, by name."""
    name = getattr(environment, "name", None)
    if not isinstance(name, str) or not re.fullmatch(r"[^\s/]+", name):
        raise InputError(f"environment {type(environment).__name__} has the name {name!r:.60}; give one word")
    for size in ("horizon", "arms", "dim"):
        given: Any = getattr(environment, size, None)
        require_count(f"environment '{name}': {size}", given, most=10**8)
    described = environment.describe() if callable(getattr(environment, "describe", None)) else None
    if not isinstance(described, str) or not described.strip() or "\n" in described:
        raise InputError(f"environment '{name}': describe() gives {described!r:.60}; return one line of text")


def check_config(environment: Environment) -> None:
    """Refuse an environment whose results could not be told apart from others', by name."""
    name = environment.name
    try:
        config = environment.config()
        plain = json.loads(json.dumps(config, allow_nan=False))
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(
            f"environment '{name}': config() is not plain JSON data ({error}); return a dict of it"
        ) from None
    if not isinstance(plain, dict):
        raise InputError(f"environment '{name}': config() gives {type(config).__name__}; return a dict of plain data")


def _check_world(environment: Environment, world: Any, randomness: Randomness) -> None:
    """Refuse a first world whose tensors are not what its environment claims."""
    name, batch, arms = environment.name, randomness.batch, environment.arms
    observation = getattr(world, "observation", None)
    if getattr(world, "t", None) != 1 or not isinstance(observation, Observation):
        raise InputError(f"environment '{name}': reset() must give a world with t = 1 and a df.Observation")
    kind, device = randomness.dtype, randomness.device.type
    _check_tensor(name, "observation.action_set", observation.action_set, (batch, arms, environment.dim), kind, device)
    _check_tensor(name, "values", getattr(world, "values", None), (batch, arms), kind, device)
    if observation.offered is not None:
        _check_tensor(name, "observation.offered", observation.offered, (batch, arms), torch.bool, device)
        _check_offered(environment, world)
    if not bool(observation.action_set.isfinite().all()):
        raise InputError(f"environment '{name}': observation.action_set has NaN or infinite numbers; give finite ones")


def _check_step(environment: Environment, reward: Any, suboptimality: Any, before: Any, after: Any) -> None:
    name, values = environment.name, before.values
    for what, tensor in (("reward", reward), ("suboptimality", suboptimality)):
        _check_tensor(name, f"the {what} of step()", tensor, values.shape[:1], values.dtype, values.device.type)
    if bool((suboptimality < 0).any()):
        raise InputError(f"environment '{name}': step() gives a negative suboptimality; it is max values − values[arm]")
    if getattr(after, "t", None) != 2:
        raise InputError(f"environment '{name}': step() must give the world of the next round, with t = 2")


def _check_offered(environment: Environment, world: Any) -> None:
    if not bool(world.observation.offered.any(dim=1).all()):
        raise InputError(
            f"environment '{environment.name}': a problem has no arm on offer in round {world.t}; offer at least one"
        )


def _check_tensor(name: str, what: str, tensor: Any, shape: tuple[int, ...], kind: torch.dtype, device: str) -> None:
    fits = (
        isinstance(tensor, Tensor) and tensor.shape == shape and tensor.dtype == kind and tensor.device.type == device
    )
    if not fits:
        got = f"a {tensor.dtype} tensor {list(tensor.shape)}" if isinstance(tensor, Tensor) else type(tensor).__name__
        raise InputError(f"environment '{name}': {what} is {got}; give a {kind} tensor {list(shape)} on {device}")
