"""A reproduction in small, shared by the tests of experiments and of the report: twenty rounds, three runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from driftformer.experiments import EXPERIMENTS, TRAININGS, Experiment
from driftformer.experiments import reproduce as module
from driftformer.experiments.trainings import TrainingExperiment
from driftformer.report import write_report
from driftformer.theory import save_checks
from driftformer.theory.checks import CHECKS

ROUNDS = 20
NAMES = ("low", "high-0.018", "rivals", "frequency-sweep", "architecture", "theory")


def in_few_rounds(preset: Any) -> Any:
    """The same world with twenty rounds; an MDP with one or a few episodes."""
    if hasattr(preset, "episodes"):
        return replace(preset, episodes=max(ROUNDS // preset.stages, 1))
    return replace(preset, horizon=ROUNDS, **({"windows": ((3, 5),)} if hasattr(preset, "windows") else {}))


def shortened(experiment: Experiment) -> Experiment:
    """The same experiment with twenty rounds and, where there are many, only two of its worlds."""
    cases = []
    for case in experiment.cases if len(experiment.cases) <= 6 else experiment.cases[3:5]:
        cases.append(replace(case, preset=in_few_rounds(case.preset)))
    return replace(experiment, cases=tuple(cases))


def hasty(experiment: TrainingExperiment) -> TrainingExperiment:
    """The same trainings, two of them, for two steps."""
    some = tuple(
        replace(training, settings={**training.settings, "steps": 2, "warmup": 1})
        for training in experiment.trainings["quick"][:2]
    )
    return replace(experiment, trainings={"quick": some})


@pytest.fixture(scope="session")
def in_small() -> Iterator[None]:
    """Experiments and single runs with few rounds; claims name agents by their usual names."""
    patch = pytest.MonkeyPatch()
    for name, experiment in list(EXPERIMENTS.items()):
        patch.setitem(EXPERIMENTS, name, shortened(experiment))
    for name, experiment in list(TRAININGS.items()):
        patch.setitem(TRAININGS, name, hasty(experiment))
    quick = {name: CHECKS[name] for name in ("indicator", "sigma1", "lemma")}
    patch.setattr(save_checks, "CHECKS", quick)
    runs = tuple(replace(run, preset=in_few_rounds(run.preset)) for run in module.SINGLE_RUNS)
    patch.setattr(module, "SINGLE_RUNS", runs)
    yield
    patch.undo()


@pytest.fixture(scope="session")
def reproduction(in_small: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with four experiments and their report."""
    out = tmp_path_factory.mktemp("reproduction")
    with torch.inference_mode(False):
        module.reproduce(NAMES, out, runs=3)
    module.draw_experiments(out)
    write_report(out)
    return out
