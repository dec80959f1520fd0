"""Regret and suboptimality curves, one evaluation or several side by side, and regret against a swept setting.

In one evaluation, names stand at the ends of lines and the bands of the two best are 95% intervals of the mean. Side by
side, as in the paper, bands show the standard deviation between problems, as the paper's do.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from driftformer.plots.style import Picture, colour_of, drawn, figure_at, looks_of, name_ends
from driftformer.simulation.summary import CHANCE, Summary

Kind = Literal["regret", "suboptimality"]

_SIZE = (6.4, 3.8)
_NINETY_FIVE = 1.96
"""Standard errors on either side of a 95% interval of a mean."""
_FAR = 2.2
"""How many times worse than all others chance must be to be left out of the picture."""
_POINTS = 1000
"""Of a curve; more rounds than that are drawn in stretches, or a vector graphic would have tens of megabytes."""
_CROWD = 8
"""Agents side by side whose bands can still be told apart."""
_LABELS: dict[Kind, str] = {"regret": "cumulative dynamic regret", "suboptimality": "suboptimality"}


def draw(summary: Summary, path: Path, kind: Kind = "regret") -> Picture:
    """One evaluation, written to a file; its suffix is the format."""
    with figure_at(path, _SIZE) as figure:
        fill(figure, summary, kind)
    return figure


def figure_of(summary: Summary, kind: Kind = "regret") -> Picture:
    """The same figure, to look at."""
    with drawn(_SIZE) as figure:
        fill(figure, summary, kind)
    return figure


def fill(figure: Figure, summary: Summary, kind: Kind = "regret") -> None:
    """One evaluation: the agents named at the ends of their lines, and bands around the two best that can win."""
    axes = figure.subplots()
    banded = summary.contenders[:2] if summary.runs > 1 else []
    curves(axes, summary, kind, spread="stderr", banded=banded)
    _leave_out_chance(axes, summary, kind)
    late = max(1, summary.horizon // 20) if kind == "suboptimality" else 1  # single rounds jump
    ends = {}
    top = axes.get_ylim()[1]
    for name in summary.agents:
        end = float(np.mean(getattr(summary.agents[name], f"{kind}_curve")[-late:]))
        ends[name] = end, colour_of(name), f"{name} ↑ {end:,.{0 if end >= 100 else 1}f}" if end > top else name
    figure.draw_without_rendering()  # how high the axes are decides how far names are pushed
    name_ends(axes, ends)
    told = f"{summary.runs} problems; bands: 95% intervals of the mean" if banded else f"{summary.runs} problems"
    axes.set_title(f"{summary.description}\n{told}", fontsize=8, color="#444444")


def _leave_out_chance(axes: Axes, summary: Summary, kind: Kind) -> None:
    """Let random play leave the picture at the top where all others would be one line at the bottom."""
    tops = {name: max(getattr(row, f"{kind}_curve")) for name, row in summary.agents.items()}
    others = [top for name, top in tops.items() if name != CHANCE]
    if others and 0 < _FAR * max(others) < tops.get(CHANCE, 0.0):
        axes.set_ylim(0, 1.12 * max(others))


@dataclass(frozen=True)
class Column:
    """Some agents of one evaluation."""

    title: str
    summary: Summary
    agents: Sequence[str]


def draw_grid(columns: Sequence[Column], path: Path) -> None:
    """Several evaluations side by side: regret above, suboptimality below, one legend for all.

    Panels of the same world are there to be compared: they share their vertical axes.
    """
    same = all(column.summary is columns[0].summary for column in columns)
    names = {name for column in columns for name in column.agents}
    banded = None if len(names) <= _CROWD else ()
    with figure_at(path, (3.6 * max(len(columns), 2), 5.8)) as figure:
        grid = figure.subplots(2, len(columns), squeeze=False, sharey="row" if same else "none")
        lines: dict[str, Any] = {}
        for place, column in enumerate(columns):
            for row, kind in enumerate(_LABELS):
                axes = grid[row][place]
                lines |= curves(axes, column.summary, kind, column.agents, banded=banded)
                axes.set_ylabel(_LABELS[kind] if place == 0 else "")
            title = f"{column.title} ({column.summary.runs} problems)"
            grid[0][place].set_title(textwrap.fill(title, 44), loc="left")
        figure.legend(
            lines.values(),
            lines.keys(),
            loc="outside lower center",
            ncols=min(len(lines), 6 if max(map(len, names)) < 28 else 4),
            title="bands: ± one standard deviation between problems" if banded is None else None,
            title_fontsize=8,
        )


def draw_sweep(axis: str, values: Sequence[float], summaries: Sequence[Summary], path: Path) -> None:
    """Regret after the last round against a swept setting, with 95% intervals."""
    with figure_at(path, (7.0, 4.2)) as figure:
        axes = figure.subplots()
        names = list(dict.fromkeys(name for summary in summaries for name in summary.agents))
        ends = {}
        for name, (colour, style) in looks_of(names).items():
            rows = [summary.agents[name] for summary in summaries]
            means, errors = (
                [row.regret_mean for row in rows],
                [_NINETY_FIVE * (row.regret_stderr or 0.0) for row in rows],
            )
            axes.errorbar(values, means, errors, color=colour, linestyle=style, marker="o", markersize=3)
            ends[name] = means[-1], colour, name
        axes.set(xlabel=axis, ylabel="dynamic regret after the last round", ylim=(0, None))
        axes.set_title(f"{summaries[0].runs} problems each, 95% intervals", fontsize=9, loc="left")
        axes.margins(x=0.01)
        figure.draw_without_rendering()
        name_ends(axes, ends)


def draw_rates(rates: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """One panel per sweep, from the content of rates.json: a power law is a line, and its exponent the slope."""
    with figure_at(path, (10.0, 7.4)) as figure:
        grid = figure.subplots(2, 2).flatten()
        for axes, (name, sweep) in zip(grid, rates.items(), strict=True):
            values = sweep["values"]
            for agent, found in sweep["agents"].items():
                label = f"{agent}: {found['slope']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"
                colour = colour_of(agent)
                axes.loglog(values, found["regret"], "o-", color=colour, label=label, markersize=4, linewidth=1.3)
            axes.set_xlabel(sweep["axis"])
            axes.set_xticks(values, [f"{value:g}" for value in values])
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.set_ylabel("dynamic regret")
            axes.set_title(f"{name}; in the paper: {sweep['expected']}", fontsize=8, loc="left")
            low, high = axes.get_ylim()
            axes.set_ylim(low, high * (high / low) ** 0.45)  # room for the legend
            axes.legend(fontsize=8, loc="upper left")


def curves(
    axes: Axes,
    summary: Summary,
    kind: Kind,
    names: Sequence[str] | None = None,
    *,
    spread: Literal["std", "stderr"] = "std",
    banded: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Draw all agents of a summary, or some; the lines by agent.

    Bands, around all of them or some, are ± one standard deviation between problems, or 95% intervals of the mean.
    """
    stages = summary.stages if kind == "suboptimality" else 1  # the steps of an episode differ too much to be seen
    every = stages * max(summary.horizon // stages // _POINTS, 1)
    rounds = range(every, summary.horizon + 1, every)
    far = 1.0 if spread == "std" else _NINETY_FIVE
    lines, top = {}, 0.0
    for name, (colour, style) in looks_of(list(summary.agents) if names is None else names).items():
        row = summary.agents[name]
        shown = (getattr(row, f"{kind}_curve"), getattr(row, f"{kind}_curve_{spread}"))
        grouped = (np.array(curve)[: every * len(rounds)].reshape(-1, every) for curve in shown)
        mean, reach = (group[:, -1] if kind == "regret" else group.mean(axis=1) for group in grouped)
        reach = far * reach
        lines[name] = axes.plot(rounds, mean, linestyle=style, color=colour, label=name, linewidth=1.4)[0]
        if banded is None or name in banded:
            low, high = np.maximum(mean - reach, 0), mean + reach
            axes.fill_between(rounds, low, high, color=colour, alpha=0.12, linewidth=0)
        top = max(top, mean.max())
    axes.set(xlabel="round t", ylabel=_LABELS[kind], xlim=(1, max(summary.horizon, 2)), ylim=(0, None if top else 1))
    return lines
