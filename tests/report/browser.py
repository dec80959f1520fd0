"""A real browser for the pages: every request, message and error on the way is kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Scheme = Literal["light", "dark"]


@dataclass(frozen=True)
class Opened:
    """A page in the browser, and what went wrong."""

    page: Page
    troubles: list[str]


def opened(browser: Browser, path: Path, width: int = 1280, scheme: Scheme = "light") -> Opened:
    """A page from disk, drawn."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: None if _own(request.url) else troubles.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector(".plot .main-svg")
    return Opened(page, troubles)


def _own(url: str) -> bool:
    return url.startswith(("file:", "data:", "blob:"))
