"""How dynamic regret grows with T, J and Δ: the paper's table `tab:rate`, measured.

A family where horizons can be long: two fixed arms in two dimensions, noise 0.5. Four sweeps: the horizon T and the
number J of stretches where w* ~ N(0, I) jumps; the horizon and the length of the path where w*, of length one, turns
steadily in the plane (a random walk of given path length would end the nearer to its start the longer it takes). Agents
that need a window get the one that theory gives them from T and J (or the path), which nobody would know in practice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from driftformer.environments.presets import Jumps, Preset, Walk

CHANGES, LENGTH = 4, 8.0
"""Changes and path length where they are not what is swept."""


@dataclass(frozen=True)
class Point:
    """One setting of a sweep."""

    value: float
    preset: Preset
    agents: dict[str, str] = field(hash=False)  # what each is called in the sweep, and how it is written


@dataclass(frozen=True)
class Sweep:
    """Settings that differ in one number."""

    name: str
    axis: str
    expected: str  # what the paper's table says of that number
    points: tuple[Point, ...]


def sweeps(longest: int) -> tuple[Sweep, ...]:
    """All of them, with horizons up to `longest`."""
    horizons = [longest // 10**2, longest // 32, longest // 10, longest // 3, longest]
    middle = max(longest // 10, 1000)
    return (
        Sweep(
            "horizon-jumps",
            "T",
            "MASTER 0.5 (√(JT)), LinUCB 1",
            tuple(Point(t, _jumps(t, CHANGES), _agents(t, t / (CHANGES + 1))) for t in horizons),
        ),
        Sweep(
            "changes",
            "J",
            "MASTER 0.5 (√(JT))",
            tuple(Point(j + 1, _jumps(middle, j), _agents(middle, middle / (j + 1))) for j in (1, 3, 7, 15, 31)),
        ),
        Sweep(
            "horizon-turn",
            "T",
            "MASTER 0.67 (Δ^⅓·T^⅔), LinUCB 1, TS 0.75 (Δ^¼·T^¾)",
            tuple(Point(t, _walk(t, LENGTH), _agents(t, (t / LENGTH) ** (4 / 3), False)) for t in horizons),
        ),
        Sweep(
            "path",
            "Δ",
            "MASTER 0.33 (Δ^⅓·T^⅔), TS 0.25 (Δ^¼·T^¾)",
            tuple(
                Point(length, _walk(middle, length), _agents(middle, (middle / length) ** (4 / 3), False))
                for length in (2.0, 4.0, 8.0, 16.0, 32.0)
            ),
        ),
    )


def _jumps(horizon: int, changes: int) -> Jumps:
    return Jumps(horizon=horizon, changes=changes, dim=2, arms=2, noise=0.5, prior="normal")


def _walk(horizon: int, length: float) -> Walk:
    return Walk(horizon=horizon, budget=length, motion="rotate", dim=2, arms=2, noise=0.5, prior="sphere")


def _agents(horizon: int, window_squared: float, abrupt: bool = True) -> dict[str, str]:
    """Windows of √(T/J) where w* jumps and (T/Δ)^(2/3) where it walks, times a constant that suits the noise."""
    window = max(2, min(horizon, round(4 * math.sqrt(window_squared))))
    gamma = 1 - 1 / window
    agents = {
        "linucb": "linucb",
        "sliding window": f"sliding-window-linucb@window={window}",
        "discounted thompson": f"discounted-thompson@gamma={gamma:.6f},variance=0.25",
        "master-linucb": "master-linucb",
    }
    return agents | ({"change-point-oracle": "change-point-oracle"} if abrupt else {})
