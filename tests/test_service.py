"""The example of a service: decisions, late rewards, refusals, a log that `replay` reads, and a life after death."""

from __future__ import annotations

import csv
import io
import json
import warnings
from importlib import import_module, reload
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftformer.logs.read import read_log

for name in ("fastapi", "httpx"):
    pytest.importorskip(name, reason="needs pip install 'driftformer[service]' httpx")

ARMS = [[1.0, 0.0], [0.0, 1.0], [None, 0.5]]


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "examples"))
    monkeypatch.setenv("FOLDER", str(tmp_path / "service"))
    monkeypatch.setenv("AGENT", "linucb")
    monkeypatch.delenv("ARMS", raising=False)
    return reload(import_module("service"))


def client(service: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from fastapi.testclient import TestClient
    return TestClient(service.app)


def read(log: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(log)))


def test_a_reward_finds_its_decision_however_late_and_the_log_holds_both(service: Any) -> None:
    with client(service) as asked:
        made = [asked.post("/decide", json={"features": ARMS}).json() for _ in range(4)]
        assert [one["id"] for one in made] == [1, 2, 3, 4]
        for one in (made[2], made[0]):
            assert asked.post("/reward", json={"id": one["id"], "reward": 0.5 * one["id"]}).json() == {"learned": True}
        rows = read(asked.get("/log").text)
    assert [(row["round"], row["reward"]) for row in rows] == [("1", "0.5"), ("3", "1.5")]
    for row, one in zip(rows, (made[0], made[2]), strict=True):
        assert (int(row["arm"]), float(row["propensity"])) == (one["arm"], one["probability"])
        assert json.loads(row["features"]) == ARMS
        assert float(row["propensity"]) >= 0.05 / 3 - 1e-9


def test_arms_may_share_a_context_of_raw_columns(service: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ARMS", "3")
    rng, won = np.random.default_rng(0), []
    with client(reload(service)) as asked:
        for t in range(150):
            context = [None if t % 9 == 0 else 1012 + rng.normal(), rng.normal()]
            made = asked.post("/decide", json={"features": context}).json()
            won.append(int(made["arm"] == (0 if context[1] > 0.5 else 1 if context[1] < -0.5 else 2)))
            asked.post("/reward", json={"id": made["id"], "reward": won[-1]})
        (tmp_path / "log.csv").write_text(asked.get("/log").text)
        assert asked.post("/decide", json={"features": ARMS}).status_code == 422
    assert np.mean(won[75:]) > 0.6
    log = read_log(tmp_path / "log.csv", scale=True)
    assert (log.arms, log.known_by) == (3, "their numbers, in a context")


def test_it_learns(service: Any) -> None:
    rng, won = np.random.default_rng(0), []
    with client(service) as asked:
        for _ in range(60):
            features = rng.normal(size=(3, 2))
            made = asked.post("/decide", json={"features": features.tolist()}).json()
            won.append(int(made["arm"] == features[:, 0].argmax()))
            asked.post("/reward", json={"id": made["id"], "reward": features[made["arm"], 0]})
    assert np.mean(won[30:]) > 0.8


@pytest.mark.parametrize("killed", [False, True])
def test_after_a_restart_it_goes_on_where_it_was(service: Any, killed: bool) -> None:
    def rounds(asked: Any, number: int) -> list[Any]:
        made = []
        for _ in range(number):
            made.append(asked.post("/decide", json={"features": ARMS}).json())
            asked.post("/reward", json={"id": made[-1]["id"], "reward": made[-1]["arm"] / 2})
        return made

    asked = client(service)
    asked.__enter__()
    rounds(asked, 12)
    state = service.STATE.read_bytes()
    open_round = asked.post("/decide", json={"features": ARMS}).json()["id"]
    asked.__exit__(None, None, None)
    if killed:  # as if it had died with that decision: the state is that of the last reward
        service.STATE.write_bytes(state)
    with client(reload(service)) as again:
        assert again.post("/reward", json={"id": open_round, "reward": 1}).status_code == (422 if killed else 200)
        after = rounds(again, 5)
        assert [one["id"] for one in after] == list(range(13 if killed else 14, 18 if killed else 19))
        assert len(read(again.get("/log").text)) == (17 if killed else 18)


def test_what_cannot_be_is_refused_in_words_and_changes_nothing(service: Any) -> None:
    with client(service) as asked:
        assert asked.post("/decide", json={"features": [[1, 2], [3]]}).status_code == 422
        asked.post("/decide", json={"features": ARMS})
        unknown = asked.post("/reward", json={"id": 7, "reward": 1})
        assert (unknown.status_code, "1 rounds have been played" in unknown.text) == (422, True)
        assert asked.post("/reward", json={"id": 1, "reward": 1}).json() == {"learned": True}
        assert "each once" in asked.post("/reward", json={"id": 1, "reward": 0}).text
        assert [row["reward"] for row in read(asked.get("/log").text)] == ["1.0"]


def test_the_page_on_practice_prints_the_service_that_is_tested() -> None:
    root = Path(__file__).parents[1]
    code = (root / "examples" / "service.py").read_text().split('"""', 2)[2].strip()
    assert f"```python\n{code}\n```" in (root / "docs" / "practice.md").read_text()
    assert len([line for line in code.splitlines() if line.strip()]) <= 42
