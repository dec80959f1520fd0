"""Experiments: kept, resumed, restored to the last byte."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from driftformer.agents.registry import make_agent, summary_of
from driftformer.errors import InputError
from driftformer.experiments import EXPERIMENTS
from driftformer.experiments import reproduce as module
from driftformer.experiments.base import SCALES
from driftformer.randomness import CHUNK
from driftformer.report import write_report
from driftformer.simulation.rollout import check_applies
from tests.reproduction import NAMES


def files(folder: Path) -> dict[str, bytes]:
    """What belongs to the results: everything but events and times, which trainings keep too."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name not in ("timing.json", "events.jsonl"))
    found = (path for path in found if "training" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.mark.parametrize(
    "gone",
    [
        "low/*/summary.json",
        "low/**/*.safetensors",
        "low/*/nonstationarity.json",
        "single-runs/policy-high.json",
        "architecture/*/result.json",
        "architecture/results.json",
        "theory/theory.json",
        "theory/scheduler.svg",
        "figures/*.svg",
    ],
)
def test_whatever_is_deleted_comes_back_the_same(reproduction: Path, gone: str) -> None:
    before = files(reproduction)
    sorted(reproduction.glob(gone))[0].unlink()
    (reproduction / "report.html").unlink()
    module.reproduce(NAMES, reproduction, runs=3)
    if gone == "figures/*.svg":
        module.draw_experiments(reproduction)
    write_report(reproduction)
    after = files(reproduction)
    assert [name for name in before if before[name] != after.get(name)] == []
    assert after.keys() == before.keys()


def test_a_folder_of_another_seed_or_scale_is_refused(reproduction: Path) -> None:
    with pytest.raises(InputError, match="was made with seed 0, not 1; name another --out"):
        module.reproduce(["low"], reproduction, runs=3, seed=1)
    with pytest.raises(InputError, match="was made with scale quick, not paper"):
        module.reproduce(["low"], reproduction, runs=3, scale="paper")


def test_a_report_of_a_folder_with_a_hole_says_what_to_do(reproduction: Path, tmp_path: Path) -> None:
    shutil.copytree(reproduction, tmp_path / "copy")
    (tmp_path / "copy" / "low" / "windows" / "summary.json").unlink()
    with pytest.raises(InputError, match="run `driftformer reproduce low` again"):
        write_report(tmp_path / "copy")


def test_a_folder_of_a_version_with_fewer_agents_says_what_to_do(
    reproduction: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = EXPERIMENTS["low"].cases[0]
    more = replace(EXPERIMENTS["low"], cases=(replace(case, agents=(*case.agents, "weighted-linucb")),))
    monkeypatch.setitem(EXPERIMENTS, "low", more)
    with pytest.raises(InputError, match="no results of weighted-linucb; run `driftformer reproduce low` again"):
        write_report(reproduction)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_can_be_played(name: str) -> None:
    """Its agents exist, may play its worlds, and have words for the report; its panels name agents that play."""
    experiment = EXPERIMENTS[name]
    for case in experiment.cases:
        environment = case.preset.build()
        for agent in case.agents:
            check_applies(environment, make_agent(agent))
            assert summary_of(agent)
        for panel in experiment.panels:
            assert set(panel.agents) <= set(case.agents)
    assert len({case.name for case in experiment.cases}) == len(experiment.cases)


def test_all_agents_of_a_case_play_the_same_number_of_problems(reproduction: Path) -> None:
    for cases in module.read_experiments(reproduction).values():
        for summary in cases.values():
            assert {row.runs for row in summary.agents.values()} == {summary.runs} == {3}
    quick, paper = SCALES["quick"], SCALES["paper"]
    assert quick.runs_for(200) == quick.runs_for(1000) == CHUNK, "a chunk is computed whole anyway"
    assert (paper.runs_for(400), paper.runs_for(401)) == (512, 192)


@pytest.mark.parametrize(
    "forged",
    [
        "single-runs/*.json",
        "architecture/results.json",
        "theory/theory.json",
        "low/*/nonstationarity.json",
        "reproduction.json",
    ],
)
@pytest.mark.parametrize(
    "content", ["[]", "{}", "null", "7", '{"scale": "quick", "seed": [], "experiments": ["low", 5]}']
)
def test_a_report_of_forged_results_is_refused_in_words(
    reproduction: Path, tmp_path: Path, forged: str, content: str
) -> None:
    shutil.copytree(reproduction, tmp_path / "copy")
    sorted((tmp_path / "copy").glob(forged))[0].write_text(content)
    with contextlib.suppress(InputError):  # some are harmless; what counts is that nothing else is raised
        write_report(tmp_path / "copy")


def test_what_a_killed_reproduction_leaves_belongs_to_its_seed(
    in_small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("driftformer.experiments.run_trainings.run_trainings", killed)
    with pytest.raises(KeyboardInterrupt):
        module.reproduce(["architecture"], tmp_path)
    with pytest.raises(InputError, match="was made with seed 0, not 1"):
        module.reproduce(["architecture"], tmp_path, seed=1)
    with pytest.raises(InputError, match="run `driftformer reproduce` again"):
        write_report(tmp_path)


@pytest.mark.parametrize("device", ["gpu", "cuda"])
def test_a_device_that_is_not_there_is_refused_at_the_door(tmp_path: Path, device: str) -> None:
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("there is one here")
    with pytest.raises(InputError, match="device is"):
        module.reproduce(["architecture"], tmp_path / "new", device=device)
    assert not (tmp_path / "new").exists()
