"""What single commands promise beyond the library calls they make."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import tyro

from driftformer.cli import main
from driftformer.commands import list as listing
from driftformer.commands.tables import new_table, show
from driftformer.commands.theory import NAMES, _overview
from driftformer.environments.registry import PRESETS
from driftformer.policies import shipped
from driftformer.pretraining.recipes import RECIPES, Recipe
from driftformer.theory.checks import CHECKS
from driftformer.theory.table import Row


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What `pretrain` asks for: recipe, options, and the threads it computes with."""
    asked: dict[str, Any] = {}

    def train(recipe: Recipe, **options: Any) -> SimpleNamespace:
        asked.update(options, recipe=recipe, threads=torch.get_num_threads())
        return SimpleNamespace(step=recipe.steps, tuning_step=recipe.tuning_steps, best=0.5)

    monkeypatch.setattr("driftformer.pretraining.run.train", train)
    return asked


def test_pretrain_without_options_trains_the_recipe_as_it_is(trained: dict[str, Any], tmp_path: Path) -> None:
    main(["pretrain", "tiny", "--out", str(tmp_path)])
    assert trained["recipe"] == RECIPES["tiny"]
    assert (trained["out"], trained["data"], trained["max_minutes"]) == (tmp_path, None, math.inf)


def test_pretrain_takes_every_setting_of_a_recipe_but_what_makes_it_that_recipe(
    trained: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = "--layers 3 --form paper --rate 0.5 --start cosine --tuning-sharpen 3 --seed 7"
    main(["pretrain", "tiny", *options.split(), "--out", str(tmp_path)])
    changes = {"layers": 3, "form": "paper", "rate": 0.5, "start": "cosine", "tuning_sharpen": 3.0, "seed": 7}
    assert trained["recipe"] == dataclasses.replace(RECIPES["tiny"], **changes)
    main(["pretrain", "tiny", "--help"])
    page = capsys.readouterr().out
    for field in dataclasses.fields(Recipe):
        hidden = field.name in ("name", "summary", "behaviours")
        assert (f"--{field.name.replace('_', '-')} " in page) is not hidden
    assert "GPT-2, or the ReLU transformer" in page  # the text under Recipe.backbone


def test_the_help_of_a_recipe_shows_its_own_values(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("tiny", "drift"):
        main(["pretrain", name, "--help"])
        page = capsys.readouterr().out
        assert f"Width D. (default: {RECIPES[name].width})" in page
        assert f"Gradient steps on labels. (default: {RECIPES[name].steps})" in page
        assert "None" not in page


def test_pretrain_takes_only_the_forms_there_are(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["pretrain", "tiny", "--form", "papr", "--out", str(tmp_path)])
    assert "papr" in capsys.readouterr().err


def test_commands_compute_with_one_thread_and_leave_the_number_as_it_was(
    trained: dict[str, Any], tmp_path: Path
) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        main(["pretrain", "tiny", "--out", str(tmp_path)])
        assert (trained["threads"], torch.get_num_threads()) == (1, 2)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("rank", "lines"), [("0", 1), ("1", 0)])
def test_only_the_first_of_several_processes_speaks(
    rank: str,
    lines: int,
    trained: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("RANK", rank)
    main(["pretrain", "tiny", "--out", str(tmp_path)])
    assert capsys.readouterr().out.count("lowest regret: 0.500") == lines


def test_the_report_names_a_folder_of_figures_only_if_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("driftformer.report.write_report", lambda folder: folder / "report.html")
    monkeypatch.setattr("driftformer.report.headlines", lambda folder: [])
    main(["report", str(tmp_path)])
    assert capsys.readouterr().out.strip() == f"report: {tmp_path / 'report.html'}"
    (tmp_path / "figures").mkdir()
    main(["report", str(tmp_path)])
    assert capsys.readouterr().out.strip().endswith(f"figures: {tmp_path / 'figures'}")


def test_list_breaks_no_name_and_no_option_at_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    main(["list"])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert {*PRESETS, *RECIPES, *(f"policy:{name}" for name in shipped())} <= {line.split("  ")[0] for line in lines}
    assert any("--order shuffled" in line for line in lines)


def test_list_lists_what_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    main(["list", "policies", "agents"])
    page = capsys.readouterr().out
    assert page.index("policy:drift") < page.index("linucb  ")
    assert "seasonal" not in page


def test_list_shows_presets_that_share_no_option_with_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Clicks:
        """Clicks [0 or 1] from a file."""

        file: Path
        means: tuple[float, ...] = (0.2, 0.8)

    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(listing, "PRESETS", PRESETS | {"clicks": Clicks})
    main(["list"])
    lines = capsys.readouterr().out.splitlines()
    (place,) = (place for place, line in enumerate(lines) if line.startswith("clicks"))
    (linear,) = (line for line in lines if "--dim 32" in line)
    assert "Clicks [0 or 1] from a file." in lines[place]
    assert "--file …  --means 0.2 0.8" in lines[place + 1]
    assert linear.startswith("Environments, all with the options --horizon 1000")


def test_tables_print_brackets_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    from driftformer.commands.tables import show

    show(new_table("rewards", ("name", "interval"), [("a", "[bold]")]))
    assert "[bold]" in capsys.readouterr().out


def test_the_names_of_the_checks_are_those_that_help_shows() -> None:
    assert tuple(CHECKS) == NAMES


def test_theory_names_every_check_however_long_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    row = Row("a statement of the paper " * 3, "", "", "", "", "", "a verdict that goes on " * 9)
    show(_overview(dict.fromkeys(NAMES, row), 4))
    shown = capsys.readouterr().out.splitlines()
    assert all(any(line.startswith(f"{name} ") for line in shown) for name in NAMES)


def test_theory_tells_sizes_and_errors_only_when_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    main(["theory", "--only", "sizes", "--n", "3"])
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("sizes"))
    assert len(line) <= 80
    assert line.rstrip().endswith("…")  # its verdict is a long one
    main(["theory", "--only", "sizes", "--n", "3", "--verbose"])
    told = [
        line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ") and line[2] != " "
    ]
    assert told == ["statement", "built", "size", "error", "verdict"]


def test_errors_are_still_reported_by_a_tyro_without_our_hook(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(tyro, "_errors")
    with pytest.raises(SystemExit) as caught:
        main(["evaluate", "high", "--horizn", "5"])
    assert caught.value.code == 2
    assert "--horizn" in capsys.readouterr().err
