"""The command line as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from driftformer.cli import main


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of error of a command that ends with exit code 2."""
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert caught.value.code == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    return lines[0]


@pytest.mark.parametrize(("world", "agents"), [("high", "random linucb thompson"), ("lock", "q-ucb restart-q-ucb")])
def test_evaluate_without_agents_plays_those_that_can(
    world: str, agents: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["evaluate", world, "--runs", "2", *(["--horizon", "3"] if world == "high" else ["--episodes", "5"])])
    names = {line.split()[0] for line in capsys.readouterr().out.splitlines() if " ± " in line}
    assert set(agents.split()) <= names


def test_evaluate_mixes_options_and_writes_results_and_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "X"
    options = "--b 0.025 --agents random linucb@alpha=2 --runs 70 --seed 4 --horizon 15 --arm-mode resampled"
    main(["evaluate", "high", *options.split(), "--dim", "4", "--arms", "3", "--noise", "0.5", "--out", str(out)])
    summary = json.loads((out / "summary.json").read_text())
    assert summary["environment"]["drift"] == {"kind": "Cosine", "b": 0.025, "phase": 0.0}
    assert summary["environment"]["arm_mode"] == "resampled"
    assert (summary["horizon"], summary["runs"], summary["seed"]) == (15, 70, 4)
    assert list(summary["agents"]) == ["random", "linucb@alpha=2"]
    names = {path.name for path in out.iterdir() if path.is_file()}
    figures = {"regret.png", "regret.svg", "suboptimality.png", "suboptimality.svg"}
    assert names == figures | {"summary.json", "timing.json", "config.json", "events.jsonl"}
    assert "linucb@alpha=2" in capsys.readouterr().out


def test_trajectories_are_kept_on_demand(tmp_path: Path) -> None:
    command = "evaluate high --horizon 9 --runs 3 --agents master-linucb --trajectories --out"
    main([*command.split(), str(tmp_path / "X")])
    (kept,) = (load_file(path) for path in tmp_path.rglob("*.trajectories.safetensors"))
    assert kept["arms"].shape == kept["active_order"].shape == kept["test1_ratio"].shape == (3, 9)


def test_list_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    main(["list"])
    page = capsys.readouterr().out
    for name in (
        "low",
        "high",
        "jumps",
        "walk",
        "seasonal",
        "linucb",
        "thompson",
        "oracle *",
        "high-0.025",
        "rivals",
        "other-drifts",
        "unseen-drifts",
    ):
        assert name in page


def test_theory_prints_a_line_for_a_check_and_draws_the_scheduler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["theory", "--only", "sigma2", "--n", "3", "--plot", str(tmp_path / "s.svg")])
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("sigma2"))
    assert "σ2" in line
    assert "exact" in line
    assert "random numbers (ranks)" in (tmp_path / "s.svg").read_text()


