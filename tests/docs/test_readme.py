"""The README fits on two screens, begins with a picture and a command, and its figures are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from driftformer.cli import main
from driftformer.policies import folder_of

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
    monkeypatch.setenv("COLUMNS", "80")
    (command,) = re.findall(r"^driftformer (evaluate .*)$", README, flags=re.MULTILINE)
    main(command.split())
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    shown = README.split("```\n agent")[1].split("\n```")[0].splitlines()
    for line in shown[1:]:
        assert line in printed


def test_its_count_of_worlds_is_that_of_the_card() -> None:
    rows = re.findall(r"\| ([\d.]+) \|$", (folder_of("drift") / "card.md").read_text(), flags=re.MULTILINE)
    ahead, worlds = sum(float(ratio) < 1 for ratio in rows), len(rows)
    assert f"in each of {worlds} worlds: it is ahead in {ahead}," in " ".join(README.split())
