"""All agents and all worlds on one board, from summaries alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import driftformer as df
from driftformer.cli import main
from driftformer.errors import InputError
from driftformer.evaluation.leaderboard import (
    Leaderboard,
    World,
    evidence,
    leaderboard,
    read_worlds,
    verdict,
)
from driftformer.storage.files import read_json

AGENTS = ["random", "linucb", "oracle"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two worlds; thompson plays in the first one only, in a folder of its own."""
    out = tmp_path_factory.mktemp("runs")
    df.evaluate(df.make_env("high", horizon=30), AGENTS, runs=64, out=out / "high")
    df.evaluate(df.make_env("high", horizon=30), ["random", "thompson"], runs=64, out=out / "later")
    df.evaluate(df.make_env("jumps", horizon=40, changes=2), AGENTS, runs=8, out=out / "deep" / "jumps")
    return out


@pytest.fixture(scope="module")
def board(folder: Path) -> Leaderboard:
    return leaderboard(read_worlds([folder]))


def test_agents_stand_in_the_order_of_their_interquartile_means(board: Leaderboard) -> None:
    overall = [one.overall.mean for one in board.standings if one.overall]
    assert overall == sorted(overall, reverse=True)
    assert [one.agent for one in board.standings if one.overall] == ["oracle", "linucb"]
    assert board.first is not None
    assert board.first.agent == "linucb", "an oracle is on the board, but cannot lead it"


def test_scores_are_those_of_the_summaries(board: Leaderboard, folder: Path) -> None:
    (linucb,) = (one for one in board.standings if one.agent == "linucb")
    for title, path in (("high", folder / "high"), ("deep/jumps", folder / "deep" / "jumps")):
        rows = df.load_result(path).summary.agents
        expected = 100 * (1 - rows["linucb"].regret_mean / rows["random"].regret_mean)
        assert linucb.means[title] == pytest.approx(expected)


def test_evaluations_of_one_world_are_joined_and_who_missed_a_world_has_no_place(board: Leaderboard) -> None:
    assert [world.title for world in board.worlds] == ["deep/jumps", "high"]
    assert set(board.worlds[1].regrets) == {*AGENTS, "thompson"}
    (thompson,) = (one for one in board.standings if one.agent == "thompson")
    assert thompson.overall is None
    assert list(thompson.means) == ["high"]
    assert board.standings[-1] is thompson
    assert "thompson" not in board.profiles


def test_the_scale_can_end_at_an_agent(folder: Path) -> None:
    against = leaderboard(read_worlds([folder / "high"]), against="oracle")
    (oracle,) = (one for one in against.standings if one.agent == "oracle")
    assert oracle.means["high"] == pytest.approx(100)
    with pytest.raises(InputError, match="world 'later' has no results of oracle, which is one end of the scale"):
        leaderboard(read_worlds([folder / "later"]), against="oracle")


def world(title: str = "w", **regrets: list[float]) -> World:
    (runs,) = {len(one) for one in regrets.values()}
    return World(title, title, runs, 0, {name: np.array(one) for name, one in regrets.items()}, frozenset())


def test_the_verdict_says_when_a_lead_may_be_chance() -> None:
    clear = leaderboard([world(random=[9.0] * 20, good=list(np.arange(20) / 20), bad=[5.0] * 20)])
    assert verdict(clear) == "`good` leads in this world with a score of 94.7, 50.3 above the next, `bad`."
    assert "with probability 100% [100%, 100%]" in evidence(clear)
    noise = np.random.default_rng(0)
    level = leaderboard(
        [world(random=[9.0] * 20, one=noise.uniform(size=20).tolist(), two=noise.uniform(size=20).tolist())]
    )
    assert verdict(level).endswith("; that may be chance.")


@pytest.mark.parametrize(
    ("worlds", "message"),
    [
        ([], "there is no world"),
        ([world(random=[1.0], x=[1.0]), world("v", x=[1.0])], "world 'v' has no results of random"),
        ([world(random=[1.0])], "only random plays here"),
        ([world(random=[0.0], x=[0.0])], "world 'w' has no scale: chance loses no more there than the best"),
    ],
)
def test_what_has_no_scale_is_refused(worlds: list[World], message: str) -> None:
    with pytest.raises(InputError, match=message):
        leaderboard(worlds)


def test_the_same_world_of_two_seeds_or_sizes_is_refused_in_a_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    df.evaluate(df.make_env("high", horizon=30), AGENTS, runs=64, seed=1, out=tmp_path / "seeded")
    df.evaluate(df.make_env("high", horizon=30), AGENTS, runs=65, out=tmp_path / "larger")
    with pytest.raises(InputError, match="are the same world with seed 0 and 1; name one of them"):
        read_worlds([folder / "high", tmp_path / "seeded"])
    with pytest.raises(InputError, match="are the same world with runs 64 and 65"):
        read_worlds([folder / "high", tmp_path / "larger"])
    with pytest.raises(InputError, match="folders is empty; name at least one"):
        read_worlds([])
    for wrong, message in ((tmp_path / "none", "which is not there"), (tmp_path / "seeded" / "chunks", "no finished")):
        with pytest.raises(SystemExit):
            main(["leaderboard", str(wrong)])
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert message in line


def test_the_command_prints_a_table_that_fits_and_writes_a_picture(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    main(["leaderboard", str(folder), "--out", str(tmp_path / "board")])
    printed = capsys.readouterr().out
    for name in ("linucb ", "oracle * ", "thompson "):
        assert any(line.startswith(f" {name}") for line in printed.splitlines())
    assert "linucb leads over 2 worlds with a score of" in printed
    stored = read_json(tmp_path / "board" / "leaderboard.json")
    assert [one["agent"] for one in stored["standings"]] == ["oracle", "linucb", "thompson"]
    assert (tmp_path / "board" / "leaderboard.png").exists()
    picture = (tmp_path / "board" / "leaderboard.svg").read_text()
    assert "performance profiles" in picture
    main(["leaderboard", str(folder), "--out", str(tmp_path / "again")])
    assert (tmp_path / "again" / "leaderboard.svg").read_text() == picture
