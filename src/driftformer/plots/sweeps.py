"""A sweep at a glance: lines with bands along one varied setting, heatmaps over two.

With more than two varied settings the first two span the heatmaps, and each combination of the others has its own
panel. A row of a sweep is a mapping with the settings, `agent`, `regret_mean`, `regret_low` and `regret_high`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from driftformer.plots.style import figure_at, looks_of, name_ends
from driftformer.simulation.numbers import number

PANELS = 24
"""The most heatmaps on one page; the table has them all."""

_WRITTEN = 60
"""Cells of a heatmap up to which each shows its number."""

Row = Mapping[str, Any]
Varied = Mapping[str, Sequence[Any]]
_REGRET = "dynamic regret after the last round"


def draw(varied: Varied, rows: Sequence[Row], title: str, path: Path) -> None:
    """Lines along the one varied setting, or heatmaps over several."""
    if len(varied) == 1:
        _draw_lines(varied, rows, title, path)
    else:
        _draw_heatmaps(varied, rows, title, path)


def _draw_lines(varied: Varied, rows: Sequence[Row], title: str, path: Path) -> None:
    ((axis, values),) = varied.items()
    with figure_at(path, (7.0, 4.2)) as figure:
        axes, ends = figure.subplots(), {}
        for agent, (colour, style) in looks_of(list(dict.fromkeys(row["agent"] for row in rows))).items():
            own = {row[axis]: row for row in rows if row["agent"] == agent}
            # An agent without the varied option is a level line.
            line = [own[value] if value in own else own[None] for value in values]
            means = [row["regret_mean"] for row in line]
            axes.plot(values, means, color=colour, linestyle=style, marker="o", markersize=3)
            ends[agent] = means[-1], colour, agent
            if line[0]["regret_low"] is not None:
                low, high = [row["regret_low"] for row in line], [row["regret_high"] for row in line]
                axes.fill_between(values, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.set(xlabel=_short(axis), ylabel=_REGRET, ylim=(0, None))
        axes.set_title(title, fontsize=9, loc="left")
        axes.margins(x=0.01)
        figure.draw_without_rendering()
        name_ends(axes, ends)


def _draw_heatmaps(varied: Varied, rows: Sequence[Row], title: str, path: Path) -> None:
    across, down, *others = varied
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
            image = _draw_heatmap(axes, varied, across, down, some, top)
            rest = [(_short(name), value) for name, value in zip(others, names[1:], strict=True) if value is not None]
            heading = ", ".join([names[0], *(f"{name} {written(value)}" for name, value in rest)])
            axes.set_title(heading, fontsize=8, loc="left")
        figure.colorbar(image, ax=every, label=_REGRET, shrink=0.8)
        left_out = f"; {len(panels) - PANELS} more panels in the table" if len(panels) > PANELS else ""
        figure.suptitle(title + left_out, fontsize=9, x=0.01, ha="left")


def _draw_heatmap(axes: Axes, varied: Varied, across: str, down: str, rows: Sequence[Row], top: float) -> Any:
    """The panel of one agent; an option that the agent does not have is a dash."""
    shown = {name: {row[name] for row in rows} for name in (across, down)}
    x, y = ([value for value in varied[name] if value in own] or [None] for name, own in shown.items())
    means = {(row[across], row[down]): row["regret_mean"] for row in rows}
    cells = [[means[one, other] for one in x] for other in y]
    image = axes.imshow(cells, cmap="viridis", vmin=0, vmax=top or 1.0, aspect="auto", origin="lower")
    if len(means) <= _WRITTEN:
        for (one, other), mean in means.items():
            colour = "white" if mean < 0.6 * top else "black"
            axes.text(x.index(one), y.index(other), number(mean), ha="center", va="center", color=colour, fontsize=6)
    axes.set_xticks(range(len(x)), [written(value) for value in x], fontsize=7)
    axes.set_yticks(range(len(y)), [written(value) for value in y], fontsize=7)
    axes.set(xlabel=_short(across), ylabel=_short(down))
    axes.grid(visible=False)
    return image


def _short(name: str) -> str:
    """`agent.alpha` is alpha."""
    return name.removeprefix("agent.")


def written(value: Any) -> str:
    """A setting as text."""
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
