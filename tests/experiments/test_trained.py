"""Experiments that train policies, in small."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from driftformer.errors import InputError
from driftformer.experiments.reproduce import kept
from driftformer.experiments.run_trainings import run_trainings
from driftformer.experiments.trainings import TRAININGS, TrainingExperiment
from driftformer.pretraining.recipes import recipe_of
from driftformer.pretraining.run import policy_config
from driftformer.pretraining.worlds import worlds_of
from tests.reproduction import hasty


@pytest.mark.parametrize("name", ["data-scaling", "training-drift", "training-steps"])
def test_trainings_are_measured_on_their_worlds_beside_references(name: str, tmp_path: Path) -> None:
    experiment = hasty(TRAININGS[name])
    with torch.inference_mode(False):  # other tests do without gradients
        results = run_trainings(experiment, tmp_path, "quick", 0, "cpu")
    assert [row["label"] for row in results["trainings"]] == [one.label for one in experiment.trainings["quick"]]
    for row in results["trainings"]:
        assert set(row["worlds"]) == set(experiment.worlds["quick"])
        assert all(0.2 < found["mean"] < 1.3 for found in row["worlds"].values()), "two steps teach little"
    oracle = results["references"]["oracle"]
    assert all(found["mean"] < 0.2 for found in oracle.values())
    assert "tiny-walk" not in oracle, "w* moves there"
    if name == "data-scaling":
        (data,) = (tmp_path / name / "n-128").glob("data/manifest.json")
        assert '"trajectories": 128' in data.read_text()


@pytest.mark.parametrize("scale", ["quick", "paper"])
@pytest.mark.parametrize("experiment", TRAININGS.values(), ids=lambda experiment: experiment.name)
def test_every_training_describes_a_policy_for_its_worlds(experiment: TrainingExperiment, scale: str) -> None:
    names = [training.name for training in experiment.trainings[scale]]
    assert len(set(names)) == len(names)
    for training in experiment.trainings[scale]:
        recipe = recipe_of("cosine", **training.settings)
        config = policy_config(recipe)
        assert config.horizon == (30 if scale == "quick" else 200)
    for world in experiment.worlds[scale]:
        assert {one.environment.arm_mode for one in worlds_of(world)} == {"fixed", "resampled"}


_WITH_KEPT = [experiment for experiment in TRAININGS.values() if kept(experiment.name)]


@pytest.mark.parametrize("experiment", _WITH_KEPT, ids=lambda experiment: experiment.name)
def test_kept_results_are_of_the_trainings_that_the_experiment_names(experiment: TrainingExperiment) -> None:
    results = kept(experiment.name)
    assert results is not None
    trained, worlds = experiment.trainings[results["scale"]], experiment.worlds[results["scale"]]
    assert [row["label"] for row in results["trainings"]] == [training.label for training in trained]
    for row in (*results["trainings"], {"worlds": results["references"]["linucb"]}):
        assert tuple(row["worlds"]) == worlds


def test_a_result_of_another_training_is_refused_by_name(tmp_path: Path) -> None:
    experiment = hasty(TRAININGS["training-drift"])
    with torch.inference_mode(False):
        run_trainings(experiment, tmp_path, "quick", 0, "cpu")
    with pytest.raises(InputError, match=r"result\.json belongs to another training; delete"):
        run_trainings(experiment, tmp_path, "quick", 1, "cpu")
