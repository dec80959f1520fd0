"""The worlds that policies are pretrained on: a few environments, each with its share of the data."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from driftformer.environments.base import Environment
from driftformer.environments.broad import BroadBandit
from driftformer.environments.broad_mdp import BroadFamily
from driftformer.environments.drift import Affine, Cosine, Drift, Jumps, Stationary
from driftformer.environments.linear import LinearBandit
from driftformer.environments.mdp import TabularMDP
from driftformer.environments.mdp_drift import HandOver, MDPDrift, Redraws, Same, Swaps, Walk
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


def _high_resampled() -> list[TrainingWorld]:
    """The same with arms that are drawn in every round."""
    environment = LinearBandit(name="high-resampled", horizon=200, arm_mode="resampled", drift=CosineAmong())
    return [TrainingWorld(environment, 1.0)]


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


def _mdps() -> list[TrainingWorld]:
    """MDPs of every kind that `environments/broad_mdp.py` can draw, in several sizes, under every drift but cycles."""
    kinds: list[tuple[tuple[int, int, int], int, MDPDrift, str, float]] = [
        ((8, 3, 5), 200, Redraws(3), "bernoulli", 0.12),
        ((8, 3, 5), 200, Redraws(2), "exact", 0.12),
        ((6, 2, 10), 120, Swaps(30), "exact", 0.08),
        ((6, 2, 10), 120, Redraws(2), "bernoulli", 0.08),
        ((12, 2, 6), 200, Redraws(2), "exact", 0.1),
        ((12, 4, 8), 150, Redraws(1), "exact", 0.08),
        ((12, 4, 8), 150, HandOver(), "bernoulli", 0.06),
        ((20, 4, 12), 100, Redraws(1), "exact", 0.06),
        ((4, 4, 3), 300, Walk(100), "bernoulli", 0.08),
        ((10, 2, 8), 150, Walk(75), "exact", 0.06),
        ((8, 3, 5), 250, Same(), "bernoulli", 0.08),
        ((5, 2, 15), 100, Same(), "exact", 0.04),
        ((6, 3, 4), 300, HandOver(), "exact", 0.04),
    ]
    return [_mdp(*kind) for kind in kinds]


def _few_mdps() -> list[TrainingWorld]:
    """The same in small, to try things with."""
    return [_mdp((4, 2, 3), 20, Redraws(1), "exact", 0.5), _mdp((3, 3, 4), 15, Walk(5), "bernoulli", 0.5)]


def _mdp(sizes: tuple[int, int, int], episodes: int, drift: MDPDrift, law: str, share: float) -> TrainingWorld:
    family, stages = BroadFamily(*sizes), sizes[2]
    return TrainingWorld(
        TabularMDP(name="broad-mdp", family=family, stages=stages, episodes=episodes, drift=drift, law=law), share
    )


def _tiny() -> list[TrainingWorld]:
    """Small enough for a laptop: 4 dimensions, 4 arms, 30 rounds, slow cosines."""
    fixed = LinearBandit(
        name="tiny", horizon=30, dim=4, arms=4, noise=0.3, drift=CosineWithin((0.01, 0.03), in_phase=1.0)
    )
    return [TrainingWorld(fixed, 0.5), TrainingWorld(replace(fixed, arm_mode="resampled"), 0.5)]


def _both_modes(environment: LinearBandit) -> list[TrainingWorld]:
    return [TrainingWorld(environment, 0.5), TrainingWorld(replace(environment, arm_mode="resampled"), 0.5)]


def _kinds(size: LinearBandit, frequencies: tuple[float, float]) -> list[LinearBandit]:
    """One kind of change at a time, all of them, more or fewer jumps, the paper's cosines: for some size of problem."""
    kinds: dict[str, Drift] = {
        "stationary": Stationary(),
        "jumps": Jumps(3),
        "cosine": CosineWithin(frequencies),
        "walk": WalkWithin(),
    }
    kinds["mixed"] = OneOf(tuple(kinds.values()), (0.25,) * len(kinds))
    kinds |= {f"jumps-{changes}": Jumps(changes) for changes in JUMPS}
    longer = 200 / size.horizon  # so that a problem has as many turns as the paper's
    kinds["clocks"] = CosineAmong(tuple(b * longer for b in CosineAmong().frequencies))
    kinds["between"] = Cosine(0.018 * longer)
    return [replace(size, name=f"{size.name}-{kind}", drift=drift) for kind, drift in kinds.items()]


JUMPS = (1, 3, 9)
"""Changes of the worlds that differ in how often they jump."""

_UNIT_INTERVAL = Affine(scale=1 / 12, shift=0.5)

_IN_PHASE = 0.75
"""Share of cosines that begin at their peak, as the paper's do."""


WORLDS: dict[str, Callable[[], list[TrainingWorld]]] = {
    "high": _high,
    "high-resampled": _high_resampled,
    "low": _low,
    "cosine": _cosine,
    "broad": _broad,
    "mdps": _mdps,
    "few-mdps": _few_mdps,
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
