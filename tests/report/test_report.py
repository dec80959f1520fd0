"""The page of a reproduction, in a real browser: it needs nothing else, and what one clicks changes what one sees."""

from __future__ import annotations

import hashlib
import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from driftformer.experiments.claims import CLAIMS
from driftformer.experiments.reproduce import kept, read_experiments
from driftformer.plots.contrast import DARK, LIGHT, LINE, TEXT, contrast
from driftformer.plots.style import COLOURS
from driftformer.report import headlines, markup
from driftformer.report.experiments import bakeoff_section
from driftformer.report.theory import in_words
from driftformer.simulation.numbers import number
from tests.browser import Opened, Scheme, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def whole(reproduction: Path, browser: Browser) -> Opened:
    return opened(browser, reproduction / "report.html")


@pytest.fixture
def page(whole: Opened) -> Page:
    return whole.page


def lines(page: Page, experiment: str) -> int:
    """Curves that one experiment's first plot shows."""
    return page.locator(f'.figure[data-figure="{experiment}"] .plot').first.locator(".scatterlayer .trace").count()


def test_it_loads_without_errors_or_requests(whole: Opened, reproduction: Path, request: pytest.FixtureRequest) -> None:
    picture = whole.page.screenshot(full_page=True)
    kept = request.config.rootpath / ".pytest_cache" / "report.png"
    kept.parent.mkdir(exist_ok=True)
    kept.write_bytes(picture)
    assert whole.troubles == []
    assert (reproduction / "report.html").stat().st_size < 2.5e6


def test_the_first_screen_says_in_a_sentence_and_a_picture_who_leads(page: Page) -> None:
    page.evaluate("scrollTo(0, 0)")
    assert re.search("leads over .* worlds with a score of|No agent that can win", page.locator("h1").inner_text())
    picture = page.locator("header .plot").bounding_box()
    assert picture is not None
    assert picture["y"] + picture["height"] < 900


def test_links_to_all_sections_stay_in_view(page: Page) -> None:
    page.locator('nav a[href="#agents"]').click()
    page.wait_for_function("scrollY > 500")
    bar = page.locator("nav").bounding_box()
    assert bar is not None
    assert bar["y"] == 0
    sections = page.locator("main > section")
    assert page.locator("nav a").count() == sections.count() + 1
    page.evaluate("scrollTo(0, 0)")


def test_hiding_an_agent_takes_its_curve_and_its_name_away_and_back(page: Page) -> None:
    before = lines(page, "high-0.018")
    place = page.locator('.figure[data-figure="high-0.018"]')
    names = place.locator(".plot").first.locator(".annotation-text", has_text=re.compile("^linucb$"))
    assert names.count() == 1
    place.locator("summary").click()
    box = page.locator('input[name="agents-high-0.018"][value="linucb"]')
    box.uncheck()
    assert lines(page, "high-0.018") < before
    assert names.count() == 0
    box.check()
    assert lines(page, "high-0.018") == before


def test_one_click_switches_what_is_plotted(page: Page) -> None:
    place = page.locator('.figure[data-figure="low"]')
    title = place.locator(".plot .ytitle").first
    assert title.text_content() == "cumulative dynamic regret"
    place.get_by_label("relative to the oracle").check()
    assert "oracle" in (title.text_content() or "")
    place.get_by_label("per round").check()
    assert title.text_content() == "regret in each round"
    place.get_by_label("log scale").check()
    assert (
        page.evaluate("""document.querySelector('.figure[data-figure="low"] .plot')._fullLayout.yaxis.type""") == "log"
    )
    place.get_by_label("log scale").uncheck()
    place.get_by_label("cumulative").check()


def test_panels_that_are_compared_have_the_same_scale(page: Page) -> None:
    ranges = page.evaluate(
        """[...document.querySelectorAll('[data-figure="high-0.018"] .plot')].map(one => one._fullLayout.yaxis.range)"""
    )
    assert len(ranges) == 3
    assert ranges[0] == ranges[1] == ranges[2]


def test_it_is_said_what_bands_mean_and_over_how_many_problems(page: Page) -> None:
    place = page.locator('.figure[data-figure="high-0.018"]')
    said = place.locator(".meaning")
    assert "means over 3 problems" in said.inner_text()
    assert "95% intervals" in said.inner_text()
    place.get_by_label("± standard deviation").check()
    assert "one standard deviation between problems" in said.inner_text()
    place.get_by_label("the two best").check()


