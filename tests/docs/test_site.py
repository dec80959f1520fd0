"""The documentation site: built without a warning, with links that lead somewhere, and a playground that plays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from docs._site import links, record

import driftformer as df
from driftformer.report import write_report
from tests.browser import Scheme, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DOCS = Path(__file__).parents[2] / "docs"
OPTIONS: dict[str, Any] = {"horizon": 30, "arms": 5, "dim": 4}
AGENTS = ["linucb", "thompson", "random"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site, with a small report and a small recording."""
    runs, out = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("site")
    df.evaluate(df.make_env("high", horizon=20), AGENTS, runs=8, out=runs / "demo", progress=False)
    write_report(runs / "demo")
    drifts = {"jumps": ("jumps", OPTIONS), "a walk": ("walk", OPTIONS)}
    record.write(runs / "playground.js", [record.World(f"world {place}", drifts, AGENTS) for place in (1, 2)])
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", str(DOCS), str(out)],
        env=os.environ | {"DRIFTFORMER_RUNS": str(runs)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return out


def test_every_page_and_every_command_is_there(site: Path) -> None:
    for page in DOCS.rglob("*.md"):
        assert (site / page.relative_to(DOCS).with_suffix(".html")).exists()
    for name in ("tour", "own"):
        assert "<img" in (site / "tutorials" / f"{name}.html").read_text(), "stored outputs are shown"
    assert 'id="leaderboard"' in (site / "reference" / "commands.html").read_text()
    assert "sliding-window-linucb" in (site / "reference" / "names.html").read_text()
    assert 'id="drift"' in (site / "reference" / "cards.html").read_text()
    assert 'id="driftformer.evaluate"' in (site / "reference" / "python.html").read_text()


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text('<h1 id="top">x</h1><a href="two.html#there"></a><a href="#top"></a>')
    (tmp_path / "two.html").write_text('<p id="there"></p><a href="one.html#nowhere"></a><img src="none.png">')
    assert list(links.broken(tmp_path)) == [
        "two.html: there is no none.png",
        "two.html: there is no place one.html#nowhere",
    ]


@pytest.mark.parametrize("name", ["index.html", "tutorials/own.html", "reference/python.html", "leaderboard.html"])
def test_a_page_needs_no_network(site: Path, browser: Browser, name: str) -> None:
    assert opened(browser, site / name, drawn="article").troubles == []


@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_playground_fits_and_follows_the_scheme(
    site: Path, browser: Browser, width: int, scheme: Scheme, request: pytest.FixtureRequest
) -> None:
    found = opened(browser, site / "playground.html", width, scheme, drawn="#pg-values circle")
    assert found.troubles == []
    assert found.page.evaluate("document.documentElement.scrollWidth") <= width
    ink = found.page.evaluate("getComputedStyle(document.querySelector('#pg-values text')).fill")
    assert (sum(map(int, ink.removeprefix("rgb(").removesuffix(")").split(","))) > 3 * 128) == (scheme == "dark")
    kept = request.config.rootpath / ".pytest_cache" / f"playground-{width}-{scheme}.png"
    kept.parent.mkdir(exist_ok=True)
    found.page.screenshot(path=kept, full_page=True)


def regrets(page: Page) -> list[float]:
    return [float(one.get_attribute("data-regret") or "nan") for one in page.locator("#pg-said [data-regret]").all()]


def test_the_playground_shows_the_regret_that_evaluate_measures(site: Path, browser: Browser) -> None:
    finals = df.evaluate(df.make_env("walk", **OPTIONS), AGENTS, runs=4, seed=0, progress=False).finals
    page = opened(browser, site / "playground.html", drawn="#pg-values circle").page
    page.select_option("#pg-world", label="world 2")
    page.select_option("#pg-drift", label="a walk")
    page.select_option("#pg-first", label="thompson")
    page.select_option("#pg-second", label="random")
    for problem in range(4):
        page.select_option("#pg-problem", label=str(problem + 1))
        assert page.locator("#pg-choices rect").count() == 3, "it begins with one round"
        page.locator("#pg-round").fill("30")
        assert page.locator("#pg-choices rect").count() == 3 * 30
        expected = [finals[name][problem] for name in ("thompson", "random")]
        np.testing.assert_allclose(regrets(page), expected, atol=30 * 1e-4)  # numbers are recorded to four decimals
    assert "evaluate walk --horizon 30" in page.locator("#pg-command").inner_text()
    assert "--agents thompson random random" not in page.locator("#pg-command").inner_text()


def test_the_playground_plays_stops_and_steps(site: Path, browser: Browser) -> None:
    page = opened(browser, site / "playground.html", drawn="#pg-values circle").page
    page.select_option("#pg-speed", label="40")
    page.click("#pg-play")
    page.wait_for_function("document.getElementById('pg-round').value > 5")
    page.click("#pg-play")
    stopped = int(page.input_value("#pg-round"))
    page.click("#pg-next")
    page.click("#pg-next")
    page.click("#pg-back")
    assert int(page.input_value("#pg-round")) == min(stopped + 1, 30)
    assert f"Round {page.input_value('#pg-round')} of 30" in page.locator("#pg-said").inner_text()
