"""All agents and all worlds in one picture: scores with their intervals, and performance profiles beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from driftformer.plots.style import figure_at, looks_of

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """An agent: its mean score in every world that it played and, if it played them all, over them with an interval."""

    agent: str
    worlds: tuple[float, ...]
    overall: tuple[float, float, float] | None


def draw_leaderboard(
    rows: Sequence[Row],
    levels: Numbers,
    profiles: Mapping[str, tuple[Numbers, Numbers, Numbers]],
    top: str,
    path: Path,
) -> None:
    """Draw the board; the first agent is on top, and `top` says what has the score 100."""
    looks = looks_of([row.agent for row in rows])
    with figure_at(path, (9.6, max(3.0, 1.2 + 0.27 * len(rows)))) as figure:
        board, shares = figure.subplots(1, 2, width_ratios=(1.15, 1))
        for place, row in enumerate(reversed(rows)):
            colour, _ = looks[row.agent]
            inside = "none" if row.overall is None else colour
            board.scatter(row.worlds, [place] * len(row.worlds), s=14, facecolors=inside, edgecolors=colour, alpha=0.6)
            if row.overall is not None:
                mean, low, high = row.overall
                board.plot([low, high], [place, place], color=colour, linewidth=3, solid_capstyle="butt")
                board.plot(mean, place, "o", color=colour, markersize=7, markeredgecolor="white")
        board.set_yticks(range(len(rows)), [row.agent for row in reversed(rows)])
        board.set(xlabel="score", title="interquartile means (95%); small: worlds", ylim=(-0.7, len(rows) - 0.3))
        least = min((score for row in rows for score in row.worlds), default=0.0)
        board.set_xlim(max(-60.0, min(0.0, least)) - 3, 103)
        for agent, (share, least_share, most) in profiles.items():
            colour, style = looks[agent]
            shares.plot(levels, share, color=colour, linestyle=style)
            shares.fill_between(levels, least_share, most, color=colour, alpha=0.12, linewidth=0)
        shares.set(xlabel="score", ylabel="share of problems above it", xlim=(0, 100), ylim=(0, 1.02))
        shares.yaxis.set_major_formatter(PercentFormatter(1.0))
        shares.set_title("performance profiles (95%)")
        figure.supxlabel(f"0: random play; 100: {top}", fontsize=8, color="#444444")
