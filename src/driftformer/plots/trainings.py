"""Policies that were trained in different ways: regret as a share of chance's, as a line, bars or a matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from driftformer.plots.style import colour_of, figure_at

_POLICY = "#D55E00"
Rows = Sequence[Mapping[str, Any]]


def draw_matrix(rows: Rows, path: Path) -> None:
    """What each policy was trained on against what it plays."""
    worlds = list(rows[0]["worlds"])
    shares = [[row["worlds"][world]["mean"] for world in worlds] for row in rows]
    with figure_at(path, (7.0, 4.2)) as figure:
        axes = figure.subplots()
        axes.imshow(shares, cmap="viridis", vmin=0, vmax=1)
        for y, line in enumerate(shares):
            for x, value in enumerate(line):
                axes.text(x, y, f"{value:.2f}", ha="center", va="center", color="white" if value < 0.6 else "black")
        axes.set_xticks(range(len(worlds)), worlds)
        axes.set_yticks(range(len(rows)), [row["label"] for row in rows])
        axes.grid(visible=False)


def draw_line(rows: Rows, references: Mapping[str, Any], axis: str, path: Path) -> None:
    """Regret against the number in which the trainings differ."""
    with _beside_references(rows, references, path) as (axes, means, errors):
        axes.errorbar([row["value"] for row in rows], means, errors, marker="o", color=_POLICY, label="policy")
        axes.set(xscale="log", xlabel=axis)


def draw_bars(rows: Rows, references: Mapping[str, Any], path: Path) -> None:
    """Regret of trainings that differ in kind."""
    with _beside_references(rows, references, path) as (axes, means, errors):
        axes.bar([row["label"] for row in rows], means, yerr=errors, color=_POLICY)
        axes.tick_params(axis="x", rotation=30)


@contextmanager
def _beside_references(
    rows: Rows, references: Mapping[str, Any], path: Path
) -> Iterator[tuple[Axes, list[float], list[float]]]:
    """Axes with a level line for each reference, and what the policies reached in the one world of all."""
    (world,) = rows[0]["worlds"]
    found = [row["worlds"][world] for row in rows]
    with figure_at(path, (7.0, 4.2)) as figure:
        axes = figure.subplots()
        yield axes, [one["mean"] for one in found], [one["stderr"] for one in found]
        for agent, measured in references.items():
            axes.axhline(measured[world]["mean"], color=colour_of(agent), linestyle="--", linewidth=1, label=agent)
        axes.set(ylabel="regret as a share of chance's", ylim=(0, None))
        figure.legend(loc="outside right upper")
