"""How regret grows: on logarithmic axes a power law is a line, and its exponent the slope."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.ticker import NullFormatter

from driftformer.plots.style import COLOURS, colour_of, figure_at

_COLOURS = {
    "sliding window": "#D55E00",
    "discounted thompson": COLOURS["thompson"],
    "change-point-oracle": COLOURS["oracle"],
}


def draw_rates(rates: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """One panel per sweep, from the content of rates.json."""
    with figure_at(path, (10.0, 7.4)) as figure:
        grid = figure.subplots(2, 2).flatten()
        for axes, (name, sweep) in zip(grid, rates.items(), strict=True):
            values = sweep["values"]
            for agent, found in sweep["agents"].items():
                label = f"{agent}: {found['slope']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"
                colour = _COLOURS.get(agent) or colour_of(agent)
                axes.loglog(values, found["regret"], "o-", color=colour, label=label, markersize=4, linewidth=1.3)
            axes.set_xlabel(sweep["axis"])
            axes.set_xticks(values, [f"{value:g}" for value in values])
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.set_ylabel("dynamic regret")
            axes.set_title(f"{name}; in the paper: {sweep['expected']}", fontsize=8, loc="left")
            low, high = axes.get_ylim()
            axes.set_ylim(low, high * (high / low) ** 0.45)  # room for the legend
            axes.legend(fontsize=8, loc="upper left")
