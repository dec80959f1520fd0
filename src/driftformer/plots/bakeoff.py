"""The bake-off at a glance: each agent's interquartile mean and its interval, a panel for each drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from driftformer.plots.style import colour_of, figure_at

Bar = tuple[float, float, float]
"""A mean and the two ends of its interval."""


def draw_bakeoff(panels: Mapping[str, Mapping[str, Bar]], agents: Sequence[str], path: Path) -> None:
    """Draw the intervals; the first agent is on top."""
    with figure_at(path, (2.0 + 2.1 * len(panels), 0.8 + 0.26 * len(agents))) as figure:
        for axes, (title, bars) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
            for place, agent in enumerate(reversed(agents)):
                mean, low, high = bars[agent]
                axes.plot([low, high], [place, place], color=colour_of(agent), linewidth=4, alpha=0.5)
                axes.plot(mean, place, "o", color=colour_of(agent), markersize=4)
            first = not figure.axes.index(axes)
            axes.set_yticks(range(len(agents)), list(reversed(agents)) if first else [""] * len(agents))
            axes.set(title=title, xlabel="score")
