"""Regret and suboptimality curves in one look: the same agent has the same colour in every figure.

Colours are of Okabe and Ito's and of Tol's palettes, which colour-blind readers can tell apart; agents that share a
colour differ in line style. Bands show the standard deviation between runs, as the paper's do.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from driftformer.errors import InputError
from driftformer.evaluation.result import describe
from driftformer.files import write_atomically

Kind = Literal["regret", "suboptimality"]

COLOURS: dict[str, str] = {
    "random": "#999999",
    "linucb": "#0072B2",
    "thompson": "#E69F00",
    "master-linucb": "#009E73",
    "master-thompson": "#CC79A7",
    "discounted-linucb": "#117733",
    "weighted-linucb": "#999933",
    "sliding-window-linucb": "#CC6677",
    "detection-linucb": "#661100",
    "restart": "#332288",
    "policy:low": "#882255",
    "policy:high": "#882255",
    "policy:high-master-linucb": "#44AA99",
    "policy:high-master-thompson": "#AA4499",
    "policy:cosine": "#56B4E9",
    "policy:drift": "#D55E00",
    "oracle": "#000000",
    "optimal": "#000000",
}
_OTHERS = ("#D55E00", "#56B4E9", "#F0E442", "#009E73", "#CC79A7")
_STYLES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (8, 2)), (0, (1, 3)), (0, (5, 1, 1, 1, 1, 1)), (0, (10, 3, 2, 3)))
_LABELS: dict[Kind, str] = {"regret": "cumulative dynamic regret", "suboptimality": "suboptimality"}

_UNDATED: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same figure, the same file

_LOOK: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "figure.dpi": 160,
    "svg.hashsalt": "driftformer",
}


def draw(summary: Mapping[str, Any], path: Path, kind: Kind = "regret") -> None:
    """One figure of one evaluation."""
    with figure_at(path, (6.0, 3.8)) as figure:
        axes = figure.subplots()
        curves(axes, summary, kind)
        axes.set_title(describe(summary), fontsize=9, loc="left")
        axes.legend()


@dataclass(frozen=True)
class Column:
    """Some agents of one evaluation."""

    title: str
    summary: Mapping[str, Any]
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
            grid[0][place].set_title(column.title, loc="left")
        figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=min(len(lines), 6))


def draw_sweep(axis: str, places: Sequence[float], summaries: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Regret after all rounds against what is swept, with standard errors."""
    with figure_at(path, (7.0, 4.2)) as figure:
        axes = figure.subplots()
        names = list(dict.fromkeys(name for summary in summaries for name in summary["agents"]))
        for name, (colour, style) in looks_of(names).items():
            known = [(place, one["agents"][name]) for place, one in zip(places, summaries, strict=True)]
            x, means = [place for place, _ in known], [row["regret_mean"] for _, row in known]
            errors = [row["regret_stderr"] or 0.0 for _, row in known]
            axes.errorbar(x, means, errors, color=colour, linestyle=style, marker="o", markersize=3, label=name)
        axes.set(xlabel=axis, ylabel="dynamic regret after all rounds", ylim=(0, None))
        figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")


def curves(axes: Axes, summary: Mapping[str, Any], kind: Kind, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Draw some agents of a summary, or all of them; the lines by agent."""
    agents = summary["agents"]
    names = list(agents) if names is None else names
    rounds = range(1, summary["horizon"] + 1)
    lines = {}
    for name, (colour, style) in looks_of(names).items():
        mean, std = agents[name][f"{kind}_curve"], agents[name][f"{kind}_curve_std"]
        lines[name] = axes.plot(rounds, mean, linestyle=style, color=colour, label=name, linewidth=1.4)[0]
        low = [max(0.0, m - s) for m, s in zip(mean, std, strict=True)]
        high = [m + s for m, s in zip(mean, std, strict=True)]
        axes.fill_between(rounds, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.set_xlabel("round t")
    axes.set_ylabel(_LABELS[kind])
    axes.set_xlim(1, max(summary["horizon"], 2))
    axes.set_ylim(0, None if any(any(agents[name][f"{kind}_curve"]) for name in names) else 1)
    return lines


def looks_of(names: Sequence[str]) -> dict[str, tuple[str, Any]]:
    """Colour and line style of each agent: the colour by its name, the style by its options."""
    seen: dict[str, int] = {}
    looks = {}
    for name in names:
        colour = colour_of(name)
        looks[name] = (colour, _STYLES[seen.get(colour, 0) % len(_STYLES)])
        seen[colour] = seen.get(colour, 0) + 1
    return looks


def colour_of(agent: str) -> str:
    """The same colour for the same agent everywhere; others share a few."""
    base = agent.partition("@")[0]
    return COLOURS.get(base) or _OTHERS[sum(map(ord, base)) % len(_OTHERS)]


@contextmanager
def figure_at(path: Path, size: tuple[float, float]) -> Iterator[Figure]:
    """A figure in our look that is written when the block ends."""
    known = FigureCanvasAgg.get_supported_filetypes()
    ending = path.suffix.removeprefix(".")
    if ending not in known:
        raise InputError(f"figure is '{path}', whose ending is no picture format; use .png or .svg")
    with matplotlib.rc_context(_LOOK):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        page = io.BytesIO()
        figure.savefig(page, format=ending, metadata=_UNDATED.get(ending))
    write_atomically(path, page.getvalue())
