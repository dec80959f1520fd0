"""Engines: who computes changes nothing but the time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import driftformer as df
from driftformer.errors import InputError
from driftformer.pretraining import dataset
from driftformer.simulation import ray_engine
from driftformer.simulation.engines import AHEAD, Engine, LocalEngine, OnRounds, make_engine
from driftformer.storage.events import read_events


@dataclass(frozen=True)
class Number:
    """A job for tests."""

    value: int

    @property
    def label(self) -> str:
        return f"number {self.value}"

    @property
    def rounds(self) -> int:
        return 10


def squared(job: Number, on_rounds: OnRounds) -> int:
    on_rounds(job.rounds)
    return job.value**2


def quiet(*_: object, **__: object) -> None: ...


@pytest.mark.parametrize("workers", [1, 2])
def test_every_job_comes_back_once_and_its_rounds_are_counted(workers: int) -> None:
    played: list[tuple[Number, int]] = []
    engine = LocalEngine(workers)
    found = list(engine.run(squared, map(Number, range(30)), lambda *of: played.append(of), quiet))
    assert sorted((job.value, result) for job, result in found) == [(n, n * n) for n in range(30)]
    assert sum(rounds for _, rounds in played) == 300


def check_that_few_jobs_are_under_way(engine: Engine) -> None:
    """However many there are: the engine draws them as it has room."""
    drawn = 0

    def endless() -> Iterator[Number]:
        nonlocal drawn
        while True:
            drawn += 1
            yield Number(drawn)

    results = engine.run(squared, endless(), quiet, quiet)
    for taken in range(1, 20):
        next(results)
        assert drawn - taken <= AHEAD * engine.workers
    results.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("workers", [1, 2])
def test_only_a_few_jobs_are_under_way_however_many_there_are(workers: int) -> None:
    check_that_few_jobs_are_under_way(LocalEngine(workers))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "rya"}, "engine: there is no 'rya'; did you mean 'ray'?"),
        ({"name": "local", "workers": 0}, "workers is 0; give a whole number of at least 1"),
        ({"name": "local", "address": "auto"}, "address is 'auto', which only the engine ray has a use for"),
    ],
)
def test_an_engine_that_cannot_be_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        make_engine(**options)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_without_ray_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_engine, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"Ray is not installed; pip install 'driftformer\[ray\]'"):
        df.evaluate("high", ["random"], runs=3, engine="ray")


def test_a_cluster_that_is_not_there_is_refused_at_once() -> None:
    with pytest.raises(InputError, match=r"address is '127.0.0.1:1', where no Ray cluster"):
        df.evaluate(df.make_env("high", horizon=5), ["random"], runs=3, engine="ray", address="127.0.0.1:1")


def test_the_local_engine_needs_no_ray() -> None:
    script = """
import sys
sys.modules["ray"] = None
import driftformer as df
df.evaluate(df.make_env("high", horizon=5), ["random"], runs=3)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_collection_by_two_workers_is_that_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(dataset.SHARD, "cpu", 40)
    for workers in (1, 2):
        out = tmp_path / str(workers)
        dataset.collect_dataset(out, "tiny", 150, behaviours={"random": 1.0, "linucb": 1.0}, workers=workers)
    for name in ("manifest.json", "shards/00000.safetensors", "shards/00003.safetensors"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    assert [event["kind"] for event in read_events(tmp_path / "2")] == ["start", "finish"]


def test_shards_that_come_early_wait_for_their_turn_in_the_manifest(tmp_path: Path) -> None:
    """What a kill leaves is a beginning without holes."""
    world = dataset.worlds_of("tiny")[0]
    shards = [dataset._Shard(n, 0, world, 40, {"random": 1.0}, "optimal", 0, "cpu") for n in range(3)]
    manifest = dataset._Manifest(tmp_path, {}, [])
    listed = []
    for number in (2, 0, 1):
        manifest.add(shards[number], b"content")
        listed.append([s["file"] for s in json.loads((tmp_path / "manifest.json").read_text())["shards"]])
    names = [f"{n:05d}.safetensors" for n in range(3)]
    assert listed == [[], names[:1], names]
