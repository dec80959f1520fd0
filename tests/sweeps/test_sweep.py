"""Sweeps: every cell once, resumed, and refused before they are absurd."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import driftformer as df
from driftformer.cli import main
from driftformer.errors import InputError
from driftformer.storage.events import read_events
from driftformer.sweeps.grid import Grid, make_grid, read_file, read_flags
from driftformer.sweeps.sweep import cell_name, draw, read_table, sweep

SMALL = {"horizon": 8, "dim": 3, "arms": 3}


def grid_of(runs: int, agents: tuple[str, ...] = ("linucb", "random"), seed: int = 0, **vary: object) -> Grid:
    grid = make_grid("high", agents, {**SMALL, **{name.replace("agent_", "agent."): v for name, v in vary.items()}})
    return replace(grid, runs=runs, seed=seed)


def chunk_times(out: Path) -> dict[str, int]:
    return {str(path.relative_to(out)): path.stat().st_mtime_ns for path in out.rglob("*.safetensors")}


def test_a_row_has_the_numbers_of_an_evaluation_of_its_own(tmp_path: Path) -> None:
    rows = sweep(grid_of(100, seed=3, b=[0.0, 0.1], agent_alpha=[0.5, 2]), tmp_path)
    assert len(rows) == 2 * 3
    row = next(row for row in rows if row["b"] == 0.1 and row["agent.alpha"] == 0.5)
    alone = df.evaluate(df.make_env("high", b=0.1, **SMALL), ["linucb@alpha=0.5"], runs=100, seed=3)
    summary = alone.summary.agents["linucb@alpha=0.5"]
    assert row["regret_mean"] == summary.regret_mean
    assert row["regret_stderr"] == summary.regret_stderr
    assert row["regret_high"] - row["regret_mean"] == pytest.approx(1.96 * row["regret_stderr"], rel=1e-4)
    assert (row["runs"], row["seed"], row["horizon"], row["label"]) == (100, 3, 8, "linucb@alpha=0.5")
    assert row["rounds_per_cpu_second"] > 0
    assert read_table(tmp_path) == rows


def test_agents_without_a_varied_option_play_once_in_each_cell(tmp_path: Path) -> None:
    rows = sweep(grid_of(10, b=[0.0, 0.1], agent_alpha=[0.5, 2]), tmp_path)
    assert [row["agent.alpha"] for row in rows if row["agent"] == "random"] == [None, None]


def test_a_second_call_computes_only_what_is_missing(tmp_path: Path) -> None:
    first = sweep(grid_of(70, b=[0.0, 0.1]), tmp_path)
    before = chunk_times(tmp_path)
    assert sweep(grid_of(70, b=[0.0, 0.1]), tmp_path) == first
    assert chunk_times(tmp_path) == before
    victim = sorted(path for path in before if "random" in path)[0]
    (tmp_path / victim).unlink()
    more = sweep(grid_of(70, b=[0.0, 0.05, 0.1]), tmp_path)
    after = chunk_times(tmp_path)
    assert {path for path in before if after[path] != before[path]} == {victim}
    assert [row["b"] for row in more] == [0.0, 0.0, 0.05, 0.05, 0.1, 0.1]
    means = {(row["b"], row["agent"]): row["regret_mean"] for row in more}
    assert all(means[row["b"], row["agent"]] == row["regret_mean"] for row in first)
    assert [event["kind"] for event in read_events(tmp_path)] == ["start", "finish"] + 2 * ["resume", "finish"]


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match="is not empty and holds no sweep"):
        sweep(grid_of(10, b=[0.0, 0.1]), tmp_path)


def test_a_cell_that_cannot_be_is_refused_before_anything_is_computed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="arms is 0"):
        sweep(make_grid("high", ["random"], {"arms": [3, 0]}), tmp_path / "X")
    assert not (tmp_path / "X").exists()


def test_one_varied_field_gives_lines_and_two_a_heatmap(tmp_path: Path) -> None:
    line, heat = grid_of(3, agent_alpha=[0.5, 2]), grid_of(3, b=[0.0, 0.1], agent_alpha=[0.5, 2], arm_mode=["fixed"])
    three = grid_of(3, b=[0.0, 0.1], arm_mode=["fixed", "resampled"], agent_alpha=[0.5, 2])
    words = grid_of(3, arm_mode=["fixed", "resampled"])
    for name, grid in (("line", line), ("heat", heat), ("three", three), ("words", words)):
        draw(grid, sweep(grid, tmp_path / name), tmp_path / f"{name}.svg")
    texts = {name: (tmp_path / f"{name}.svg").read_text() for name in ("line", "heat", "three", "words")}
    assert "<image" in texts["heat"]
    assert "<image" not in texts["line"]
    assert "dynamic regret after the last round" in texts["line"]
    assert "linucb, alpha 0.5" in texts["three"]
    assert "resampled" in texts["words"]


def test_a_grid_from_a_file_is_that_of_the_flags(tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").write_text(
        "environment: high\nagents: [linucb, thompson]\nvary:\n  horizon: 50\n  b: [0, 1e-2]\n  agent.alpha: [1, 2]\n"
        "runs: 7\nseed: 3\n"
    )
    flags = make_grid("high", ["linucb", "thompson"], read_flags(["horizon=50", "b=0,0.01", "agent.alpha=1,2"]))
    assert read_file(tmp_path / "grid.yaml") == replace(flags, runs=7, seed=3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("vary: {bb: [1, 2]}\nenvironment: high", "there is no 'bb'; did you mean 'b'?"),
        ("vary: {b: [1, 2]}\nenvironment: hihg", "environment: there is no 'hihg'; did you mean 'high'?"),
        ("vary: {b: [1, 2]}\nenvironment: high\nagnets: [linucb]", "there is no 'agnets'; did you mean 'agents'?"),
        ("vary: {b: [1, 2]}\nenvironment: high\nagents: linucb", "agents is 'linucb'; give a list of names"),
        ("vary: {b: [1, {}]}\nenvironment: high", "vary: b is '{}'; give a finite number"),
        ("vary: {b: [.nan]}\nenvironment: high", "vary: b is 'nan'; give a finite number"),
        ("vary: {horizon: [5.5]}\nenvironment: high", "vary: horizon is '5.5'; give a whole number"),
        ("vary: {b: [1, 1]}\nenvironment: high", "b has 1.0 twice"),
        ("vary: {b: 1}\nenvironment: high", "vary has nothing with two values"),
        ("vary: {windows: [1]}\nenvironment: low", "windows takes a list and cannot be varied"),
        ("vary: {b: [1, 2]}\nenvironment: high\nruns: many", "runs is 'many'; give a whole number"),
        ("- 1", "has no `vary:`"),
        ("a: [1", "cannot be used"),
        ("\x00", "cannot be used"),
        ("x: !!python/object/apply:os.system ['true']", "cannot be used"),
        ("runs: 2\nvary: {b: [0]}\nruns: 3", "'runs' is there twice"),
        ("a: &a [1]\nb: *a", "uses an alias (*a); write the values out"),
        ("[" * 100_000, "is nested more than 4 deep"),
        ("x: " + "y" * 1_000_000, "has 1,000,003 bytes; at most 1,000,000 are read"),
    ],
)
def test_a_bad_file_is_refused_with_a_reason(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "grid.yaml"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        read_file(path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("vary", "agents", "message"),
    [
        ({"b": range(1000), "noise": range(101)}, ["linucb"], "the grid has 101,000 rows (cells times agents)"),
        ({f"agent.{o}": [1, 2] for o in ("alhpa",)}, ["linucb"], "there is no 'alhpa'; did you mean 'alpha'?"),
        ({"agent.alpha": [1, 2]}, ["linucb@alpha=3"], "agents: 'linucb@alpha=3' sets alpha, which vary changes too"),
        ({"b": [1, 2]}, ["linubc"], "agent: there is no 'linubc'; did you mean 'linucb'?"),
        ({"b": [1, 2]}, [], "agents is empty"),
    ],
)
def test_a_bad_grid_is_refused(vary: dict[str, list[float]], agents: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        make_grid("high", agents, {name: list(values) for name, values in vary.items()})
    assert message in str(caught.value)


def test_long_settings_have_short_folders() -> None:
    assert cell_name({"b": 0.1, "arms": 3}) == "arms=3,b=0.1"
    assert len(cell_name({"x" * 99: 1, "y" * 99: 2})) == 64


def test_the_command_writes_table_and_figures_and_takes_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = "--vary b=0,0.1 --vary agent.alpha=1,2 --vary horizon=5 --agents linucb random --runs 5 --out"
    main(["sweep", "--environment", "high", *flags.split(), str(tmp_path / "flags")])
    assert "6 rows are in" in capsys.readouterr().out
    assert {"table.parquet", "regret.png", "regret.svg"} <= {path.name for path in (tmp_path / "flags").iterdir()}
    (tmp_path / "grid.yaml").write_text(
        "{environment: high, agents: [linucb, random], vary: {b: [0, 0.1], agent.alpha: [1, 2], horizon: 5}, runs: 5}"
    )
    main(["sweep", "--grid", str(tmp_path / "grid.yaml"), "--out", str(tmp_path / "file")])
    speed = {"rounds_per_cpu_second": 0}
    flags_rows, file_rows = ([row | speed for row in read_table(tmp_path / name)] for name in ("flags", "file"))
    assert flags_rows == file_rows
    with pytest.raises(SystemExit):
        main(["sweep", "--grid", "x.yaml", "--environment", "high"])
    assert "give --grid, or --environment" in capsys.readouterr().err


def test_damage_in_the_last_cell_is_found_before_anything_is_computed_or_changed(tmp_path: Path) -> None:
    sweep(grid_of(10, b=[0.0, 0.1]), tmp_path)
    about = (tmp_path / "sweep.json").read_bytes()
    victim = sorted(path for path in tmp_path.rglob("*.safetensors") if "b=0.1" in str(path))[0]
    victim.write_bytes(victim.read_bytes()[:-3])
    before = chunk_times(tmp_path)
    with pytest.raises(InputError, match=victim.name):
        sweep(grid_of(10, b=[0.0, 0.05, 0.1], agents=("linucb", "random", "thompson")), tmp_path)
    assert chunk_times(tmp_path) == before
    assert (tmp_path / "sweep.json").read_bytes() == about, "the table is still that of the earlier grid"


def test_an_agent_that_cannot_be_made_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="alpha"):
        sweep(grid_of(10, b=[0.0, 0.1], agent_alpha=[1.0, -2.0]), tmp_path / "new")
    assert not (tmp_path / "new").exists()
