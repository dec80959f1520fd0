"""A report for any folder: of an evaluation, a sweep, of somebody else's world; and a line for what is none."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import driftformer as df
from driftformer.cli import main
from driftformer.errors import InputError
from driftformer.report import headlines, write_report
from driftformer.simulation.numbers import number
from driftformer.storage.files import read_json, write_json
from tests.browser import Scheme, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

AGENTS = ["random", "linucb", "linucb@alpha=2", "policy:cosine", "oracle"]


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("evaluation") / "high"
    df.evaluate(df.make_env("high", horizon=30), AGENTS, runs=64, out=out)
    return out


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sweep") / "grid"
    words = "--environment jumps --vary changes=1,4 --vary noise=0.5,1 --vary agent.alpha=0.5,1 --vary horizon=20"
    main(["sweep", *words.split(), "--agents", "linucb", "thompson", "--runs", "4", "--out", str(out)])
    return out


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("kind", ["evaluation", "swept"])
def test_pages_of_evaluations_and_sweeps_load_alone_and_fit(
    kind: str, width: int, scheme: Scheme, browser: Browser, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    written = write_report(request.getfixturevalue(kind))
    moved = tmp_path / "elsewhere.html"
    shutil.copy(written, moved)
    found = opened(browser, moved, width, scheme)
    assert found.troubles == []
    assert found.page.evaluate("document.documentElement.scrollWidth") <= width
    assert moved.stat().st_size < 2.5e6
    assert found.page.locator("header .plot .scatterlayer .trace").count() >= 3
    for link in found.page.locator("a").all():
        assert found.page.locator(f'[id="{(link.get_attribute("href") or "")[1:]}"]').count() == 1
    found.page.close()


def test_the_page_of_an_evaluation_begins_with_who_wins_and_by_how_much(evaluation: Path, browser: Browser) -> None:
    summary = df.load_result(evaluation).summary
    best, second = summary.contenders[:2]
    gap = summary.difference(second, best)
    page = opened(browser, write_report(evaluation)).page
    said = page.locator("h1").inner_text()
    assert said.startswith(best)
    assert number(summary.agents[best].regret_mean) in said
    assert second in said
    assert ("wins" in said) == (gap.low > 0)
    assert number(gap.mean) in page.locator("header p").nth(1).inner_text()
    assert headlines(evaluation) == [("", said)]
    names = page.locator("header .annotation-text").all_inner_texts()
    assert len(names) == len(AGENTS), "every line has its name at its end"
    page.close()


def test_names_at_the_ends_of_lines_do_not_cover_each_other(evaluation: Path, browser: Browser) -> None:
    for width in (1280, 420):
        page = opened(browser, write_report(evaluation), width).page
        boxes = [one.bounding_box() for one in page.locator("header .annotation-text-g").all()]
        spans = sorted((box["y"], box["y"] + box["height"]) for box in boxes if box)
        assert len(spans) == len(AGENTS)
        assert all(after[0] >= before[1] - 3 for before, after in itertools.pairwise(spans))
        page.close()


def test_random_play_does_not_press_all_others_flat(browser: Browser, tmp_path: Path) -> None:
    out = tmp_path / "run"
    df.evaluate(df.make_env("high", horizon=100, b=0.0), ["random", "linucb", "oracle"], runs=64, out=out)
    summary = df.load_result(out).summary
    assert summary.agents["random"].regret_mean > 3 * summary.agents["linucb"].regret_mean
    page = opened(browser, write_report(out)).page
    top = page.evaluate("document.querySelector('header .plot')._fullLayout.yaxis.range[1]")
    assert top < summary.agents["random"].regret_mean
    assert page.locator("header .annotation-text", has_text="random ↑").count() == 1
    page.close()


def test_a_sweep_has_a_panel_for_every_other_setting_on_one_scale(swept: Path, browser: Browser) -> None:
    page = opened(browser, write_report(swept)).page
    assert page.locator("header h3").all_inner_texts() == ["noise 0.5", "noise 1"]
    ranges = page.evaluate("[...document.querySelectorAll('header .plot')].map(one => one._fullLayout.yaxis.range)")
    assert ranges[0] == ranges[1]
    assert "of 4 settings" in page.locator("h1").inner_text()
    assert page.locator("#numbers tbody tr").count() == 12
    page.close()


def test_the_report_of_an_evaluation_comes_with_it_if_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "evaluate high --horizon 10 --runs 2 --agents random linucb --report"
    main([*command.split(), "--out", str(tmp_path / "run")])
    assert f"report: {tmp_path / 'run' / 'report.html'}" in capsys.readouterr().out
    page = (tmp_path / "run" / "report.html").read_bytes()
    main(["report", str(tmp_path / "run")])
    assert (tmp_path / "run" / "report.html").read_bytes() == page, "equal results, equal pages"
    with pytest.raises(SystemExit):
        main(command.split())
    assert "report is set without out; name the folder" in capsys.readouterr().err


def test_results_that_came_without_their_folder_are_enough(evaluation: Path, tmp_path: Path) -> None:
    shutil.copy(evaluation / "summary.json", tmp_path)
    assert "dynamic regret" in write_report(tmp_path).read_text().lower()


def other_seed(folder: Path) -> None:
    config = read_json(folder / "config.json")
    write_json(folder / "config.json", config | {"seed": 7})


def earlier(folder: Path) -> None:
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps({**summary, "format": 1, "sha256": None}))


def emptied(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "summary.json").unlink(), "is not finished; run the same command again: it resumes"),
        (lambda folder: (folder / "summary.json").write_text('{"format": 4, "sche'), "is broken"),
        (earlier, "is of an earlier version of driftformer; run the evaluation again"),
        (emptied, "is empty; name the --out of `driftformer evaluate`, `sweep` or `reproduce`"),
        (shutil.rmtree, "which is not there; name the --out"),
        (other_seed, "holds results of seed 7 and a summary of seed 0; run the evaluation again"),
    ],
)
def test_what_is_no_finished_evaluation_is_told_in_one_line(
    change: object, message: str, evaluation: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(evaluation, tmp_path / "copy")
    change(tmp_path / "copy")  # type: ignore[operator]
    with pytest.raises(SystemExit) as caught:
        main(["report", str(tmp_path / "copy")])
    assert caught.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line


def test_what_is_no_finished_sweep_is_told_in_one_line(swept: Path, tmp_path: Path) -> None:
    shutil.copytree(swept, tmp_path / "half")
    (tmp_path / "half" / "table.parquet").unlink()
    with pytest.raises(InputError, match="holds a sweep that is not finished; run the same `driftformer sweep` again"):
        write_report(tmp_path / "half")
    shutil.copytree(swept, tmp_path / "mixed")
    about = read_json(swept / "sweep.json")
    write_json(tmp_path / "mixed" / "sweep.json", about | {"seed": 3})
    with pytest.raises(InputError, match="a table of seed 0 and a sweep of seed 3"):
        write_report(tmp_path / "mixed")
    write_json(tmp_path / "mixed" / "sweep.json", {"vary": 5})
    with pytest.raises(InputError, match="holds results that no version of driftformer writes"):
        write_report(tmp_path / "mixed")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="which is a file"):
        write_report(tmp_path / "file")
