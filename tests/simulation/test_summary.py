"""Summaries: read back as they were written, whatever the environment; others are refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import driftformer as df
from driftformer.errors import InputError
from driftformer.simulation.summary import FORMAT, Summary, read_summary
from driftformer.storage.files import write_json


@pytest.fixture(scope="module")
def summary() -> Summary:
    agents = ["random", "master-linucb", "oracle"]
    return df.evaluate(df.make_env("high", horizon=6, dim=2, arms=2), agents, runs=5).summary


@pytest.mark.parametrize("environment", [{}, {"name": "clicks", "classes": [1, {"deep": None}]}])
def test_it_reads_back_what_it_wrote_of_any_environment(
    summary: Summary, environment: dict[str, Any], tmp_path: Path
) -> None:
    foreign = replace(summary, environment=environment, description="clicks: 3 classes")
    write_json(tmp_path / "summary.json", foreign.to_json())
    assert read_summary(tmp_path / "summary.json") == foreign
    loaded = df.load_result(tmp_path)
    assert "clicks: 3 classes, 5 runs, seed 0" in loaded.table()
    loaded.plot(tmp_path / "regret.svg")
    assert "clicks: 3 classes" in (tmp_path / "regret.svg").read_text()


def test_the_file_has_the_keys_that_others_rely_on(summary: Summary) -> None:
    stored = json.loads(json.dumps(summary.to_json()))
    assert stored["format"] == FORMAT
    assert stored["description"] == "high: b=0.018, phase=0.0, T=6, d=2, 2 fixed arms"
    assert {"environment", "horizon", "runs", "seed", "agents", "paired_differences"} <= stored.keys()
    row = stored["agents"]["oracle"]
    assert row["privileged"] is True
    assert row["regret_curve"][-1] == row["regret_mean"] == summary.agents["oracle"].regret_mean
    assert {pair["agent"] for pair in stored["paired_differences"]} == {"random", "master-linucb"}


@pytest.mark.parametrize("version", [None, 2, FORMAT - 1])
def test_a_summary_of_an_earlier_version_is_recognised(summary: Summary, version: int | None, tmp_path: Path) -> None:
    old = {key: value for key, value in summary.to_json().items() if key != "format"}
    write_json(tmp_path / "summary.json", old | ({} if version is None else {"format": version}))
    with pytest.raises(InputError, match="is of an earlier version of driftformer; run the evaluation again"):
        df.load_result(tmp_path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"format": "4"}, "its format is '4'"),
        ({"environment": []}, "its environment is no object"),
        ({"description": 7}, "its description is no text"),
        ({"runs": 5.0}, "a count is no whole number"),
        ({"runs": 4}, "an agent played other problems"),
        ({"horizon": 7}, "a list has another length"),
        ({"agents": {}}, "it has no agents"),
        ({"agents": {"random": {}}}, "it is no AgentSummary"),
        ({"paired_differences": [{}]}, "it is no PairedDifference"),
        ({"surprise": 1}, "it is no Summary"),
    ],
)
def test_a_malformed_summary_is_broken(summary: Summary, change: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match="is broken") as caught:
        Summary.from_json({**summary.to_json(), **change}, "results file X")
    assert str(caught.value) == f"results file X is broken ({why}); delete it and run the evaluation again"


def test_a_difference_can_be_asked_for_either_way_round(summary: Summary) -> None:
    there, back = summary.difference("random", "oracle"), summary.difference("oracle", "random")
    assert (back.mean, back.low, back.high) == (-there.mean, -there.high, -there.low)
    assert there.mean == pytest.approx(summary.agents["random"].regret_mean - summary.agents["oracle"].regret_mean)
    with pytest.raises(KeyError, match="random and linucb were not compared"):
        summary.difference("random", "linucb")
