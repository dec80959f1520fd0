"""A page: its first screen, links that stay in view, sections, and the figures that its script draws.

The page is a single file that requests nothing: data, style, script and the basic bundle of plotly.js (`plotly/`, with
its licence) are embedded. Equal contents give equal pages, and a page can be moved or mailed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from driftformer.report.markup import escaped, looks
from driftformer.storage.files import write_atomically

Figures = dict[str, dict[str, Any]]
"""What the script draws, by the name of its place."""


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading and a link to it."""

    anchor: str
    title: str
    text: str  # HTML
    short: str = ""  # the words of the link


@dataclass(frozen=True)
class Page:
    """Everything that is shown; the text is all there without the script."""

    title: str
    first: str  # HTML: a sentence and a picture
    sections: Sequence[Section]
    figures: Figures
    agents: Sequence[str]

    def render(self) -> str:
        """The whole file."""
        data = {"figures": self.figures, "looks": looks(self.agents)}
        written = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        page = asset("page.html")
        for mark, content in {
            "TITLE": escaped(self.title),
            "STYLE": asset("page.css"),
            "BODY": self._body(),
            "DATA": written,
            "PLOTLY": asset("plotly/plotly-basic.min.js").replace("</script", "<\\/script"),
            "SCRIPT": asset("page.js") + asset("plots.js"),
        }.items():
            page = page.replace(f"<!--{mark}-->", content)
        return page

    def _body(self) -> str:
        return f"<header>\n{self.first}\n</header>\n{_links(self.sections)}\n" + "\n".join(map(_shown, self.sections))

    def write(self, path: Path) -> Path:
        write_atomically(path, self.render().encode())
        return path


def _links(sections: Iterable[Section]) -> str:
    links = "".join(f'<a href="#{escaped(one.anchor)}">{escaped(one.short or one.title)}</a>' for one in sections)
    return f'<nav aria-label="Sections"><div><a href="#top">Top</a>{links}</div></nav>'


def _shown(one: Section) -> str:
    return f'<section id="{escaped(one.anchor)}"><h2>{escaped(one.title)}</h2>\n{one.text}</section>'


def asset(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
