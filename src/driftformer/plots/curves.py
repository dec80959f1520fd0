"""Regret and suboptimality curves, one evaluation or several side by side, and regret against a swept setting.

Bands show the standard deviation between runs, as the paper's do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from driftformer.plots.style import COLOURS, colour_of, figure_at, looks_of
from driftformer.simulation.summary import Summary

Kind = Literal["regret", "suboptimality"]

_LABELS: dict[Kind, str] = {"regret": "cumulative dynamic regret", "suboptimality": "suboptimality"}
_OF_RATES = {
    "sliding window": "#D55E00",
    "discounted thompson": COLOURS["thompson"],
    "change-point-oracle": COLOURS["oracle"],
}


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


def draw_rates(rates: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """One panel per sweep, from the content of rates.json: a power law is a line, and its exponent the slope."""
    with figure_at(path, (10.0, 7.4)) as figure:
        grid = figure.subplots(2, 2).flatten()
        for axes, (name, sweep) in zip(grid, rates.items(), strict=True):
            values = sweep["values"]
            for agent, found in sweep["agents"].items():
                label = f"{agent}: {found['slope']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"
                colour = _OF_RATES.get(agent) or colour_of(agent)
                axes.loglog(values, found["regret"], "o-", color=colour, label=label, markersize=4, linewidth=1.3)
            axes.set_xlabel(sweep["axis"])
            axes.set_xticks(values, [f"{value:g}" for value in values])
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.set_ylabel("dynamic regret")
            axes.set_title(f"{name}; in the paper: {sweep['expected']}", fontsize=8, loc="left")
            low, high = axes.get_ylim()
            axes.set_ylim(low, high * (high / low) ** 0.45)  # room for the legend
            axes.legend(fontsize=8, loc="upper left")


def curves(axes: Axes, summary: Summary, kind: Kind, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Draw all agents of a summary, or some; the lines by agent."""
    rounds = range(1, summary.horizon + 1)
    lines, top = {}, 0.0
    for name, (colour, style) in looks_of(list(summary.agents) if names is None else names).items():
        row = summary.agents[name]
        mean, std = np.array(getattr(row, f"{kind}_curve")), np.array(getattr(row, f"{kind}_curve_std"))
        lines[name] = axes.plot(rounds, mean, linestyle=style, color=colour, label=name, linewidth=1.4)[0]
        low, high = np.maximum(mean - std, 0), mean + std
        axes.fill_between(rounds, low, high, color=colour, alpha=0.12, linewidth=0)
        top = max(top, mean.max())
    axes.set(xlabel="round t", ylabel=_LABELS[kind], xlim=(1, max(summary.horizon, 2)), ylim=(0, None if top else 1))
    return lines
