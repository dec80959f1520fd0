"""The Ray engine on a real cluster of two workers: the same bits, whatever dies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

import driftformer as df
from driftformer.agents.base import ProblemShape
from driftformer.agents.reference import Random
from driftformer.errors import InputError
from driftformer.evaluation import evaluate as chunking
from driftformer.pretraining import dataset
from driftformer.randomness import CHUNK
from driftformer.simulation import engines, ray_engine
from driftformer.simulation.ray_engine import RayEngine
from driftformer.storage.events import read_events
from driftformer.sweeps.grid import make_grid
from driftformer.sweeps.sweep import sweep
from tests.simulation.jobs import Number, killed_once, squared
from tests.simulation.test_engines import (
    check_that_a_job_lost_too_often_is_an_error,
    check_that_a_lost_job_is_sent_again,
    check_that_errors_of_the_work_come_through,
    check_that_every_job_comes_back_once,
    check_that_few_jobs_are_under_way,
    quiet,
)

# Ray leaves log files and its processes' handles to the collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

ENV = {"horizon": 25, "dim": 5, "arms": 4}


@pytest.fixture(scope="module")
def crew() -> Iterator[RayEngine]:
    pytest.importorskip("ray")
    engine = RayEngine(workers=2)
    assert engine.workers == 2
    yield engine
    engine.close()


@pytest.fixture(autouse=True)
def single_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small tasks."""
    monkeypatch.setattr(chunking, "STACK", 1)


def files(folder: Path) -> dict[str, bytes]:
    """Results, without times and events."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name not in ("timing.json", "events.jsonl"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@dataclass(frozen=True)
class Mortal(Random):
    """Plays at random; where it plays first, its process is killed."""

    name: ClassVar[str] = "mortal"
    marker: str = ""

    def init(self, shape: ProblemShape) -> Any:
        killed_once(Path(self.marker))
        return super().init(shape)


def test_results_are_those_of_the_local_engine_to_the_last_bit(crew: RayEngine, tmp_path: Path) -> None:
    environment = df.make_env("jumps", **ENV, arm_mode="resampled")
    agents = ["random", "linucb", "thompson", "master-linucb", "oracle"]
    here = df.evaluate(environment, agents, runs=200, seed=1, out=tmp_path / "here", trajectories=True)
    there = df.evaluate(environment, agents, runs=200, seed=1, out=tmp_path / "there", trajectories=True, engine=crew)
    assert here.summary == there.summary
    assert files(tmp_path / "here") == files(tmp_path / "there")


def test_policies_play_the_same_on_workers(crew: RayEngine) -> None:
    environment = df.make_env("high", horizon=8)
    here, there = (df.evaluate(environment, ["policy:high"], runs=70, engine=one) for one in ("local", crew))
    assert here.summary == there.summary


def test_a_collection_is_that_of_the_local_engine(
    crew: RayEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(dataset.SHARD, "cpu", 40)
    for name, engine in (("here", "local"), ("there", crew)):
        dataset.collect_dataset(tmp_path / name, "tiny", 150, behaviours={"random": 1.0, "linucb": 1.0}, engine=engine)
    assert files(tmp_path / "here") == files(tmp_path / "there")


def test_a_sweep_is_that_of_the_local_engine(crew: RayEngine, tmp_path: Path) -> None:
    vary = {"b": [0.0, 0.1], "agent.alpha": [1, 2], "horizon": 10}
    grid = replace(make_grid("high", ["linucb", "random"], vary), runs=100)
    here, there = (sweep(grid, tmp_path / name, engine=engine) for name, engine in (("here", "local"), ("there", crew)))
    speed = "rounds_per_cpu_second"
    assert [{**row, speed: 0} for row in here] == [{**row, speed: 0} for row in there]
    assert len(there) == 6


def test_a_killed_worker_is_replaced_and_no_chunk_counts_twice(crew: RayEngine, tmp_path: Path) -> None:
    environment, mortal = df.make_env("high", **ENV), Mortal(str(tmp_path / "killed"))
    there = df.evaluate(environment, [mortal], runs=400, out=tmp_path / "there", engine=crew)
    here = df.evaluate(environment, [mortal], runs=400, out=tmp_path / "here")
    assert here.summary == there.summary
    assert files(tmp_path / "here") == files(tmp_path / "there")
    (timing,) = there.timing.values()
    assert timing["rounds"] == 7 * CHUNK * ENV["horizon"]
    events = read_events(tmp_path / "there")
    assert events[0]["kind"] == "start"
    assert events[-1]["kind"] == "finish"
    told = [event for event in events if event["kind"] in ("worker-lost", "retry")]
    assert {event["kind"] for event in told} == {"worker-lost", "retry"}
    assert told[0]["why"] == "ActorDiedError"
    assert "'mortal" in told[1]["job"]
    assert (told[1]["attempt"], told[1]["of"]) == (2, engines.TRIES)


def test_every_job_comes_back_once_and_its_rounds_are_counted(crew: RayEngine) -> None:
    check_that_every_job_comes_back_once(crew)


def test_only_a_few_jobs_are_under_way_however_many_there_are(crew: RayEngine) -> None:
    check_that_few_jobs_are_under_way(crew)


def test_a_job_whose_worker_was_killed_is_sent_again(crew: RayEngine, tmp_path: Path) -> None:
    check_that_a_lost_job_is_sent_again(crew, tmp_path)


def test_a_job_that_is_lost_too_often_is_an_error(crew: RayEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    check_that_a_job_lost_too_often_is_an_error(crew, monkeypatch)


def test_errors_of_the_work_come_through_as_themselves(crew: RayEngine) -> None:
    check_that_errors_of_the_work_come_through(crew)


def test_versions_that_would_give_other_bits_are_refused(crew: RayEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_engine, "_versions", lambda: {"torch": "1.0"})
    crew._connect().close()  # new workers are asked for their versions
    with pytest.raises(InputError, match=r"a machine of the Ray cluster has .* install the same versions"):
        list(crew.run(squared, [Number(1)], quiet, quiet))
