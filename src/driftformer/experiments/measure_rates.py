"""Exponents of regret: the slope of ln(regret) against ln(T), ln(J) or ln(Δ), with bootstrap intervals over runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.ticker import NullFormatter

from driftformer.environments.presets import build
from driftformer.errors import InputError, require_count
from driftformer.evaluation.evaluate import evaluate
from driftformer.experiments.rates import Sweep, sweeps
from driftformer.plots.style import COLOURS, figure_at
from driftformer.simulation.engines import Engine, opened
from driftformer.simulation.regret import Array
from driftformer.storage.files import write_json

_RESAMPLES = 500
_MARKS = {
    "linucb": COLOURS["linucb"],
    "sliding window": "#D55E00",
    "discounted thompson": COLOURS["thompson"],
    "master-linucb": COLOURS["master-linucb"],
    "change-point-oracle": "#000000",
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
        raise InputError("regret is zero somewhere in the sweep, so it has no exponent; give more runs")
    x = np.log(np.asarray(values))
    rng = np.random.default_rng(seed)

    def slope(means: Array) -> float:
        return float(np.polyfit(x, np.log(means), 1)[0])

    resampled = [
        slope(np.array([final[rng.integers(0, len(final), len(final))].mean() for final in finals]))
        for _ in range(_RESAMPLES)
    ]
    low, high = np.quantile(resampled, [0.025, 0.975])
    return Exponent(slope(np.array([final.mean() for final in finals])), float(low), float(high))


def measure_rates(
    out: Path,
    *,
    longest: int = 10_000,
    runs: int = 64,
    seed: int = 0,
    workers: int | None = None,
    engine: str | Engine = "local",
) -> dict[str, dict[str, Exponent]]:
    """Run all sweeps, resumably, and write rates.json and a figure."""
    require_count("longest", longest, 10_000, most=10**6)
    require_count("runs", runs, 8)  # fewer say nothing about an interval
    found: dict[str, dict[str, Exponent]] = {}
    means: dict[str, dict[str, list[float]]] = {}
    with opened(engine, workers) as crew:
        for sweep in sweeps(longest):
            finals = _play(sweep, out / sweep.name, runs, seed, crew)
            values = [point.value for point in sweep.points]
            found[sweep.name] = {name: fit(values, regret, seed) for name, regret in finals.items()}
            means[sweep.name] = {name: [float(final.mean()) for final in regret] for name, regret in finals.items()}
    record = {
        sweep.name: {
            "axis": sweep.axis,
            "values": [point.value for point in sweep.points],
            "expected": sweep.expected,
            "agents": {
                name: {**vars(found[sweep.name][name]), "regret": means[sweep.name][name]} for name in found[sweep.name]
            },
        }
        for sweep in sweeps(longest)
    }
    write_json(out / "rates.json", record)
    for ending in ("png", "svg"):
        _draw(sweeps(longest), means, found, out / f"rates.{ending}")
    return found


def _play(sweep: Sweep, out: Path, runs: int, seed: int, crew: Engine) -> dict[str, list[Array]]:
    """The final regrets of each agent at each point."""
    finals: dict[str, list[Array]] = {}
    for point in sweep.points:
        result = evaluate(
            build(point.preset),
            list(point.agents.values()),
            runs=runs,
            seed=seed,
            out=out / f"{point.value:g}",
            engine=crew,
        )
        for name, written in point.agents.items():
            finals.setdefault(name, []).append(result.finals[written])
    return finals


def _draw(
    all_sweeps: tuple[Sweep, ...],
    means: Mapping[str, Mapping[str, list[float]]],
    found: Mapping[str, Mapping[str, Exponent]],
    path: Path,
) -> None:
    with figure_at(path, (10.0, 7.4)) as figure:
        grid = figure.subplots(2, 2).flatten()
        for axes, sweep in zip(grid, all_sweeps, strict=True):
            values = [point.value for point in sweep.points]
            for name, regret in means[sweep.name].items():
                slope = found[sweep.name][name]
                label = f"{name}: {slope.slope:.2f} [{slope.low:.2f}, {slope.high:.2f}]"
                axes.loglog(values, regret, "o-", color=_MARKS[name], label=label, markersize=4, linewidth=1.3)
            axes.set_xlabel(sweep.axis)
            axes.set_xticks(values, [f"{value:g}" for value in values])
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.set_ylabel("dynamic regret")
            axes.set_title(f"{sweep.name}; in the paper: {sweep.expected}", fontsize=8, loc="left")
            low, high = axes.get_ylim()
            axes.set_ylim(low, high * (high / low) ** 0.45)  # room for the legend
            axes.legend(fontsize=8, loc="upper left")
