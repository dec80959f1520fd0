"""One look for every figure: the same agent has the same colour in all of them.

The colours are from the palettes of Okabe and Ito and of Tol, which colour-blind readers can tell apart; agents that
share a colour differ in line style.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import offset_copy

from driftformer.errors import InputError
from driftformer.plots.contrast import LIGHT, TEXT, seen_on
from driftformer.storage.files import write_atomically

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
    "discounted-thompson": "#B8860B",
    "sliding window": "#CC6677",
    "discounted thompson": "#B8860B",
    "change-point-oracle": "#000000",
    "oracle": "#000000",
    "optimal": "#000000",
}
_OTHERS = ("#D55E00", "#56B4E9", "#999933", "#009E73", "#CC79A7")
_STYLES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (8, 2)), (0, (1, 3)), (0, (5, 1, 1, 1, 1, 1)), (0, (10, 3, 2, 3)))

_LEADER: dict[str, Any] = {"arrowstyle": "-", "linewidth": 0.7, "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)}
"""A line from the end of a curve to its name."""

_UNDATED: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same figure, the same file

_LOOK: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.5,
    "legend.frameon": False,
    "legend.handlelength": 2.6,  # long enough to tell dashes apart
    "figure.dpi": 160,
    "svg.hashsalt": "driftformer",
    "pdf.fonttype": 42,  # TrueType, as venues ask for
}


def looks_of(names: Sequence[str]) -> dict[str, tuple[str, Any]]:
    """Colour and line style of each agent: the colour by its name, the style by its place among those that share it."""
    styles: defaultdict[str, Iterator[Any]] = defaultdict(lambda: cycle(_STYLES))
    return {name: (colour_of(name), next(styles[colour_of(name)])) for name in names}


def colour_of(agent: str) -> str:
    """An agent's colour, the same in every figure; unknown agents share a few."""
    base = agent.partition("@")[0]
    return COLOURS.get(base) or _OTHERS[sum(map(ord, base)) % len(_OTHERS)]


def name_ends(axes: Axes, ends: Mapping[str, tuple[float, str, str]]) -> None:
    """Names beside the ends of lines, pushed apart where ends are close: by name, its value, colour and text.

    The limits of the vertical axis must be set before; a value above them is named at the top.
    """
    low, high = axes.get_ylim()
    size = 8.0
    height = axes.get_window_extent().height * 72 / axes.figure.dpi  # in points
    placed: list[tuple[float, float, str, str]] = []  # where the line ends, where its name stands
    for value, colour, text in sorted(ends.values(), reverse=True):
        wanted = (min(value, high) - low) / (high - low) * height
        placed.append((wanted, min(wanted, placed[-1][1] - 1.25 * size) if placed else wanted, colour, text))
    raised = max(0.0, -4.0 - placed[-1][1]) if placed else 0.0
    inside = offset_copy(axes.transAxes, axes.get_figure(root=True), x=12, y=0, units="points")
    for wanted, at, colour, text in placed:
        axes.annotate(
            text,
            xy=(1, wanted / height),
            xytext=(1, (at + raised) / height),
            xycoords="axes fraction",
            textcoords=inside,
            color=seen_on(LIGHT, colour, TEXT),
            fontsize=size,
            va="center",
            arrowprops=_LEADER | {"color": colour},
            annotation_clip=False,
        )


@contextmanager
def figure_at(path: Path, size: tuple[float, float]) -> Iterator[Picture]:
    """A figure in this style, written when the block ends."""
    ending = path.suffix.removeprefix(".")
    if ending not in FigureCanvasAgg.get_supported_filetypes():
        raise InputError(f"figure is '{path}', whose suffix is not an image format; use .png or .svg")
    with drawn(size) as figure:
        yield figure
    write_atomically(path, figure.written(ending))


@contextmanager
def drawn(size: tuple[float, float]) -> Iterator[Picture]:
    """A figure in this style, for whoever wants to see or write it later."""
    with matplotlib.rc_context(_LOOK):
        figure = Picture(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure


class Picture(Figure):
    """A figure of matplotlib that notebooks show by themselves, and that is written in this style."""

    def written(self, ending: str) -> bytes:
        """The content of a file: the same figure, the same bytes."""
        page = io.BytesIO()
        with matplotlib.rc_context(_LOOK):
            self.savefig(page, format=ending, metadata=_UNDATED.get(ending))
        return page.getvalue()

    def _repr_png_(self) -> bytes:
        return self.written("png")
