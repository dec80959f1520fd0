"""One browser for all tests of pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium, or a skipped test that says so."""
    from playwright.sync_api import sync_playwright

    found = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        if os.environ.get("DRIFTFORMER_BROWSER") == "required":
            pytest.fail("no Chromium was found, and DRIFTFORMER_BROWSER=required")
        pytest.skip("no Chromium was found, so the report was not tried in a browser: install Debian's chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()
