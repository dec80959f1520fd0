"""The report, in a real browser: it loads from disk alone, and what one clicks changes what one sees."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from driftformer.experiments.claims import CLAIMS
from driftformer.experiments.reproduce import kept, read_experiments
from driftformer.report import headlines, sections
from driftformer.simulation.numbers import number

if TYPE_CHECKING:
    from playwright.sync_api import Page

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def page(reproduction: Path) -> Iterator[Page]:
    from playwright.sync_api import sync_playwright

    found = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        if os.environ.get("DRIFTFORMER_BROWSER") == "required":
            pytest.fail("no Chromium was found, and DRIFTFORMER_BROWSER=required")
        pytest.skip("no Chromium was found, so the report was not tried in a browser: install Debian's chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.troubles = []  # type: ignore[attr-defined]
        page.on("console", lambda message: page.troubles.append(message.text))  # type: ignore[attr-defined]
        page.on("pageerror", lambda error: page.troubles.append(str(error)))  # type: ignore[attr-defined]
        page.on("request", lambda request: page.troubles.append(request.url) if not _own(request.url) else None)  # type: ignore[attr-defined]
        page.goto((reproduction / "report.html").as_uri())
        page.wait_for_selector(".plot .main-svg")
        yield page
        browser.close()


def _own(url: str) -> bool:
    return url.startswith(("file:", "data:", "blob:"))


def lines(page: Page, experiment: str) -> int:
    """Curves that one experiment's first plot shows."""
    return page.locator(f'.plots[data-experiment="{experiment}"] .plot').first.locator(".scatterlayer .trace").count()


def test_it_loads_without_errors_or_requests(page: Page, reproduction: Path, request: pytest.FixtureRequest) -> None:
    picture = page.screenshot(full_page=True)
    kept = request.config.rootpath / ".pytest_cache" / "report.png"
    kept.parent.mkdir(exist_ok=True)
    kept.write_bytes(picture)
    assert page.troubles == []  # type: ignore[attr-defined]
    assert (reproduction / "report.html").stat().st_size < 8 * 2**20


def test_hiding_an_agent_takes_its_curve_away_and_back(page: Page) -> None:
    before = lines(page, "high-0.018")
    box = page.locator('input[name="agents-high-0.018"][value="linucb"]')
    box.uncheck()
    assert lines(page, "high-0.018") == before - 2, "its line and its band"
    box.check()
    assert lines(page, "high-0.018") == before


def test_one_click_switches_what_is_plotted(page: Page) -> None:
    title = page.locator('.plots[data-experiment="low"] .plot .ytitle').first
    assert title.text_content() == "cumulative dynamic regret"
    page.get_by_label("relative to the oracle").first.check()
    assert "oracle" in (title.text_content() or "")
    page.get_by_label("per round").first.check()
    assert title.text_content() == "suboptimality"


def test_worlds_and_runs_can_be_chosen_by_keyboard(page: Page) -> None:
    select = page.locator('.controls[data-experiment="rivals"] select')
    heading = page.locator('.plots[data-experiment="rivals"] .gtitle')
    before = heading.text_content()
    select.focus()
    page.keyboard.press("ArrowDown")
    assert heading.text_content() != before
    plot, caption = page.locator("#single-run-plot"), page.locator("#single-run-caption")
    assert plot.locator(".heatmaplayer image").count() == 1
    assert "restarted" not in (caption.text_content() or "")
    page.locator("#single-run").select_option("master")
    assert plot.locator(".heatmaplayer image").count() == 0
    assert "restarts" in (plot.locator(".gtitle").text_content() or "")
    assert "restarted" in (caption.text_content() or "")


def test_all_claims_stand_in_the_table_with_a_verdict(page: Page) -> None:
    rows = page.locator("#claims tbody tr")
    assert rows.count() == len(CLAIMS)
    for row in range(len(CLAIMS)):
        verdict = rows.nth(row).locator(".verdict").text_content() or ""
        assert re.fullmatch("holds|holds in part|does not hold|beyond|not run", verdict)


def test_results_that_come_with_the_package_stand_beside_ones_own(page: Page) -> None:
    assert "come with the package" not in (page.locator("#architecture").text_content() or "")
    for name in ("architecture", "data-scaling"):
        kept = page.locator(f"#{name}-kept")
        assert "come with the package" in (kept.text_content() or "")
        assert kept.locator(".plot .main-svg").count() >= 1
    assert "MASTER" in (page.locator("#rates table").text_content() or "")


def test_every_plot_says_in_words_what_it_shows_and_every_link_leads_somewhere(page: Page) -> None:
    plots = page.locator(".plot")
    for place in range(plots.count()):
        assert len(plots.nth(place).get_attribute("aria-label") or "") > 20
    for link in page.locator('a[href^="#"]').all():
        target = (link.get_attribute("href") or "")[1:]
        assert page.locator(f'[id="{target}"]').count() == 1, target


def test_it_fits_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function("document.documentElement.scrollWidth <= 390", timeout=5000)
    page.set_viewport_size({"width": 1280, "height": 900})


def test_headlines_tables_and_curves_show_the_same_numbers(page: Page, reproduction: Path) -> None:
    summary = read_experiments(reproduction)["low"]["windows"]
    row = summary.agents["linucb"]
    text = f"{number(row.regret_mean)} ± {number(row.regret_stderr or 0.0)}"
    assert f"linucb {text}" in dict(headlines(reproduction))["Low non-stationarity"]
    assert f"linucb {text}" in (page.locator(".headlines").text_content() or "")
    (cell,) = page.locator('#low tr:has(a[href="#agent-linucb"]) td:nth-child(2)').all()
    assert cell.text_content() == text
    spoken = page.locator("#low .plot").first.get_attribute("aria-label") or ""
    assert f"linucb {number(row.regret_mean)}" in spoken
    assert "over 3 problems" in spoken


def test_the_bake_off_that_comes_with_the_package_is_shown_with_all_its_agents() -> None:
    """Without a browser: the section is plain text."""
    found = kept("bakeoff")
    assert found is not None
    text = sections._bakeoff(found)
    assert text.count("<table>") == len(found["tables"]) == 4
    for agent in found["agents"]:
        assert text.count(f"<td>{agent}</td>") == 4
