"""Regret and suboptimality curves, grids of them, and regret against what is swept.

Bands show the standard deviation between runs, as the paper's do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from matplotlib.axes import Axes

from driftformer.evaluation.result import describe
from driftformer.plots.style import figure_at, looks_of

Kind = Literal["regret", "suboptimality"]

_LABELS: dict[Kind, str] = {"regret": "cumulative dynamic regret", "suboptimality": "suboptimality"}


def draw(summary: Mapping[str, Any], path: Path, kind: Kind = "regret") -> None:
    """One figure of one evaluation."""
    with figure_at(path, (6.0, 3.8)) as figure:
        axes = figure.subplots()
        curves(axes, summary, kind)
        axes.set_title(describe(summary), fontsize=9, loc="left")
        axes.legend()


@dataclass(frozen=True)
class Column:
    """Some agents of one evaluation."""

    title: str
    summary: Mapping[str, Any]
    agents: Sequence[str]


def draw_grid(columns: Sequence[Column], path: Path) -> None:
    """Several evaluations side by side: regret above, suboptimality below, one legend for all."""
    with figure_at(path, (3.6 * max(len(columns), 2), 5.6)) as figure:
        grid = figure.subplots(2, len(columns), squeeze=False)
        lines: dict[str, Any] = {}
        for place, column in enumerate(columns):
            for row, kind in enumerate(_LABELS):
                axes = grid[row][place]
                lines |= curves(axes, column.summary, kind, column.agents)
                axes.set_ylabel(_LABELS[kind] if place == 0 else "")
            grid[0][place].set_title(column.title, loc="left")
        figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=min(len(lines), 6))


def draw_sweep(axis: str, places: Sequence[float], summaries: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Regret after all rounds against what is swept, with standard errors."""
    with figure_at(path, (7.0, 4.2)) as figure:
        axes = figure.subplots()
        names = list(dict.fromkeys(name for summary in summaries for name in summary["agents"]))
        for name, (colour, style) in looks_of(names).items():
            known = [(place, one["agents"][name]) for place, one in zip(places, summaries, strict=True)]
            x, means = [place for place, _ in known], [row["regret_mean"] for _, row in known]
            errors = [row["regret_stderr"] or 0.0 for _, row in known]
            axes.errorbar(x, means, errors, color=colour, linestyle=style, marker="o", markersize=3, label=name)
        axes.set(xlabel=axis, ylabel="dynamic regret after all rounds", ylim=(0, None))
        figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")


def curves(axes: Axes, summary: Mapping[str, Any], kind: Kind, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Draw some agents of a summary, or all of them; the lines by agent."""
    agents = summary["agents"]
    names = list(agents) if names is None else names
    rounds = range(1, summary["horizon"] + 1)
    lines = {}
    for name, (colour, style) in looks_of(names).items():
        mean, std = agents[name][f"{kind}_curve"], agents[name][f"{kind}_curve_std"]
        lines[name] = axes.plot(rounds, mean, linestyle=style, color=colour, label=name, linewidth=1.4)[0]
        low = [max(0.0, m - s) for m, s in zip(mean, std, strict=True)]
        high = [m + s for m, s in zip(mean, std, strict=True)]
        axes.fill_between(rounds, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.set_xlabel("round t")
    axes.set_ylabel(_LABELS[kind])
    axes.set_xlim(1, max(summary["horizon"], 2))
    axes.set_ylim(0, None if any(any(agents[name][f"{kind}_curve"]) for name in names) else 1)
    return lines