def test_worlds_and_runs_can_be_chosen_by_keyboard(page: Page) -> None:
    select = page.locator('.figure[data-figure="rivals"] select')
    plot = page.locator('.figure[data-figure="rivals"] .plot')
    before = plot.get_attribute("aria-label")
    select.focus()
    page.keyboard.press("ArrowDown")
    assert plot.get_attribute("aria-label") != before
    plot, caption = page.locator('.figure[data-figure="single-runs"] .plot'), page.locator("#single-run-caption")
    axes = [title.text_content() for title in plot.locator(".ytitle, .y2title").all()]
    assert axes == ["mean reward", "probability"]
    assert "restarted" not in (caption.text_content() or "")
    page.locator("#single-run").select_option("master")
    axes = [title.text_content() for title in plot.locator(".ytitle, .y2title").all()]
    assert axes == ["active order", "dynamic regret"]
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
    assert page.locator("#rates .plot .main-svg").count() >= 4
    assert "(2: 1.3, 4: 2.6, 8: 5.2, 16: 10.4, 32: 20.7)" in (page.locator("#rates").text_content() or "")


def test_readers_see_no_labels_of_the_papers_source_and_no_names_of_our_own_worlds(page: Page) -> None:
    text = page.locator("main").inner_text()
    assert "Figure 3, top row" in text
    assert re.findall(r"(?:fig|tab|appx|thm|prop|asm)[:-]\w+|\b(?:full|tiny)-\w+", text) == []
    assert in_words("σ2 (def-sig2, appx-approx-sig2)") == "σ2 (Definition 5, Appendix E.3.3)"
    assert in_words("running sums (eq-input1, eq-input2)") == "running sums"
    assert in_words("RM (prop-approx-rm, def-test-matrix)") == "RM (Proposition 4)"


def test_every_plot_says_in_words_what_it_shows_and_every_link_leads_somewhere(page: Page) -> None:
    plots = page.locator(".plot")
    for place in range(plots.count()):
        assert len(plots.nth(place).get_attribute("aria-label") or "") > 20
    for link in page.locator("a").all():
        target = link.get_attribute("href") or ""
        assert target.startswith("#"), "a page that is moved has only itself"
        assert page.locator(f'[id="{target[1:]}"]').count() == 1, target


def test_agents_are_described_as_the_list_describes_them(page: Page) -> None:
    told = page.locator("#agents dl").inner_text()
    assert "optimism over ridge regression" in told
    assert "the generalist: reads statistics of every arm" in told
    assert "short for master@base=linucb" in told


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_swatches_have_the_colours_of_their_lines(
    reproduction: Path, browser: Browser, scheme: Scheme
) -> None:
    phone = opened(browser, reproduction / "report.html", 390, scheme)
    assert phone.troubles == []
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 390
    phone.page.locator('.figure[data-figure="low"] summary').click()
    agents = phone.page.locator('input[name="agents-low"]')
    drawn = phone.page.evaluate(
        """Object.fromEntries([...document.querySelectorAll('.figure[data-figure="low"] .plot')].flatMap(
        one => one.data.filter(trace => trace.name).map(trace => [trace.name, trace.line.color])))"""
    )
    assert agents.count() > 5
    for place in range(agents.count()):
        label = agents.nth(place).locator("xpath=..")
        stroke = label.locator("line").evaluate("line => getComputedStyle(line).stroke")
        hexed = "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", stroke)[:3])
        assert hexed == drawn[agents.nth(place).get_attribute("value") or ""].lower()


def test_lines_and_names_can_be_told_from_the_page_in_both_schemes() -> None:
    for look in markup.looks(list(COLOURS)).values():
        assert contrast(look["dark"], DARK) >= LINE
        assert contrast(look["light_text"], LIGHT) >= TEXT
        assert contrast(look["dark_text"], DARK) >= TEXT


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
    text = bakeoff_section(found).text
    assert text.count("<table>") == len(found["tables"]) == 4
    for agent in found["agents"]:
        assert text.count(f"<td>{agent}</td>") == 4


def test_the_plotting_script_is_the_published_one_and_its_licence_goes_along() -> None:
    folder = resources.files("driftformer.report") / "plotly"
    script = (folder / "plotly-basic.min.js").read_bytes()
    assert hashlib.sha256(script).hexdigest() == "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"
    assert b"plotly.js (basic - minified) v4.1.1" in script[:200]
    assert "MIT License" in (folder / "LICENSE").read_text()
