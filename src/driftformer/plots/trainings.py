"""Policies that were trained in different ways: regret as a share of chance's, as a line, bars or a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from driftformer.plots.style import colour_of, figure_at

_POLICY = "#D55E00"
Rows = Sequence[Mapping[str, Any]]


def draw_trainings(view: str, axis: str, results: Mapping[str, Any], path: Path) -> None:
    """One experiment: trained against played, or all trainings in the first of their worlds, beside references."""
    rows: Rows = results["trainings"]
    with figure_at(path, (7.0, 4.2)) as figure:
        axes = figure.subplots()
        if view == "matrix":
            _matrix(axes, rows)
            return
        world = next(iter(rows[0]["worlds"]))
        means, errors = ([row["worlds"][world][key] for row in rows] for key in ("mean", "stderr"))
        if view == "line":
            axes.errorbar([row["value"] for row in rows], means, errors, marker="o", color=_POLICY, label="policy")
            axes.set(xscale="log", xlabel=axis)
        else:
            axes.bar([row["label"] for row in rows], means, yerr=errors, color=_POLICY)
            axes.tick_params(axis="x", rotation=30)
        for agent, measured in results["references"].items():
            axes.axhline(measured[world]["mean"], color=colour_of(agent), linestyle="--", linewidth=1, label=agent)
        axes.set(ylabel="regret as a share of chance's", ylim=(0, None))
        figure.legend(loc="outside right upper")


def _matrix(axes: Axes, rows: Rows) -> None:
    """What each policy was trained on against what it plays."""
    worlds = list(rows[0]["worlds"])
    shares = [[row["worlds"][world]["mean"] for world in worlds] for row in rows]
    axes.imshow(shares, cmap="viridis", vmin=0, vmax=1)
    for y, line in enumerate(shares):
        for x, value in enumerate(line):
            axes.text(x, y, f"{value:.2f}", ha="center", va="center", color="white" if value < 0.6 else "black")
    axes.set_xticks(range(len(worlds)), worlds)
    axes.set_yticks(range(len(rows)), [row["label"] for row in rows])
    axes.grid(visible=False)
