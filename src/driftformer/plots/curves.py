"""Regret and suboptimality curves, one evaluation or several side by side, and regret against a swept setting.

Bands show the standard deviation between runs, as the paper's do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from matplotlib.axes import Axes

from driftformer.plots.style import figure_at, looks_of
from driftformer.simulation.summary import Summary

Kind = Literal["regret", "suboptimality"]

_LABELS: dict[Kind, str] = {"regret": "cumulative dynamic regret", "suboptimality": "suboptimality"}


def draw(summary: Summary, path: Path, kind: Kind = "regret") -> None:
    """One evaluation."""
    with figure_at(path, (6.0, 3.8)) as figure:
        axes = figure.subplots()
        curves(axes, summary, kind)
        axes.set_title(summary.title, fontsize=9, loc="left")
        axes.legend()


@dataclass(frozen=True)
class Column:
    """Some agents of one evaluation."""

    title: str
    summary: Summary
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
            grid[0][place].set_title(f"{column.title} ({column.summary.runs} runs)", loc="left")
        figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=min(len(lines), 6))


def draw_sweep(axis: str, values: Sequence[float], summaries: Sequence[Summary], path: Path) -> None:
    """Regret after the last round against a swept setting, with standard errors."""
    with figure_at(path, (7.0, 4.2)) as figure:
        axes = figure.subplots()
        names = list(dict.fromkeys(name for summary in summaries for name in summary.agents))
        for name, (colour, style) in looks_of(names).items():
            rows = [summary.agents[name] for summary in summaries]
            means, errors = [row.regret_mean for row in rows], [row.regret_stderr or 0.0 for row in rows]
            axes.errorbar(values, means, errors, color=colour, linestyle=style, marker="o", markersize=3, label=name)
        axes.set(xlabel=axis, ylabel="dynamic regret after the last round", ylim=(0, None))
        axes.set_title(f"{summaries[0].runs} runs each", fontsize=9, loc="left")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")


def curves(axes: Axes, summary: Summary, kind: Kind, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Draw all agents of a summary, or some; the lines by agent."""
    rounds = range(1, summary.horizon + 1)
    lines, top = {}, 0.0
    for name, (colour, style) in looks_of(list(summary.agents) if names is None else names).items():
        row = summary.agents[name]
        if kind == "regret":
            mean, std = row.regret_curve, row.regret_curve_std
        else:
            mean, std = row.suboptimality_curve, row.suboptimality_curve_std
        lines[name] = axes.plot(rounds, mean, linestyle=style, color=colour, label=name, linewidth=1.4)[0]
        low = [max(0.0, m - s) for m, s in zip(mean, std, strict=True)]
        high = [m + s for m, s in zip(mean, std, strict=True)]
        axes.fill_between(rounds, low, high, color=colour, alpha=0.12, linewidth=0)
        top = max(top, *mean)
    axes.set_xlabel("round t")
    axes.set_ylabel(_LABELS[kind])
    axes.set_xlim(1, max(summary.horizon, 2))
    axes.set_ylim(0, None if top else 1)
    return lines
