"""Policies that a reproduction trains itself play in the place of the shipped ones, under their names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from driftformer.environments.presets import High
from driftformer.experiments import EXPERIMENTS
from driftformer.experiments import reproduce as module
from driftformer.experiments.base import Case
from driftformer.experiments.pretrained import in_place, pretrain_policies
from driftformer.pretraining.recipes import RECIPES
from driftformer.storage.files import read_json


@pytest.fixture(autouse=True)
def small_recipes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    small = {"layers": 1, "heads": 1, "width": 8, "steps": 1, "tokens": 800, "generation": 16, "own": 0.0}
    for name in ("cosine", "high", "high-master-linucb", "high-master-thompson"):
        monkeypatch.setitem(RECIPES, name, replace(RECIPES[name], behaviours={"random": 1.0}, **small))
    monkeypatch.setitem(RECIPES, "cosine", replace(RECIPES["cosine"], tuning_steps=1, tuning_tokens=12_800))
    with torch.inference_mode(False):  # other tests do without gradients
        yield


def test_they_play_under_the_names_that_experiments_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("one", "One", High(horizon=20), ("random", "policy:cosine"))
    monkeypatch.setitem(EXPERIMENTS, "rivals", replace(EXPERIMENTS["rivals"], cases=(case,)))
    monkeypatch.setattr(module, "SINGLE_RUNS", ())
    module.reproduce(["rivals"], tmp_path, runs=2, pretrain=True)
    assert list(read_json(tmp_path / "rivals" / "one" / "summary.json")["agents"]) == ["random", "policy:cosine"]
    trained = read_json(tmp_path / "policies" / "cosine" / "best" / "training.json")
    assert trained["policy"]["layers"] == 1
    assert trained["progress"]["tuning_step"] == 1
    (stored,) = (tmp_path / "rivals" / "one" / "chunks").glob("policy*")
    assert "policies" in stored.name


def test_a_policy_that_begins_with_another_begins_with_one_made_here(tmp_path: Path) -> None:
    pretrain_policies(["restart@base=policy:high-master-thompson,every=9"], tmp_path, "cpu", lambda name, report: None)
    trained = read_json(tmp_path / "policies" / "high-master-thompson" / "best" / "training.json")
    assert trained["recipe"]["start"] == str(tmp_path / "policies" / "high-master-linucb" / "best")


def test_only_policies_are_replaced(tmp_path: Path) -> None:
    assert in_place("linucb@alpha=2", tmp_path) == "linucb@alpha=2"
    assert in_place("restart@base=policy:high,every=9", tmp_path) == (
        f"restart@base=policy:{tmp_path}/policies/high/best,every=9"
    )
