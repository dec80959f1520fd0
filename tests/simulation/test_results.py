"""Results folders: resumed, never mixed up, never read when broken."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from safetensors.numpy import load_file, save_file

import driftformer as df
from driftformer.errors import InputError
from driftformer.storage.files import read_json, write_atomically, write_json

ENV = {"horizon": 30, "dim": 4, "arms": 3}


def files(folder: Path) -> dict[str, bytes]:
    """Every file but timings and events, which tell of one run and not of its results."""
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if name not in ("timing.json", "events.jsonl")}


def run(
    out: Path, runs: int = 100, agents: tuple[str, ...] = ("random", "linucb", "master"), **more: object
) -> df.Result:
    return df.evaluate(df.make_env("high", **ENV), agents, runs=runs, seed=3, out=out, **more)


def test_more_runs_compute_only_what_is_missing_and_equal_a_run_from_scratch(tmp_path: Path) -> None:
    run(tmp_path / "grown", runs=100)
    before = files(tmp_path / "grown")
    grown = run(tmp_path / "grown", runs=200)
    assert grown.timing["linucb"]["rounds"] == 3 * 64 * 30  # chunks 1 (now whole), 2 and 3, not chunk 0
    after = files(tmp_path / "grown")
    assert all(after[name] == content for name, content in before.items() if name != "summary.json")
    run(tmp_path / "fresh", runs=200)
    fresh = files(tmp_path / "fresh")
    assert {name: after[name] for name in fresh} == fresh


def test_a_second_call_computes_nothing_and_changes_nothing(tmp_path: Path) -> None:
    run(tmp_path)
    before, timing = files(tmp_path), (tmp_path / "timing.json").read_bytes()
    assert run(tmp_path).timing == {}
    assert files(tmp_path) == before
    assert (tmp_path / "timing.json").read_bytes() == timing


def test_a_deleted_file_is_restored_exactly(tmp_path: Path) -> None:
    run(tmp_path)
    before = files(tmp_path)
    for name in before:
        if name != "config.json":
            (tmp_path / name).unlink()
            run(tmp_path)
            assert files(tmp_path) == before


def test_the_summary_has_the_promised_fields(tmp_path: Path) -> None:
    run(tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["horizon"], summary["runs"], summary["seed"]) == (30, 100, 3)
    assert summary["environment"]["name"] == "high"
    for agent in ("random", "linucb"):
        row = summary["agents"][agent]
        assert len(row["regret_curve"]) == len(row["suboptimality_curve"]) == 30
        assert row["regret_curve"][-1] == row["regret_mean"]
        assert np.allclose(np.cumsum(row["suboptimality_curve"]), row["regret_curve"])
        assert row["regret_stderr"] == pytest.approx(row["regret_std"] / 10)
    timing = json.loads((tmp_path / "timing.json").read_text())
    assert timing["linucb"]["rounds"] == 2 * 64 * 30
    assert timing["linucb"]["cpu_seconds"] > 0


def test_a_folder_of_another_setting_is_refused_and_left_alone(tmp_path: Path) -> None:
    run(tmp_path)
    before = files(tmp_path)
    with pytest.raises(InputError, match=r"another setting \(environment.drift.b is 0.018 there and 0.03 here\)"):
        df.evaluate(df.make_env("high", b=0.03, **ENV), ["random"], seed=3, out=tmp_path)
    with pytest.raises(InputError, match=r"another setting \(seed is 3 there and 4 here\)"):
        df.evaluate(df.make_env("high", **ENV), ["random"], seed=4, out=tmp_path)
    assert files(tmp_path) == before


@pytest.mark.parametrize("version", [2, 3])
def test_a_folder_of_an_earlier_version_is_recognised_and_left_alone(tmp_path: Path, version: int) -> None:
    run(tmp_path)
    config = read_json(tmp_path / "config.json")
    write_json(tmp_path / "config.json", {**config, "format": version})
    before = files(tmp_path)
    with pytest.raises(InputError, match=rf"written by an earlier version of driftformer \(format {version}, now 4\)"):
        run(tmp_path)
    assert files(tmp_path) == before


def test_chunks_of_an_earlier_format_are_refused_though_their_config_is_gone(tmp_path: Path) -> None:
    run(tmp_path)
    for path in tmp_path.rglob("*.safetensors"):
        save_file(load_file(path), path, metadata={"driftformer": f"{'0' * 64} {'0' * 64}"})
    (tmp_path / "config.json").unlink()
    with pytest.raises(InputError, match=r"safetensors is broken .*delete it"):
        run(tmp_path)


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match="not empty and holds no results; name a new or empty folder"):
        run(tmp_path)
    with pytest.raises(InputError, match="which is a file; name a folder"):
        run(tmp_path / "thesis.tex")
    assert (tmp_path / "thesis.tex").read_text() == "precious"


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "other"])
def test_a_broken_chunk_is_refused_by_name_and_nothing_is_lost(tmp_path: Path, damage: str) -> None:
    run(tmp_path)
    victim = next((tmp_path / "chunks").glob("linucb*/00000.safetensors"))
    content = bytearray(victim.read_bytes())
    if damage == "flip":
        content[-9] ^= 1
    victim.write_bytes({"truncate": content[:-40], "flip": content, "empty": b"", "other": b"{}" * 99}[damage])
    before = files(tmp_path)
    with pytest.raises(InputError, match=r"results file .*00000.safetensors is broken .*delete it and run"):
        run(tmp_path, runs=300)
    assert files(tmp_path) == before
    victim.unlink()
    run(tmp_path)
    assert victim.read_bytes() != before[str(victim.relative_to(tmp_path))]


def test_a_chunk_from_another_folder_is_refused(tmp_path: Path) -> None:
    run(tmp_path / "a")
    df.evaluate(df.make_env("high", b=0.03, **ENV), ["linucb"], runs=100, seed=3, out=tmp_path / "b")
    stranger = next((tmp_path / "b/chunks").glob("linucb*/00000.safetensors"))
    victim = next((tmp_path / "a/chunks").glob("linucb*/00000.safetensors"))
    victim.write_bytes(stranger.read_bytes())
    with pytest.raises(InputError, match="it belongs to another setting"):
        run(tmp_path / "a")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("random/00000.safetensors", "linucb@alpha=1.0,ridge=1.0/00000.safetensors"),
        ("linucb@alpha=1.0,ridge=1.0/00000.safetensors", "linucb@alpha=1.0,ridge=1.0/00001.safetensors"),
    ],
)
def test_a_chunk_in_the_wrong_place_is_refused(tmp_path: Path, source: str, target: str) -> None:
    run(tmp_path, runs=128)
    (tmp_path / "chunks" / target).write_bytes((tmp_path / "chunks" / source).read_bytes())
    with pytest.raises(InputError, match="it belongs to another setting or place"):
        run(tmp_path, runs=128)


def test_broken_trajectories_are_refused(tmp_path: Path) -> None:
    run(tmp_path, trajectories=True)
    victim = next(tmp_path.rglob("*.trajectories.safetensors"))
    victim.write_bytes(b"junk")
    with pytest.raises(InputError, match=r"trajectories\.safetensors is broken"):
        run(tmp_path, trajectories=True)


def test_a_broken_config_is_refused_by_name_and_its_remedy_works(tmp_path: Path) -> None:
    run(tmp_path)
    before = files(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"config.json is broken .*delete it"):
        run(tmp_path)
    (tmp_path / "config.json").unlink()
    assert run(tmp_path).timing == {}
    assert files(tmp_path) == before


@pytest.mark.parametrize("content", ["[]", "5", "null", "{", '"x"'])
def test_a_broken_timing_file_costs_nothing_but_the_timing(tmp_path: Path, content: str) -> None:
    run(tmp_path)
    before = files(tmp_path)
    (tmp_path / "timing.json").write_text(content)
    run(tmp_path)
    assert files(tmp_path) == before
    assert json.loads((tmp_path / "timing.json").read_text()) == {}


def test_a_command_that_fails_at_the_door_leaves_the_folder_free(tmp_path: Path) -> None:
    out = tmp_path / "X"
    with pytest.raises(InputError, match="changes is 90"):
        df.evaluate(df.make_env("jumps", changes=90, **ENV), ["linucb"], runs=3, out=out)
    df.evaluate(df.make_env("jumps", changes=3, **ENV), ["linucb"], runs=3, out=out)


def test_what_a_killed_first_write_leaves_does_not_block_the_folder(tmp_path: Path) -> None:
    (tmp_path / ".config.json.123.partial").write_text("{")
    run(tmp_path)


def test_a_stored_result_can_be_loaded_and_drawn_without_computing(tmp_path: Path) -> None:
    computed = run(tmp_path)
    loaded = df.load_result(tmp_path)
    assert loaded.summary == computed.summary
    assert np.array_equal(loaded.finals["linucb"], computed.finals["linucb"])
    loaded.plot(tmp_path / "again.png")
    assert (tmp_path / "again.png").stat().st_size > 1000
    with pytest.raises(InputError, match=r"has no summary\.json"):
        df.load_result(tmp_path / "nowhere")


def test_trajectories_are_kept_where_asked_for_and_agree_with_the_regret(tmp_path: Path) -> None:
    run(tmp_path)
    assert not list(tmp_path.rglob("*.trajectories.safetensors"))
    run(tmp_path, trajectories=True)
    kept = load_file(next((tmp_path / "chunks").glob("linucb*/00001-first-36.trajectories.safetensors")))
    regret = load_file(next((tmp_path / "chunks").glob("linucb*/00001-first-36.safetensors")))["regret"]
    assert kept["arms"].shape == (36, 30)
    assert np.allclose(kept["suboptimality"].astype(np.float64).sum(axis=1), regret)


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    write_atomically(path, b"old")
    with pytest.raises(TypeError):
        write_atomically(path, "not bytes")  # type: ignore[arg-type]
    assert [p.name for p in tmp_path.iterdir()] == ["summary.json"]
    assert path.read_bytes() == b"old"


def test_a_killed_run_started_again_equals_an_undisturbed_one(tmp_path: Path) -> None:
    """SIGKILL while chunks are being written by a command with two workers; then the same on one."""
    options = "--horizon 200 --dim 8 --runs 1400 --agents linucb thompson --seed 5 --workers 2 --out"
    command = [sys.executable, "-m", "driftformer", "evaluate", "high", *options.split(), str(tmp_path / "killed")]
    victim = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    while not list((tmp_path / "killed").rglob("*.safetensors")):
        assert victim.poll() is None, "the run ended before it could be killed"
        time.sleep(0.01)
    workers = psutil.Process(victim.pid).children(recursive=True)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    done = len(list((tmp_path / "killed").rglob("*.safetensors")))
    assert not (tmp_path / "killed/summary.json").exists()
    assert workers
    assert not psutil.wait_procs(workers, timeout=30)[1], "a killed command leaves no workers behind"
    for out in ("killed", "undisturbed"):
        environment = df.make_env("high", horizon=200, dim=8)
        df.evaluate(environment, ["linucb", "thompson"], runs=1400, seed=5, out=tmp_path / out)
    expected = files(tmp_path / "undisturbed")
    assert 0 < done < sum(name.endswith(".safetensors") for name in expected)
    assert {name: content for name, content in files(tmp_path / "killed").items() if "partial" not in name} == expected
