"""One look for every figure: the same agent has the same colour in all of them.

The colours are from the palettes of Okabe and Ito and of Tol, which colour-blind readers can tell apart; agents that
share a colour differ in line style.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from driftformer.errors import InputError
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
    "ucb-vi": "#0072B2",
    "psrl": "#E69F00",
    "q-ucb": "#CC6677",
    "restart-q-ucb": "#332288",
    "master-ucb-vi": "#009E73",
    "master-q-ucb": "#CC79A7",
    "oracle": "#000000",
    "optimal": "#000000",
}
_OTHERS = ("#D55E00", "#56B4E9", "#F0E442", "#009E73", "#CC79A7")
_STYLES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (8, 2)), (0, (1, 3)), (0, (5, 1, 1, 1, 1, 1)), (0, (10, 3, 2, 3)))

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


def looks_of(names: Sequence[str]) -> dict[str, tuple[str, Any]]:
    """Colour and line style of each agent: the colour by its name, the style by its place among those that share it."""
    styles: defaultdict[str, Iterator[Any]] = defaultdict(lambda: cycle(_STYLES))
    return {name: (colour_of(name), next(styles[colour_of(name)])) for name in names}


def colour_of(agent: str) -> str:
    """An agent's colour, the same in every figure; unknown agents share a few."""
    base = agent.partition("@")[0]
    return COLOURS.get(base) or _OTHERS[sum(map(ord, base)) % len(_OTHERS)]


@contextmanager
def figure_at(path: Path, size: tuple[float, float]) -> Iterator[Figure]:
    """A figure in this style, written when the block ends."""
    ending = path.suffix.removeprefix(".")
    if ending not in FigureCanvasAgg.get_supported_filetypes():
        raise InputError(f"figure is '{path}', whose suffix is not an image format; use .png or .svg")
    with matplotlib.rc_context(_LOOK):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        page = io.BytesIO()
        figure.savefig(page, format=ending, metadata=_UNDATED.get(ending))
    write_atomically(path, page.getvalue())