def test_bench_measures_each_agent_and_size(capsys: pytest.CaptureFixture[str]) -> None:
    main(["bench", "--agents", "random", "linucb", "--problems", "64", "128", "--horizon", "5"])
    rows = [line for line in capsys.readouterr().out.splitlines() if "random" in line or "linucb" in line]
    assert len(rows) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["list"],
        ["evaluate", "--help"],
        ["evaluate", "high", "--help"],
        ["pretrain", "tiny", "--help"],
        ["theory", "--help"],
        ["__complete", "driftformer evaluate high --agents "],
    ],
)
def test_help_and_list_come_without_torch(arguments: list[str]) -> None:
    """That is what makes them answer within a second."""
    script = f"""
import sys
from driftformer.cli import main
try:
    main({arguments!r})
except SystemExit as end:
    assert not end.code, end.code
heavy = {{"torch", "matplotlib", "transformers"}} & set(sys.modules)
assert not heavy, heavy
"""
    page = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert len(page.splitlines()) > 5


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("evaluate hihg", "environment: there is no 'hihg'; did you mean 'high'?"),
        ("evaluate --runs 3 hihg", "environment: there is no 'hihg'; did you mean 'high'?"),
        ("evalute", "command: there is no 'evalute'; did you mean 'evaluate'?"),
        ("evaluate high --horizn 5", "there is no option --horizn; did you mean --horizon?"),
        ("evaluate high --runs abc", "--runs takes INT; invalid literal for int() with base 10: 'abc'"),
        ("export drift --out x.onnx --dim abc", "--dim takes INT; invalid literal for int() with base 10: 'abc'"),
        ("evaluate high --runs", "--runs needs a value; see driftformer evaluate high --help"),
        ("evaluate high --prior unifrom", "--prior: there is no 'unifrom'; did you mean 'uniform'?"),
        ("evaluate", "name one of stationary, low, high"),
        ("run", "command: there is no 'run'; did you mean 'show run'?"),
        ("High", "command: there is no 'High'; did you mean 'evaluate high'?"),
        ("show run High", "environment: there is no 'High'; did you mean 'high'?"),
        ("show run high --agnet linucb", "there is no option --agnet; did you mean --agent?"),
        ("evaluate high --agents LinUCB", "agent: there is no 'LinUCB'; did you mean 'linucb'?"),
        ("evaluate high --agents Sliding_Window_LinUCB", "did you mean 'sliding-window-linucb'?"),
        ("--agents linucb", "command: there is no '--agents'; choose from bakeoff, bench"),
        ("evaluate high low", "'low' is one word too many; see driftformer evaluate --help"),
        ("evaluate high --changes 3", "there is no option --changes; see driftformer evaluate --help"),
        ("evaluate high --workrs 3", "there is no option --workrs; did you mean --workers?"),
        ("show run hihg", "environment: there is no 'hihg'; did you mean 'high'?"),
        ("show scedule", "picture: there is no 'scedule'; did you mean 'schedule'?"),
        ("pretrain", "--out must be given; see driftformer pretrain --help"),
        ("pretrain --out x", "name one of low, high, "),
        ("pretrain tiny", "--out must be given; see driftformer pretrain --help"),
        ("pretrain tinny --out x", "recipe: there is no 'tinny'; did you mean 'tiny'?"),
        ("pretrain tiny --out x --laeyrs 3", "there is no option --laeyrs; did you mean --layers?"),
        ("pretrain tiny --out x --tokens 0", "tokens is 0; give a whole number of at least 1"),
        ("collect tiny --behaviours random", "behaviours: 'random' has no share; write name=share"),
        ("collect tiny --behaviours random=1 random=2", "behaviours: 'random' is given twice"),
        ("theory --plot .", "plot is '.', which is a folder; name a file, such as ./schedule.png"),
        ("evaluate high --noise 1e39", "noise is 1e+39; give a finite number of at least 0 and at most 1e+12"),
        ("evaluate high --dim 1000000", "dim is 1000000 and arms is 10; 64 problems of that size need more than 8 GiB"),
        ("evaluate high --horizon 999999999999", "horizon is 999999999999; give a whole number of at least 1 and at"),
        ("evaluate high --agents linucb@ridge=1e-9", "ridge is 1e-09; give a finite number of at least 0.001"),
        ("evaluate high --agents linucb@alpha=1e300", "alpha is 1e+300; give a finite number"),
        ("bench --device gpu", "device is 'gpu'; give cpu or cuda"),
        ("bench --agents", "agents is empty; name at least one"),
        ("reproduce --runs 1", "runs is 1; give a whole number of at least 2"),
        ("evaluate high --agents linubc", "agent: there is no 'linubc'; did you mean 'linucb'?"),
        ("evaluate high --agents linucb@alhpa=1", "option: there is no 'alhpa'; did you mean 'alpha'?"),
        ("evaluate high --runs 0", "runs is 0; give a whole number of at least 1"),
        ("evaluate high --horizon 0", "horizon is 0; give a whole number of at least 1"),
        ("evaluate high --dim 0", "dim is 0; give a whole number of at least 1"),
        ("evaluate high --arms -3", "arms is -3; give a whole number of at least 1"),
        ("evaluate high --noise -1", "noise is -1.0; give a finite number of at least 0"),
        ("evaluate high --noise nan", "noise is nan; give a finite number of at least 0"),
        ("evaluate walk --agents oracle", "agent 'oracle' cannot play 'walk'"),
        ("evaluate jumps --changes 9 --horizon 5", "changes is 9; at most horizon - 1 = 4"),
        ("evaluate high --device gpu", "device is 'gpu'; give cpu or cuda"),
        ("reproduce lwo", "experiment: there is no 'lwo'; did you mean 'low'?"),
        ("reproduce --scale huge", "scale: there is no 'huge'; choose from paper, quick"),
        ("report nowhere", "folder is 'nowhere', which is not there; name the --out of"),
        ("theory --only sigma3", "check: there is no 'sigma3'; did you mean 'sigma"),
        ("replay log.parquet", "log is 'log.parquet', which cannot be read: No such file or directory"),
        ("replay", "log must be given; see driftformer replay --help"),
        ("theory --n 9", "n is 9; give a whole number of at least 1 and at most 6"),
        ("bench --problems 100", "problems is 100; give multiples of 64"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(
    command: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = fails(capsys, *command.split())
    assert line.startswith("driftformer: error: ")
    assert message in line
    assert not list(tmp_path.iterdir())


def test_a_folder_of_another_setting_gets_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = ["--horizon", "5", "--runs", "3", "--agents", "random", "--out", str(tmp_path / "X")]
    main(["evaluate", "high", *short])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert "environment.drift.b is 0.018 there and 0.2 here" in fails(capsys, "evaluate", "high", "--b", "0.2", *short)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_an_unwritable_folder_gets_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    line = fails(capsys, "evaluate", "high", "--horizon", "5", "--runs", "3", "--out", "/dev/null/X")
    assert "/dev/null" in line
