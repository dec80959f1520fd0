"""Events: what happened can be told afterwards, and telling it changes nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

import driftformer as df
from driftformer.cli import main
from driftformer.errors import InputError
from driftformer.pretraining.recipes import recipe_of
from driftformer.pretraining.run import train
from driftformer.storage.events import EVENTS, EventLog, read_events, sitting

SMALL = {"horizon": 5, "dim": 3, "arms": 3}


def kinds(folder: Path) -> list[str]:
    return [event["kind"] for event in read_events(folder)]


def test_a_sitting_tells_how_it_began_and_ended(tmp_path: Path) -> None:
    with sitting(tmp_path, runs=3):
        pass
    with pytest.raises(InputError), sitting(tmp_path):
        raise InputError("no more")
    with sitting(tmp_path) as log:
        log.tell("retry", job="chunk 3")
    assert kinds(tmp_path) == ["start", "finish", "resume", "stop", "resume", "retry", "finish"]
    first, stop = read_events(tmp_path)[0], read_events(tmp_path)[3]
    assert first["runs"] == 3
    assert first["pid"] == os.getpid()
    assert first["time"].endswith("Z")
    assert stop["why"] == "no more"


def test_after_a_kill_the_next_sitting_is_a_restart(tmp_path: Path) -> None:
    EventLog(tmp_path).begin()  # … and never heard of again
    with sitting(tmp_path):
        pass
    assert kinds(tmp_path) == ["start", "restart", "finish"]


def test_a_torn_line_is_passed_over_and_spoils_no_other(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.begin()
    with (tmp_path / EVENTS).open("a") as file:
        file.write('{"time": "2025-01-01T00:')
    assert kinds(tmp_path) == ["start"]
    EventLog(tmp_path).tell("finish")
    assert kinds(tmp_path) == ["start", "finish"]


def test_nothing_is_written_before_the_folder_is_ours(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "X", mark="config.json")
    log.begin()
    assert not (tmp_path / "X").exists()
    (tmp_path / "X").mkdir()
    (tmp_path / "X" / "config.json").touch()
    log.settle()
    assert kinds(tmp_path / "X") == ["start"]


def test_where_events_cannot_be_written_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / EVENTS).mkdir()
    with sitting(tmp_path):
        pass
    assert read_events(tmp_path) == []


def test_an_evaluation_tells_of_what_it_computes_and_is_silent_where_there_is_nothing_to_do(tmp_path: Path) -> None:
    environment = df.make_env("high", **SMALL)
    for runs in (70, 70, 140):
        df.evaluate(environment, ["random"], runs=runs, out=tmp_path)
    assert kinds(tmp_path) == ["start", "finish", "resume", "finish"]
    resumed = read_events(tmp_path)[2]
    assert (resumed["chunks_known"], resumed["chunks_missing"]) == (1, 2)


def test_a_training_tells_where_it_begins_and_where_it_was_saved(tmp_path: Path) -> None:
    recipe = recipe_of("tiny", steps=2, tuning_steps=0, tokens=240)
    for _ in range(2):
        with torch.inference_mode(False):
            train(recipe, tmp_path, evaluate_every=2, evaluate_problems=64)
    assert kinds(tmp_path) == ["start", "saved", "finish", "resume", "saved", "finish"]
    assert [event["step"] for event in read_events(tmp_path) if "step" in event] == [0, 2, 2, 2]


def test_log_json_tells_everything_in_lines_that_machines_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "evaluate high --horizon 5 --runs 70 --agents random linucb --log-json --out"
    main([*command.split(), str(tmp_path / "X")])
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["kind"] for line in lines] == ["start", "progress", "finish"]
    progress = lines[1]
    assert (progress["chunks_done"], progress["chunks"]) == (4, 4)
    assert (progress["done"], progress["of"], progress["seconds_left"]) == (1280, 1280, 0.0)
    with pytest.raises(SystemExit):
        main(["evaluate", "high", "--runs", "0", "--log-json"])
    (error,) = capsys.readouterr().err.splitlines()
    assert json.loads(error)["message"] == "runs is 0; give a whole number of at least 1"


def test_log_json_works_where_policies_are_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["collect", "tiny", "--trajectories", "20", "--log-json", "--out", str(tmp_path / "data")])
    training = f"pretrain tiny --steps 2 --tuning-steps 0 --tokens 240 --log-json --out {tmp_path / 'training'}"
    with torch.inference_mode(False):
        main(training.split())
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {line["kind"] for line in lines} == {"start", "progress", "saved", "finish"}
    assert any("loss" in line for line in lines)


def test_after_a_kill_with_many_retries_the_next_sitting_is_a_restart_too(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    log.begin()
    for number in range(600):
        log.tell("retry", job=f"a job with a rather long label, such as jobs have, number {number}", attempt=2, of=5)
    with sitting(tmp_path):
        pass
    assert [event["kind"] for event in read_events(tmp_path)][-2:] == ["restart", "finish"]
