"""Small pieces of HTML: tables, prose, and an agent's name beside the line that it has in the plots."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any

from driftformer.plots.contrast import DARK, LIGHT, LINE, TEXT, seen_on
from driftformer.plots.style import looks_of

_DASHES = {"-": "solid", "--": "dash", ":": "dot", "-.": "dashdot"}
_BLACK, _INVERTED = "#000000", "#f2f2f2"
_STROKES = {"solid": "none", "dash": "7 4", "dot": "2 3", "dashdot": "7 3 2 3"}


def escaped(text: object) -> str:
    return html.escape(str(text))


def anchored(name: str) -> str:
    """A name as part of an id."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def prose(text: str) -> str:
    """A sentence, with backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped(text))


def plain(text: str) -> str:
    """A sentence without its backticks, for a terminal."""
    return text.replace("`", "")


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table of cells that are HTML already; the first of each row is its heading."""
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    title = f"<caption>{caption}</caption>" if caption else ""
    return f'<div class="wide"><table>{title}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'


def figure(name: str, kind: str = "") -> str:
    """The place of a figure, which the page's script draws."""
    return f'<div class="figure {kind}" data-figure="{escaped(name)}"></div>'


def looks(agents: Sequence[str]) -> dict[str, dict[str, str]]:
    """The line of every agent, in both schemes: the same wherever it is on the page."""
    found = {}
    for name, (colour, style) in looks_of(agents).items():
        dash = _DASHES.get(style, "longdash") if isinstance(style, str) else _pixels(style)
        found[name] = {
            "dash": dash,
            "light": seen_on(LIGHT, colour, 2.0),
            "dark": _INVERTED if colour == _BLACK else seen_on(DARK, colour, LINE),
            "light_text": seen_on(LIGHT, colour, TEXT),
            "dark_text": _INVERTED if colour == _BLACK else seen_on(DARK, colour, TEXT),
        }
    return found


def _pixels(style: Any) -> str:
    """A dash pattern of matplotlib as one of plotly."""
    return ",".join(f"{2 * length:g}px" for length in style[1])


def swatch(look: dict[str, str]) -> str:
    """A bit of an agent's line."""
    dash = _STROKES.get(look["dash"], look["dash"].replace("px", "").replace(",", " "))
    return (
        f'<svg class="swatch" style="--light:{look["light"]};--dark:{look["dark"]}" viewBox="0 0 26 8" '
        f'aria-hidden="true"><line x1="1" y1="4" x2="25" y2="4" stroke-dasharray="{dash}"/></svg>'
    )
