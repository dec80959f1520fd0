"""How dynamic regret grows with T, J and Δ: the paper's Table 1 (`tab:rate`), measured.

The family allows long horizons: two fixed arms in two dimensions, noise 0.5. There are four sweeps: over the horizon T
and the number J of segments where w* ~ N(0, I) jumps; over the horizon and the path length Δ where w*, of length one,
turns steadily in the plane (a random walk of given path length ends up closer to its start the longer it takes). Agents
that need a window get the one that theory derives from T and J or Δ, which nobody knows in practice. An exponent is the
slope of ln(regret) against ln(T), ln(J) or ln(Δ), with a bootstrap interval over runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from driftformer.environments.presets import Jumps, Preset, Walk
from driftformer.errors import InputError, require_count
from driftformer.storage.files import write_json

if TYPE_CHECKING:
    from driftformer.simulation.engines import Engine
    from driftformer.simulation.rollout import Array

CHANGES, LENGTH = 4, 8.0
"""The number of changes and the path length where they are not swept."""
_SEGMENTS, _LENGTHS = (2, 4, 8, 16, 32), (2.0, 4.0, 8.0, 16.0, 32.0)
"""Where they are."""
_RESAMPLES = 500


@dataclass(frozen=True)
class Point:
    """One setting of a sweep."""

    value: float
    preset: Preset
    agents: dict[str, str] = field(hash=False)  # by their names in the sweep


@dataclass(frozen=True)
class RateSweep:
    """Settings that differ in one number."""

    name: str
    axis: str
    expected: str  # the exponents in the paper's table
    points: tuple[Point, ...]


def sweeps(longest: int) -> tuple[RateSweep, ...]:
    """The four sweeps, with horizons up to `longest`."""
    horizons = [longest // 10**2, longest // 32, longest // 10, longest // 3, longest]
    middle = max(longest // 10, 1000)
    jumps = tuple(_jumping(t, t, CHANGES) for t in horizons), tuple(_jumping(j, middle, j - 1) for j in _SEGMENTS)
    turns = tuple(_turning(t, t, LENGTH) for t in horizons), tuple(_turning(path, middle, path) for path in _LENGTHS)
    return (
        RateSweep("horizon-jumps", "T", "MASTER 0.5 (√(JT)), LinUCB 1", jumps[0]),
        RateSweep("changes", "J", "MASTER 0.5 (√(JT))", jumps[1]),
        RateSweep("horizon-turn", "T", "MASTER 0.67 (Δ^⅓·T^⅔), LinUCB 1, TS 0.75 (Δ^¼·T^¾)", turns[0]),
        RateSweep("path", "Δ", "MASTER 0.33 (Δ^⅓·T^⅔), TS 0.25 (Δ^¼·T^¾)", turns[1]),
    )


def _jumping(value: float, horizon: int, changes: int) -> Point:
    preset = Jumps(horizon=horizon, changes=changes, dim=2, arms=2, noise=0.5, prior="normal")
    agents = _agents(horizon, math.sqrt(horizon / (changes + 1)))
    return Point(value, preset, agents | {"change-point-oracle": "change-point-oracle"})


def _turning(value: float, horizon: int, length: float) -> Point:
    preset = Walk(horizon=horizon, budget=length, motion="rotate", dim=2, arms=2, noise=0.5, prior="sphere")
    return Point(value, preset, _agents(horizon, (horizon / length) ** (2 / 3)))


def _agents(horizon: int, theory: float) -> dict[str, str]:
    """With the window of the theory, √(T/J) or (T/Δ)^(2/3), times a constant that suits the noise."""
    window = max(2, min(horizon, round(4 * theory)))
    return {
        "linucb": "linucb",
        "sliding window": f"sliding-window-linucb@window={window}",
        "discounted thompson": f"discounted-thompson@gamma={1 - 1 / window:.6f},variance=0.25",
        "master-linucb": "master-linucb",
    }


@dataclass(frozen=True)
class Exponent:
    """Regret ∝ value^slope, with a 95% interval."""

    slope: float
    low: float
    high: float


def fit(values: list[float], finals: list[Array], seed: int) -> Exponent:
    """Least squares on logarithms; runs are resampled within each setting."""
    if min(final.mean() for final in finals) <= 0:
        raise InputError("regret is zero somewhere in the sweep, so it has no exponent; use more runs")
    rng = np.random.default_rng(seed)
    means = [[final.mean() for final in finals]]  # of all runs, then of each resample
    for _ in range(_RESAMPLES):
        means.append([final[rng.integers(0, len(final), len(final))].mean() for final in finals])
    slopes = [float(np.polyfit(np.log(values), np.log(some), 1)[0]) for some in means]
    low, high = np.quantile(slopes[1:], [0.025, 0.975])
    return Exponent(slopes[0], float(low), float(high))


def measure_rates(
    out: Path,
    *,
    longest: int = 10_000,
    runs: int = 64,
    seed: int = 0,
    workers: int | None = None,
    engine: str | Engine = "local",
) -> dict[str, dict[str, Exponent]]:
    """Run all sweeps, resumably, and write rates.json and its figure."""
    from driftformer.evaluation.evaluate import Plan, compute_missing
    from driftformer.plots.curves import draw_rates
    from driftformer.simulation.engines import opened

    require_count("longest", longest, 10_000, most=10**6)
    require_count("runs", runs, 8)  # fewer say nothing about an interval
    every = sweeps(longest)
    plans = {
        (sweep.name, point.value): Plan(
            point.preset.build(), point.agents, runs=runs, seed=seed, out=out / sweep.name / f"{point.value:g}"
        )
        for sweep in every
        for point in sweep.points
    }
    with opened(engine, workers) as crew:
        compute_missing(list(plans.values()), crew, "rates", out, every[0].name)
    found: dict[str, dict[str, Exponent]] = {}
    record = {}
    for sweep in every:
        values = [point.value for point in sweep.points]
        finals = [plans[sweep.name, value].finish().finals for value in values]
        regrets = {agent: [final[agent] for final in finals] for agent in sweep.points[0].agents}
        exponents = found[sweep.name] = {agent: fit(values, regret, seed) for agent, regret in regrets.items()}
        means = {agent: [float(final.mean()) for final in regret] for agent, regret in regrets.items()}
        agents = {agent: {**vars(fitted), "regret": means[agent]} for agent, fitted in exponents.items()}
        record[sweep.name] = {"axis": sweep.axis, "values": values, "expected": sweep.expected, "agents": agents}
    write_json(out / "rates.json", record)
    for suffix in ("png", "svg"):
        draw_rates(record, out / f"rates.{suffix}")
    return found
