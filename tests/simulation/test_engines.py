"""Engines: who computes changes nothing but the time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import driftformer as df
from driftformer.errors import InputError
from driftformer.pretraining import dataset
from driftformer.simulation import engines, ray_engine
from driftformer.simulation.engines import AHEAD, Engine, LocalEngine, make_engine, opened
from driftformer.storage.events import read_events
from tests.simulation.jobs import Doomed, Number, always_dies, dies_at_three, squared, stumbles, waits_for_word


def quiet(*_: object, **__: object) -> None: ...


@pytest.fixture(scope="module")
def alone() -> LocalEngine:
    return LocalEngine(1)


@pytest.fixture(scope="module")
def two() -> Iterator[LocalEngine]:
    with opened("local", 2) as engine:
        assert isinstance(engine, LocalEngine)
        yield engine


@pytest.fixture(params=["alone", "two"])
def engine(request: pytest.FixtureRequest) -> Engine:
    made: Engine = request.getfixturevalue(request.param)
    return made


# What holds for every engine; test_ray_engine.py checks the same on a cluster. Workers stay from test to test, so tests
# that end or kill them come last.


def check_that_every_job_comes_back_once(engine: Engine) -> None:
    played: Counter[int] = Counter()
    found = list(engine.run(squared, map(Number, range(30)), lambda job, n: played.update({job.value: n}), quiet))
    assert sorted((job.value, result) for job, result in found) == [(n, n * n) for n in range(30)]
    assert played == dict.fromkeys(range(30), 10)


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


def check_that_a_lost_job_is_sent_again(engine: Engine, folder: Path) -> None:
    told: list[str] = []
    played: Counter[int] = Counter()
    jobs = [Doomed(value, str(folder)) for value in range(12)]
    results = engine.run(
        dies_at_three, jobs, lambda job, n: played.update({job.value: n}), lambda kind, **details: told.append(kind)
    )
    assert sorted((job.value, result) for job, result in results) == [(n, n * n) for n in range(12)]
    assert {"worker-lost", "retry"} == set(told)
    assert played == dict.fromkeys(range(12), 10), "rounds that were played again count once"


def check_that_a_job_lost_too_often_is_an_error(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "TRIES", 2)
    told: list[tuple[str, str]] = []
    with pytest.raises(InputError, match=r"number \d was lost 2 times with its worker \(.*run the same command again"):
        list(engine.run(always_dies, [Number(7), Number(8)], quiet, lambda kind, job, **_: told.append((kind, job))))
    of_one = [kind for kind, job in told if job == told[-1][1]]
    assert of_one == ["worker-lost", "retry", "worker-lost"]


def check_that_errors_of_the_work_come_through(engine: Engine) -> None:
    with pytest.raises(InputError) as caught:
        list(engine.run(stumbles, [Number(3), Number(3)], quiet, quiet))
    assert str(caught.value) == "3 is no number; give four"
    assert type(caught.value) is InputError


def test_every_job_comes_back_once_and_its_rounds_are_counted(engine: Engine) -> None:
    check_that_every_job_comes_back_once(engine)


def test_a_collection_by_two_workers_is_that_of_one(
    alone: LocalEngine, two: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(dataset.SHARD, "cpu", 40)
    for name, engine in (("one", alone), ("two", two)):
        dataset.collect_dataset(tmp_path / name, "tiny", 150, behaviours={"random": 1.0, "linucb": 1.0}, engine=engine)
    for name in ("manifest.json", "shards/00000.safetensors", "shards/00003.safetensors"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert [event["kind"] for event in read_events(tmp_path / "two")] == ["start", "finish"]


def test_only_a_few_jobs_are_under_way_however_many_there_are(engine: Engine) -> None:
    check_that_few_jobs_are_under_way(engine)


def test_errors_of_the_work_come_through_as_themselves(engine: Engine) -> None:
    check_that_errors_of_the_work_come_through(engine)


def test_it_is_told_which_job_advances_before_it_is_done(two: LocalEngine, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def on_rounds(job: Doomed, rounds: int) -> None:
        seen.append((job.value, rounds))
        if sorted(seen) == [(2, 2), (3, 3)]:
            (tmp_path / "go").touch()

    jobs = [Doomed(value, str(tmp_path)) for value in (2, 3)]
    assert len(list(two.run(waits_for_word, jobs, on_rounds, quiet))) == 2
    assert sorted(seen[2:]) == [(2, 8), (3, 7)]


def test_a_job_whose_process_was_killed_is_sent_again(two: LocalEngine, tmp_path: Path) -> None:
    check_that_a_lost_job_is_sent_again(two, tmp_path)


def test_a_job_that_is_lost_too_often_is_an_error(two: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    check_that_a_job_lost_too_often_is_an_error(two, monkeypatch)


def test_a_script_without_a_guard_ends_in_an_error_that_names_the_cause(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("""
from driftformer.simulation.engines import LocalEngine
from tests.simulation.jobs import Number, squared
def quiet(*_, **__): ...
list(LocalEngine(2).run(squared, [Number(1), Number(2)], quiet, quiet))
""")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "InputError: workers died before they were ready" in done.stderr
    assert "without an `if __name__ == '__main__'` guard; add the guard, or use workers=1" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "rya"}, "engine: there is no 'rya'; did you mean 'ray'?"),
        ({"name": "local", "workers": 0}, "workers is 0; give a whole number of at least 1"),
        ({"name": "local", "address": "auto"}, "address is 'auto', but only the engine ray takes an address"),
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
