"""A real browser for the pages: every request, message and error on the way is kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Scheme = Literal["light", "dark"]
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, or a skipped test that says so."""
    from playwright.sync_api import sync_playwright

    found = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        if os.environ.get("DRIFTFORMER_BROWSER") == "required":
            pytest.fail("no Chromium was found, and DRIFTFORMER_BROWSER=required")
        pytest.skip("no Chromium was found, so no page was tried in a browser: install Debian's chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass(frozen=True)
class Opened:
    """A page in the browser, and what went wrong."""

    page: Page
    troubles: list[str]


def opened(
    browser: Browser, path: Path, width: int = 1280, scheme: Scheme = "light", drawn: str = ".plot .main-svg"
) -> Opened:
    """A page from disk, when that part of it is there."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: None if _own(request.url) else troubles.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector(drawn)
    return Opened(page, troubles)


def _own(url: str) -> bool:
    return url.startswith(("file:", "data:", "blob:"))
