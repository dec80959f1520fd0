"""Help as a newcomer meets it: in a terminal of 80 columns and 24 lines."""

from __future__ import annotations

import re
import shlex

import pytest
import tyro

from driftformer import __version__
from driftformer.cli import _FLAT, main
from driftformer.commands import COMMANDS, GROUPS
from driftformer.environments.registry import PRESETS
from driftformer.pretraining.recipes import RECIPES


@pytest.fixture(autouse=True)
def terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def page(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    main(list(arguments))
    return capsys.readouterr().out


@pytest.mark.parametrize("arguments", [(), ("help",), ("--help",), ("-h",)])
def test_the_overview_is_one_screen_with_a_line_for_each_command(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = page(capsys, *arguments)
    lines = shown.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    for group, kinds in GROUPS.items():
        assert any(line.startswith(group) for line in lines)
        for kind in kinds:
            assert sum(f" {kind.__name__.lower()} " in line[: 8 + 12] for line in lines) == 1


def test_the_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert page(capsys, "--version") == f"driftformer {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_fits_the_terminal_and_has_examples(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = page(capsys, command, "--help")
    assert max(map(len, shown.splitlines())) <= 80
    assert f"    driftformer {command}" in shown.replace("echo 'eval \"$(", "")
    assert shown == page(capsys, "help", command)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_in_help_are_commands_that_can_be_given(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    for example in re.findall(r"^    driftformer (.+)$", page(capsys, command, "--help"), re.MULTILINE):
        name, *words = shlex.split(example.partition(" > ")[0])
        if "--help" not in words:
            tyro.cli(COMMANDS[name], args=words, config=_FLAT)  # an example that cannot be read raises SystemExit


@pytest.mark.parametrize("name", [*(f"evaluate {name}" for name in PRESETS), *(f"pretrain {name}" for name in RECIPES)])
def test_the_help_of_a_world_or_a_recipe_fits_the_terminal(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert max(map(len, page(capsys, *name.split(), "--help").splitlines())) <= 80


def test_usage_names_what_is_chosen_instead_of_all_choices(capsys: pytest.CaptureFixture[str]) -> None:
    assert page(capsys, "evaluate", "--help").startswith("usage: driftformer evaluate [-h] [OPTIONS] ENVIRONMENT\n")


def test_theory_lists_its_checks(capsys: pytest.CaptureFixture[str]) -> None:
    shown = page(capsys, "theory", "--help")
    assert "indicator, random" in shown
    assert "assumption" in shown
