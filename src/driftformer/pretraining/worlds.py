"""The worlds that policies are pretrained on: a few environments, each with its share of the data."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from driftformer.environments.base import Environment
from driftformer.environments.broad import BroadBandit
from driftformer.environments.drift import Affine, Drift, Jumps, Stationary
from driftformer.environments.linear import LinearBandit
from driftformer.environments.per_problem import CosineAmong, CosineWithin, OneOf, WalkWithin
from driftformer.environments.registry import PRESETS, make_env
from driftformer.errors import unknown_name


@dataclass(frozen=True)
class TrainingWorld:
    """One environment and how much of the data comes from it."""

    environment: Environment
    share: float


def _high() -> list[TrainingWorld]:
    """The paper's four frequencies, arms fixed, T=200."""
    return [TrainingWorld(LinearBandit(name="high", horizon=200, drift=CosineAmong()), 1.0)]


def _low() -> list[TrainingWorld]:
    """Stationary rewards in about [0, 1], arms fixed, T=1000: what the paper trains its Low policy on."""
    return [TrainingWorld(LinearBandit(name="low", horizon=1000, drift=_UNIT_INTERVAL), 1.0)]


def _cosine() -> list[TrainingWorld]:
    """A continuous range of frequencies and phases, both arm modes, T=200."""
    fixed = LinearBandit(name="cosine", horizon=200, drift=CosineWithin(in_phase=_IN_PHASE))
    return [TrainingWorld(fixed, 0.5), TrainingWorld(replace(fixed, arm_mode="resampled"), 0.5)]


def _broad() -> list[TrainingWorld]:
    """Every kind of problem that `environments/broad.py` can draw, in many sizes."""
    shares = {
        BroadBandit(): 0.21,
        BroadBandit(arm_mode="resampled"): 0.18,
        BroadBandit(horizon=1000): 0.05,
        BroadBandit(horizon=1000, arm_mode="resampled"): 0.03,
        BroadBandit(dim=64, arm_mode="resampled"): 0.02,
        BroadBandit(dim=24, arms=50): 0.02,
        BroadBandit(dim=8, arms=5): 0.06,
        BroadBandit(dim=8, arms=5, arm_mode="resampled", bent=0.3): 0.05,
        BroadBandit(dim=5, arms=5, arm_mode="one-hot"): 0.06,
        BroadBandit(dim=5, arms=5, arm_mode="one-hot", law="bernoulli", horizon=500): 0.06,
        BroadBandit(dim=2, arms=2, arm_mode="one-hot", law="bernoulli", horizon=500): 0.02,
        BroadBandit(dim=10, arms=10, arm_mode="one-hot", law="bernoulli", horizon=500): 0.04,
        BroadBandit(dim=20, arms=20, arm_mode="one-hot"): 0.02,
        BroadBandit(dim=30, arms=5, arm_mode="disjoint", horizon=500): 0.05,
        BroadBandit(dim=30, arms=5, arm_mode="disjoint", law="bernoulli", horizon=500): 0.05,
        BroadBandit(dim=16, arms=10, arm_mode="resampled", law="bernoulli", horizon=500): 0.04,
        BroadBandit(dim=16, arms=20, offered=0.5, law="heavy"): 0.04,
    }
    return [TrainingWorld(environment, share) for environment, share in shares.items()]


def _tiny() -> list[TrainingWorld]:
    """Small enough for a laptop: 4 dimensions, 4 arms, 30 rounds, slow cosines."""
    fixed = LinearBandit(
        name="tiny", horizon=30, dim=4, arms=4, noise=0.3, drift=CosineWithin((0.01, 0.03), in_phase=1.0)
    )
    return [TrainingWorld(fixed, 0.5), TrainingWorld(replace(fixed, arm_mode="resampled"), 0.5)]


def _both_modes(environment: LinearBandit) -> list[TrainingWorld]:
    return [TrainingWorld(environment, 0.5), TrainingWorld(replace(environment, arm_mode="resampled"), 0.5)]


def _kinds(size: LinearBandit, frequencies: tuple[float, float]) -> list[LinearBandit]:
    """One kind of change at a time, all of them, and more or fewer jumps, for problems of some size."""
    kinds: dict[str, Drift] = {
        "stationary": Stationary(),
        "jumps": Jumps(3),
        "cosine": CosineWithin(frequencies),
        "walk": WalkWithin(),
    }
    kinds["mixed"] = OneOf(tuple(kinds.values()), (0.25,) * len(kinds))
    kinds |= {f"jumps-{changes}": Jumps(changes) for changes in JUMPS}
    return [replace(size, name=f"{size.name}-{kind}", drift=drift) for kind, drift in kinds.items()]


JUMPS = (1, 3, 9)
"""Changes of the worlds that differ in how often they jump."""

_UNIT_INTERVAL = Affine(scale=1 / 12, shift=0.5)

_IN_PHASE = 0.75
"""Share of cosines that begin at their peak, as the paper's do."""


WORLDS: dict[str, Callable[[], list[TrainingWorld]]] = {
    "high": _high,
    "low": _low,
    "cosine": _cosine,
    "broad": _broad,
    "tiny": _tiny,
}


_SMALL = LinearBandit(name="tiny", horizon=30, dim=4, arms=4, noise=0.3)
_FULL = LinearBandit(name="full", horizon=200)
for _kind in (*_kinds(_SMALL, (0.01, 0.1)), *_kinds(_FULL, (0.002, 0.035))):
    WORLDS[_kind.name] = functools.partial(_both_modes, _kind)


def worlds_of(name: str) -> list[TrainingWorld]:
    """Worlds by name: a mixture of ours, or any named environment with its default options."""
    if name in WORLDS:
        return WORLDS[name]()
    if name not in PRESETS:
        raise unknown_name("worlds", name, [*WORLDS, *PRESETS])
    return [TrainingWorld(make_env(name), 1.0)]


def describe(worlds: list[TrainingWorld]) -> list[dict[str, Any]]:
    """Worlds as plain data: what a dataset or a policy says it was made from."""
    return [{"share": world.share, **world.environment.config()} for world in worlds]
