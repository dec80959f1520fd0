"""Which agent to take for one's own data, and what is said of data that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import driftformer as df
from driftformer.cli import main

FEW = ("linucb", "adaptive-linucb", "greedy")


def drifting(rows: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Classes that trade places in the middle of the file."""
    rng = np.random.default_rng(seed)
    label = rng.integers(3, size=rows)
    features = np.eye(3)[label] * 2 + rng.normal(size=(rows, 3)) * 0.3
    return features, np.where(np.arange(rows) < rows // 2, label, (label + 1) % 3)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    features, label = drifting()
    columns = {f"x{place}": features[:, place] for place in range(3)}
    pq.write_table(pa.table({"bought": np.array(["a", "b", "c"])[label], **columns}), tmp_path / "mine.parquet")
    return tmp_path / "mine.parquet"


def test_the_agent_that_follows_the_datas_own_drift_is_named_with_an_interval(mine: Path) -> None:
    choice = df.choose(str(mine), target="bought", agents=FEW)
    assert choice.best.agent == "adaptive-linucb"
    assert {row.agent for row in choice.standings} == {"random", *FEW}
    by_name = {row.agent: row for row in choice.standings}
    assert by_name["random"].score == 0
    behind = by_name["linucb"].behind
    assert 0 < behind.low < behind.mean < behind.high
    assert behind.mean == pytest.approx(choice.best.reward - by_name["linucb"].reward)
    assert choice.code == 'service = df.make_agent("adaptive-linucb").online(arms=3, scale=True)'
    assert "Take adaptive-linucb" in choice.advice()[0]
    assert df.choose(drifting(), agents=FEW).standings == choice.standings


def test_features_that_say_nothing_recommend_nobody() -> None:
    rng = np.random.default_rng(1)
    choice = df.choose((rng.normal(size=(200, 2)), rng.integers(2, size=200)), agents=("linucb",))
    assert choice.code == ""
    assert "No agent is ahead of choosing at random" in choice.advice()[0]


def test_rewards_may_be_columns_in_any_unit() -> None:
    features, label = drifting(300)
    pays = np.eye(3)[label] * 1000 + 50_000
    choice = df.choose((features, pays), agents=("adaptive-linucb",))
    assert choice.best.agent == "adaptive-linucb"
    assert 50_000 < choice.best.reward < 51_000
    assert choice.best.score > 60


def test_the_command_prints_who_to_take_and_stores_it(
    mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["choose", "--data", str(mine), "--target", "bought", "--agents", *FEW, "--out", str(tmp_path / "out")]
    main(words)
    page = capsys.readouterr().out
    assert "Take adaptive-linucb" in page
    assert page.rstrip().endswith('service = df.make_agent("adaptive-linucb").online(arms=3, scale=True)')
    assert max(map(len, page.splitlines())) <= 100
    stored = json.loads((tmp_path / "out" / "choice.json").read_text())
    assert stored["standings"][0]["agent"] == "adaptive-linucb"
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "chunks").rglob("*.safetensors")}
    main(words)  # nothing is played again
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "chunks").rglob("*.safetensors")}


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("t.parquet", "x,y\n1,a\n", [], "its content is not Parquet"),
        ("t.csv", "x,y\n" + "1,a\n" * 200, [], "column 'y' has one class only"),
        ("t.csv", "x,y\n" + "red,a\nblue,b\n" * 100, [], "column 'x', row 1 is 'red', not a number"),
        ("t.csv", "x,y\n" + "1,a\n2,b\n" * 40, [], "data has 80 rounds, too few to tell agents apart"),
        ("t.csv", "x,y\n" + "".join(f"1,{row / 7}\n" for row in range(200)), [], "200 classes in 200 rounds, too few"),
        ("t.csv", "x,y\n" + "1,a\n2,b\n" * 80, ["--target", "z"], "target: there is no 'z'"),
        ("t.csv", "x,y\n" + "1,a\n2,b\n" * 80, ["--agents", "linucbb"], "there is no 'linucbb'; did you mean 'linucb'"),
        ("t.csv", "x,y\n" + "1,a\n2,b\n" * 80, ["--horizon", "161"], "horizon is 161, but the table has 160 rows"),
        ("t.csv", "x,y\n" + "1,a\n2,b\n" * 80, ["--agents", "oracle"], "must be told the truth"),
    ],
)
def test_bad_data_ends_the_command_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, options: list[str], message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["choose", "--data", str(tmp_path / name), *options])
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert message in told
    assert len(told.strip().splitlines()) == 1
