"""The single run that is shown is a typical one, and its caption says what is seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import driftformer as df
from driftformer.experiments.single_runs import SINGLE_RUNS, play
from driftformer.report.single_runs import caption
from driftformer.storage.files import read_json


@pytest.mark.parametrize("name", ["policy-high", "master-eager"])
def test_it_has_the_median_regret_of_the_first_64_problems_of_an_evaluation(name: str, tmp_path: Path) -> None:
    (run,) = (replace(one, preset=replace(one.preset, horizon=25)) for one in SINGLE_RUNS if one.name == name)
    play(run, tmp_path / "run.json", seed=3)
    shown = read_json(tmp_path / "run.json")
    (finals,) = df.evaluate(run.preset.build(), [run.agent], runs=64, seed=3).finals.values()
    assert shown["regret_final"] == np.sort(finals)[31] == finals[shown["problem"] - 1]
    assert shown["regret_median"] == pytest.approx(np.median(finals))
    assert shown["regret_mean"] == pytest.approx(finals.mean())
    assert shown["regret"][-1] == pytest.approx(shown["regret_final"], rel=1e-3)
    if name == "policy-high":
        means, arms = np.array(shown["means"]), np.array(shown["arms"])
        best = means.argmax(axis=0) == arms
        assert shown["best_arm_share"] == pytest.approx(best.mean())
        assert np.cumsum(means.max(axis=0) - means[arms, np.arange(25)])[-1] == pytest.approx(
            shown["regret_final"], rel=1e-2
        )
        assert np.array(shown["chances"]).sum(axis=0) == pytest.approx(np.ones(25), abs=1e-3)


def test_the_caption_is_computed_from_the_run() -> None:
    run = {"problem": 7, "runs": 64, "regret_final": 13.646, "regret_median": 13.7, "regret_mean": 20.0,
           "best_arm_share": 0.714, "kind": "policy"}  # fmt: skip
    assert caption(run) == (
        "Problem 7 of 64, the one with the median regret: 13.6. Over all 64 the median is 13.7, the mean 20.0. "
        "Here the agent played the best arm in 71% of the rounds."
    )
    for restarts, words in (([], "never"), ([3], "once"), ([3, 9], "2 times")):
        assert caption({**run, "kind": "master", "restarts": restarts}).endswith(f"and restarted {words}.")
