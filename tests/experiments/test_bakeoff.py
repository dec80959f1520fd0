"""The bake-off in small: its scores, who is ahead of whom, and what is stored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from driftformer.cli import main
from driftformer.errors import InputError
from driftformer.evaluation.evaluate import evaluate
from driftformer.experiments import bakeoff as module
from driftformer.experiments.bakeoff import BakeOff, Found, bakeoff, markdown
from driftformer.storage.files import read_json

SMALL = BakeOff(horizon=100, problems=6, agents=("linucb", "adaptive-linucb"), peers=(), tables=("phishing",))


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bakeoff")


@pytest.fixture(scope="module")
def found(out: Path) -> Found:
    return bakeoff(SMALL, out)


def test_every_family_meets_every_drift(found: Found) -> None:
    kinds = {(stream.family, stream.drift) for stream in found.streams.values()}
    artificial = {(family, drift) for family in ("item", "value", "block") for drift in ("none", "abrupt", "gradual")}
    assert kinds == artificial | {("block", "own")}
    assert all(len(units) == 6 for rows in found.scores.values() for units in rows.values())


def test_scores_are_zero_for_random_play_and_those_of_an_ordinary_evaluation(found: Found) -> None:
    stream = found.streams["item-phishing-none"]
    summary = evaluate(stream.preset.build(), ["random", "linucb"], runs=6).summary
    chance, own = (np.array(summary.agents[name].regret_runs) for name in ("random", "linucb"))
    np.testing.assert_allclose(found.scores[stream.name]["linucb"], 100 * (1 - own / chance.mean()), atol=0.5)


def test_wins_are_counted_where_paired_differences_are_significant(found: Found) -> None:
    scores = {
        "a": {"x": np.arange(6.0) + 1, "y": np.zeros(6)},
        "b": {"x": np.array([9.0, -9, 9, -9, 9, -8]), "y": np.zeros(6)},
    }
    made = Found(scores, {}, SMALL, (), {"x": "x", "y": "y"})
    assert made.wins == {("x", "y"): 1, ("y", "x"): 0}


def test_a_second_call_computes_nothing_and_a_new_agent_only_itself(found: Found, out: Path) -> None:
    def stored() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in out.rglob("*.safetensors")}

    before = stored()
    assert bakeoff(SMALL, out).to_json() == found.to_json()
    assert stored() == before
    more = BakeOff(**{**vars(SMALL), "agents": (*SMALL.agents, "greedy")})
    wider = bakeoff(more, out)
    assert {path: stored()[path] for path in before} == before
    assert np.array_equal(wider.scores["item-phishing-none"]["linucb"], found.scores["item-phishing-none"]["linucb"])
    assert bakeoff(SMALL, out).to_json() == found.to_json()


def test_the_page_for_the_docs_has_a_row_for_each_agent_and_says_who_is_missing(
    found: Found, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (out / "bakeoff.md").read_text()
    assert page.splitlines() == markdown(found)
    assert page.count("| `adaptive-linucb` |") == 4  # a table for each drift
    assert (
        read_json(out / "bakeoff.json")["wins"]["linucb"]["adaptive-linucb"] == found.wins["linucb", "adaptive-linucb"]
    )

    def refuse(package: str) -> None:
        raise InputError(package)

    monkeypatch.setattr(module, "installed", refuse)
    without = bakeoff(BakeOff(**{**vars(SMALL), "peers": ("vw-bag",)}), out)
    assert without.missing == ("vw-bag",)
    assert "Not installed, so not played: vw-bag." in markdown(without)


def test_the_command_prints_tables_that_fit_a_terminal(
    out: Path, found: Found, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "bakeoff --tables phishing --own --horizon 100 --problems 6 --agents"
    main([*words.split(), *SMALL.agents, "--out", str(out)])
    page = capsys.readouterr().out
    assert max(map(len, page.replace(str(out), "").splitlines())) <= 80
    for title in ("at rest", "abrupt", "gradual", "own order"):
        assert f"Scores, {title}" in page
    assert (out / "bakeoff.png").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tables": ("irsi",)}, "tables: there is no 'irsi'"),
        ({"peers": ("vw",)}, "peers: there is no 'vw'"),
        ({"problems": 5}, "problems is 5; give a whole number of at least 6"),
        ({"horizon": 10}, "horizon is 10"),
    ],
)
def test_settings_that_cannot_be_played_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        BakeOff(**options)  # type: ignore[arg-type]
