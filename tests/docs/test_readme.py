"""The README fits on two screens, begins with a picture and a command, and its figures are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from driftformer.agents.registry import full_label, make_agent
from driftformer.cli import main
from driftformer.experiments.reproduce import KEPT
from driftformer.policies import folder_of
from driftformer.storage.files import read_json

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
SCREEN = 50
"""Lines."""


def test_it_fits_on_two_screens_and_begins_with_a_picture_and_a_command() -> None:
    assert len(README.splitlines()) <= 2 * SCREEN
    title, picture, command = README.split("\n\n")[:3]
    assert title == "# driftformer"
    assert picture.startswith("![")
    assert "driftformer evaluate" in command


def test_its_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\((?!https:)([^)#]+)", README):
        assert (ROOT / link).exists(), link


def test_its_table_is_what_its_command_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for a few tenths: `policy:drift` draws its arms, and another kind of processor rounds otherwise."""
    monkeypatch.setenv("COLUMNS", "80")
    (command,) = re.findall(r"^driftformer (evaluate .*)$", README, flags=re.MULTILINE)
    main(command.split())
    shown, printed = (
        re.findall(r"^ (\S+(?: \*)?) +([\d.]+) ± ", text, flags=re.MULTILINE)
        for text in (README.split("```\n agent")[1].split("\n```")[0], capsys.readouterr().out)
    )
    assert [name for name, _ in shown] == [name for name, _ in printed]
    assert len(shown) == 4
    for (name, mean), (_, other) in zip(shown, printed, strict=True):
        assert float(mean) == pytest.approx(float(other), abs=0.3), name


def test_its_count_of_worlds_is_that_of_the_card() -> None:
    rows = re.findall(r"\| ([\d.]+) \|$", (folder_of("drift") / "card.md").read_text(), flags=re.MULTILINE)
    ahead, worlds = sum(float(ratio) < 1 for ratio in rows), len(rows)
    assert f"in each of {worlds} worlds: it is ahead in {ahead}," in " ".join(README.split())


def test_the_agent_it_names_for_real_data_scores_there_what_it_says() -> None:
    """As the bake-off found it, at its default options; and as much as D-LinUCB with a well-chosen memory at least."""
    kept = read_json(KEPT / "bakeoff.json")
    assert kept["agents"]["adaptive-linucb"] == full_label(make_agent("adaptive-linucb"))
    scores = {
        title: {row[0]: list(map(int, row[1:4])) for row in kept["tables"][title]} for title in ("at rest", "abrupt")
    }
    said, told = " ".join(README.split()), {}
    for agent in ("adaptive-linucb", "linucb"):
        told[agent] = [scores[title][agent] for title in ("abrupt", "at rest")]
    (item, value, block), still = told["adaptive-linucb"]
    assert f"it scores {item}, {value} and {block} of 100 on items, values and blocks with abrupt changes" in said
    assert f"{still[0]}, {still[1]} and {still[2]} at rest" in said
    (item, value, block), still = told["linucb"]
    assert f"LinUCB {item}, {value}, {block} and {still[0]}, {still[1]}, {still[2]}." in said
    rival = scores["abrupt"]["discounted-linucb@gamma=0.99,alpha=0.25"]
    assert all(own >= other for own, other in zip(told["adaptive-linucb"][0], rival, strict=True))
