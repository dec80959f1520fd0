"""Check every link of the built site that stays on it: its file must be there, and the place in it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Read(HTMLParser):
    """The links of a page, and the places that links may lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name == "id" and value:
                self.places.add(value)


@cache
def _read(path: Path) -> _Read:
    reader = _Read()
    reader.feed(path.read_text())
    return reader


def broken(site: Path) -> Iterator[str]:
    """A line for each link that leads nowhere."""
    for page in sorted(site.rglob("*.html")):
        for link in sorted(_read(page).links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not target.is_file():
                yield f"{page.relative_to(site)}: there is no {link}"
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in _read(target).places:
                yield f"{page.relative_to(site)}: there is no place {link}"
