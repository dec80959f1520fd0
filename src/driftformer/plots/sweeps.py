"""A sweep at one look: lines with bands along one varied field, heatmaps over two.

With more than two varied fields the first two span the heatmaps, and each combination of the others has its own panel.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from driftformer.plots.style import figure_at, looks_of
from driftformer.sweeps.grid import OPTION, Grid
from driftformer.sweeps.sweep import Row

PANELS = 24
"""More heatmaps than these no page can hold; the table has them all."""

_WRITTEN = 60
"""Cells of a heatmap up to which each shows its number."""


def draw(grid: Grid, rows: Sequence[Row], path: Path) -> None:
    """A heatmap of what varies, or lines where only one thing does."""
    if len(grid.varied) == 1:
        _draw_lines(grid, rows, path)
    else:
        _draw_heatmaps(grid, rows, path)


def _draw_lines(grid: Grid, rows: Sequence[Row], path: Path) -> None:
    (axis,) = grid.varied
    values = grid.vary[axis]
    numeric = not isinstance(values[0], str)
    places = [float(value) if numeric else float(place) for place, value in enumerate(values)]
    with figure_at(path, (7.0, 4.2)) as figure:
        axes = figure.subplots()
        for agent, (colour, style) in looks_of(grid.agents).items():
            own = {row[axis]: row for row in rows if row["agent"] == agent}
            # An agent that does not have the varied option is a level line.
            line = [own[value] if value in own else own[None] for value in values]
            means = [row["regret_mean"] for row in line]
            axes.plot(places, means, color=colour, linestyle=style, marker="o", markersize=3, label=agent)
            if line[0]["regret_low"] is not None:
                low, high = [row["regret_low"] for row in line], [row["regret_high"] for row in line]
                axes.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
        if not numeric:
            axes.set_xticks(places, values)
        axes.set(xlabel=_shown(axis), ylabel="dynamic regret after all rounds", ylim=(0, None))
        axes.set_title(_title(grid, rows), fontsize=9, loc="left")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")


def _draw_heatmaps(grid: Grid, rows: Sequence[Row], path: Path) -> None:
    across, down, *others = grid.varied
    panels: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        panels.setdefault((row["agent"], *(row[name] for name in others)), []).append(row)
    shown = list(panels.items())[:PANELS]
    top = max(row["regret_mean"] for _, some in shown for row in some)
    columns = min(len(shown), 4)
    lines = -(-len(shown) // columns)
    with figure_at(path, (0.8 + 3.2 * columns, 0.6 + 2.8 * lines)) as figure:
        every = figure.subplots(lines, columns, squeeze=False)
        for axes in every.flat[len(shown) :]:
            axes.set_axis_off()
        for axes, (names, some) in zip(every.flat, shown, strict=False):
            image = _draw_heatmap(axes, grid, across, down, some, top)
            rest = [(_shown(name), value) for name, value in zip(others, names[1:], strict=True) if value is not None]
            title = ", ".join([names[0], *(f"{name} {_written(value)}" for name, value in rest)])
            axes.set_title(title, fontsize=8, loc="left")
        figure.colorbar(image, ax=every, label="dynamic regret after all rounds", shrink=0.8)
        left_out = f"; {len(panels) - PANELS} more panels in the table" if len(panels) > PANELS else ""
        figure.suptitle(_title(grid, rows) + left_out, fontsize=9, x=0.01, ha="left")


def _draw_heatmap(axes: Axes, grid: Grid, across: str, down: str, rows: Sequence[Row], top: float) -> Any:
    """One agent's panel; an option that the agent does not have has one place, a dash."""
    x = [value for value in grid.vary[across] if any(row[across] == value for row in rows)] or [None]
    y = [value for value in grid.vary[down] if any(row[down] == value for row in rows)] or [None]
    means = {(row[across], row[down]): row["regret_mean"] for row in rows}
    image = axes.imshow(
        [[means[one, other] for one in x] for other in y],
        cmap="viridis",
        vmin=0,
        vmax=top or 1.0,
        aspect="auto",
        origin="lower",
    )
    if len(means) <= _WRITTEN:
        for (one, other), mean in means.items():
            colour = "white" if mean < 0.6 * top else "black"
            axes.text(x.index(one), y.index(other), f"{mean:.3g}", ha="center", va="center", color=colour, fontsize=6)
    axes.set_xticks(range(len(x)), [_written(value) for value in x], fontsize=7)
    axes.set_yticks(range(len(y)), [_written(value) for value in y], fontsize=7)
    axes.set(xlabel=_shown(across), ylabel=_shown(down))
    axes.grid(visible=False)
    return image


def _title(grid: Grid, rows: Sequence[Row]) -> str:
    fixed = [f"{_shown(name)} {_written(values[0])}" for name, values in grid.vary.items() if len(values) == 1]
    return ", ".join([grid.environment, *fixed, f"{rows[0]['runs']} runs"])


def _shown(name: str) -> str:
    return name.removeprefix(OPTION)


def _written(value: Any) -> str:
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
