"""Logs as people have them: what is read, what is refused, and what comes out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from pyarrow import csv, parquet

import driftformer as df
from driftformer.agents.linucb import Ridge
from driftformer.agents.registry import AGENTS, label, make_agent
from driftformer.cli import main
from driftformer.errors import InputError
from driftformer.logs.read import Log, read_log
from driftformer.logs.replay import beside, in_replay
from driftformer.problem import Traits, why_not

T, ARMS = 600, 3
WORTH = (0.2, 0.5, 0.8)


def columns(kind: str = "arms", rounds: int = T, *, uniform: bool = True) -> dict[str, Any]:
    """A log in which arm k pays 1 with chance WORTH[k], whatever its features are."""
    rng = np.random.default_rng(0)
    chances = np.full(ARMS, 1 / ARMS) if uniform else np.array([0.5, 0.3, 0.2])
    arm = rng.choice(ARMS, rounds, p=chances)
    table = {
        "round": np.arange(rounds) * 10,
        "arm": arm,
        "reward": (rng.random(rounds) < np.array(WORTH)[arm]).astype(float),
        "propensity": chances[arm],
    }
    if kind == "features":
        table["features"] = np.tile(np.eye(ARMS), (rounds, 1, 1)).tolist()
    if kind == "context":
        table["context"] = rng.normal(size=(rounds, 2)).tolist()
    return table


def changed(row: int, kind: str = "arms", **cells: Any) -> dict[str, Any]:
    """A log with other cells in one row."""
    table = {name: list(column) for name, column in columns(kind, 20).items()}
    for name, cell in cells.items():
        table.setdefault(name, [[0, 1, 2]] * 20)[row] = cell
    return table


def without(name: str) -> dict[str, Any]:
    return {other: column for other, column in columns(rounds=20).items() if other != name}


@pytest.mark.parametrize("kind", ["arms", "features", "context"])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_files_and_columns_in_memory_give_the_same_numbers(kind: str, ending: str, tmp_path: Path) -> None:
    table, path = columns(kind, 150), tmp_path / f"log.{ending}"
    if ending == "parquet":
        parquet.write_table(pa.table(table), path)
    else:
        csv.write_csv(
            pa.table({n: list(map(json.dumps, c)) if isinstance(c, list) else c for n, c in table.items()}), path
        )
    found, same = (df.replay(log, ["linucb"], progress=False).agents for log in (path, table))
    assert found == same


def test_the_best_arm_is_found_and_valued_by_every_estimate() -> None:
    """After a few hundred rounds, LinUCB plays the arm that is worth 0.8 nearly always."""
    found = df.replay(columns(rounds=2000), ["linucb", "random"], progress=False)
    assert found.uniform
    for estimate in found.agents["linucb"].values():
        assert estimate.interval is not None
        assert 0.65 < estimate.interval[0] < 0.8
        assert 0.75 < estimate.interval[1] < 0.95
    random = found.agents["random"]["ips"]
    assert random.value == pytest.approx(found.itself.value), "uniform choices are worth what the uniform log earned"
    assert random.samples == pytest.approx(2000)


def test_a_log_is_judged_as_a_slow_program_would() -> None:
    """The uniform policy's weights are known without asking it, and a ridge regression is solved anew in each round."""
    table = columns("context", 250, uniform=False)
    arm, reward, seen = table["arm"], table["reward"], np.array(table["context"])
    weight = 1 / ARMS / table["propensity"]
    rows = []
    for context in seen:
        blocks = np.kron(np.eye(ARMS), np.append(context, 1.0))  # a model for each arm …
        rows.append(np.hstack([blocks, np.ones((ARMS, 1))]))  # … and what they have in common
    terms = []
    for t, offered in enumerate(rows):
        past = np.array([rows[s][arm[s]] for s in range(t)]).reshape(t, offered.shape[1])
        expected = offered @ np.linalg.solve(np.eye(offered.shape[1]) + past.T @ past, past.T @ reward[:t])
        terms.append(expected.mean() + weight[t] * (reward[t] - expected[arm[t]]))
    found = df.replay(table, ["random"], progress=False).agents["random"]
    assert found["ips"].value == pytest.approx((weight * reward).mean())
    assert found["snips"].value == pytest.approx((weight @ reward) / weight.sum())
    assert found["dr"].value == pytest.approx(np.mean(terms))
    assert found["dr"].stderr == pytest.approx(np.std(terms, ddof=1) / 250**0.5)


def test_an_agent_beside_the_log_learns_from_every_round_and_in_replay_from_its_matches() -> None:
    log = read_log(columns("features"))
    assert learned(log, beside) == T
    matches = sum(int(each) for each in in_replay(make_agent("linucb"), log.shape, log.rounds(), 0))
    assert learned(log, in_replay) == matches
    assert T / 5 < matches < T / 2


def learned(log: Log, way: Callable[..., Any]) -> float:
    """How many observations a ridge regression took in: the trace of A less that of the ridge, as ‖x‖ = 1."""
    agent = make_agent("linucb")
    states: list[Ridge] = []

    class Kept:
        name, learns = "kept", True

        def init(self, shape: Any) -> Any:
            return agent.init(shape)

        def act(self, state: Any, observation: Any, rng: Any) -> Any:
            return agent.act(state, observation, rng)

        def update(self, *seen: Any) -> Any:
            states.append(agent.update(*seen))
            return states[-1]

    list(way(Kept(), log.shape, log.rounds(), 0))
    return round(float(torch.linalg.inv(states[-1].inverse[0].double()).trace()) - ARMS)


def test_probabilities_that_must_be_counted_give_what_exact_ones_give() -> None:
    """ε-greedy states its probabilities; without that, a hundred draws in each round stand for them."""

    class Mute:
        name, learns = "mute", True

        def __init__(self) -> None:
            agent = make_agent("epsilon-greedy", epsilon=0.5)
            self.init, self.act, self.update = agent.init, agent.act, agent.update

    log = read_log(columns())
    exact = torch.cat(list(beside(make_agent("epsilon-greedy", epsilon=0.5), log.shape, log.rounds(), 0)))
    counted = torch.cat(list(beside(Mute(), log.shape, log.rounds(), 0)))
    assert torch.allclose(exact.sum(dim=1), torch.ones(T))
    assert (exact - counted).abs().max() < 0.25  # five standard errors of a share of a hundred draws
    assert (exact - counted).mean(dim=0).abs().max() < 0.01


def test_no_probability_goes_to_arms_that_are_not_on_offer() -> None:
    rng = np.random.default_rng(1)
    offered = [sorted(rng.choice(ARMS, 2, replace=False).tolist()) for _ in range(150)]
    arm = [int(rng.choice(row)) for row in offered]
    log = read_log(columns(rounds=150) | {"arm": arm, "offered": offered, "propensity": np.full(150, 0.5)})
    assert log.uniform
    for name in ("random", "linucb", "thompson", "epsilon-greedy"):
        shares = torch.cat(list(beside(make_agent(name), log.shape, log.rounds(), 0))).numpy()
        assert (shares[~np.array(log.offered)] == 0).all(), name


def test_numbers_of_arms_may_vary() -> None:
    rng = np.random.default_rng(2)
    counts = rng.integers(2, 5, 400)
    features = [rng.normal(size=(count, 2)).tolist() for count in counts]
    log = {"round": range(400), "features": features, "arm": rng.integers(0, counts), "reward": rng.random(400)}
    found = df.replay(log, ["random"], uniform=True, progress=False)
    assert found.arms == 4
    assert found.agents["random"]["ips"].value == pytest.approx(found.itself.value)


def test_raw_columns_are_scaled_by_what_was_seen_so_far() -> None:
    table = columns("context", 300)
    raw = np.array(table["context"])
    table["context"] = np.stack([raw[:, 0] * 1e9 + 1e8, np.where(raw[:, 1] > 0, raw[:, 1], np.nan)], axis=1).tolist()
    log = read_log(table, scale=True)
    assert log.context is not None
    assert np.abs(log.context).max() <= 10
    assert log.context.shape == (300, 5)  # each column, whether it was missing, a constant
    table["context"][200:] = [[0.0, 0.0]] * 100
    later = read_log(table, scale=True).context
    assert later is not None
    assert (later[:200] == log.context[:200]).all(), "later rows change nothing"
    assert (later[200:] != log.context[200:]).any()


def test_clicks_whole_numbers_and_decimals_are_rewards() -> None:
    table = columns(rounds=20)
    for kind in (pa.bool_(), pa.int8(), pa.decimal128(5, 2), pa.float32()):
        other = pa.table(table | {"reward": pa.array(table["reward"]).cast(pa.int8()).cast(kind)})
        assert (read_log(other).reward == table["reward"]).all(), kind


@pytest.mark.parametrize("name", [name for name, entry in AGENTS.items() if entry.privileged])
def test_agents_that_must_be_told_the_truth_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"agent '{name}' must be told the truth, which no log has"):
        df.replay(columns(), [name], progress=False)


@pytest.mark.parametrize("name", [name for name, entry in AGENTS.items() if not entry.privileged])
def test_every_other_agent_can_be_judged_by_a_log_unless_it_is_for_mdps(name: str) -> None:
    """The registry's agents, tests of other modules aside."""
    if not str(AGENTS[name].where).partition(".")[2]:
        pytest.skip("an agent that another test registered")
    if why_not(make_agent(name), Traits(one_hot=True, same_arms=True)) is not None:
        with pytest.raises(InputError, match="it is made for MDPs and needs states and episodes; choose another"):
            df.replay(columns(rounds=400, uniform=False), [name], progress=False)
        return
    found = df.replay(columns(rounds=400, uniform=False), [name], progress=False)
    assert set(found.agents) == {label(make_agent(name))}
    for estimate in next(iter(found.agents.values())).values():
        assert (estimate.value is None) == bool(estimate.refused)
        assert estimate.value is None or -0.2 < estimate.value < 1.2


BAD: dict[str, tuple[Any, str]] = {
    "no propensities": (without("propensity"), "has no column 'propensity', .* or give uniform"),
    "no arms": (without("arm"), r"has no column 'arm' \(it has 'round, reward, propensity'\)"),
    "no rewards": (without("reward"), "has no column 'reward'"),
    "no rounds": (without("round"), "has no column 'round'"),
    "no rows": ({name: [] for name in columns()}, "has no rows"),
    "propensity 0": (
        changed(4, propensity=0.0),
        "column 'propensity', row 5 is 0; give .* above 0 and at most 1",
    ),
    "propensity above 1": (changed(4, propensity=1.5), "column 'propensity', row 5 is 1.5; give .* at most 1"),
    "propensity below 0": (
        changed(4, propensity=-0.5),
        "column 'propensity', row 5 is -0.5; give .* above 0",
    ),
    "propensity missing": (changed(4, propensity=None), "column 'propensity', row 5 has a missing value"),
    "propensity NaN": (changed(4, propensity=float("nan")), "column 'propensity', row 5 is nan; give .* above 0 and"),
    "reward NaN": (changed(2, reward=float("nan")), "column 'reward', row 3 is nan; give a finite number"),
    "reward infinite": (changed(2, reward=float("inf")), "column 'reward', row 3 is inf; give a finite number"),
    "reward missing": (changed(2, reward=None), "column 'reward', row 3 has a missing value"),
    "rewards of text": (
        columns(rounds=20) | {"reward": ["yes"] * 20},
        "column 'reward', row 1 is 'yes', of type string",
    ),
    "rewards of lists": (columns(rounds=20) | {"reward": [[1]] * 20}, r"column 'reward', row 1 is \[1\], of type list"),
    "arm not offered": (changed(7, offered=[0], arm=1), "column 'arm', row 8 is 1, which was not offered; on offer: 0"),
    "arm below 0": (changed(7, arm=-1), "column 'arm', row 8 is -1; arms are numbered from 0"),
    "arms all below 0": (columns(rounds=20) | {"arm": [-7] * 20}, "column 'arm', row 1 is -7; arms are numbered"),
    "arm of half": (changed(7, arm=0.5), "column 'arm', row 8 is 0.5; give whole numbers"),
    "arms beyond": (changed(7, arm=10**9), "has 1,000,000,001 arms, .* give 2 to 1,000 arms"),
    "one arm only": (columns(rounds=20) | {"arm": [0] * 20}, "has 1 arms"),
    "nothing offered": (changed(7, offered=[]), "column 'arm', row 8 is ., which was not offered; on offer: none"),
    "offered twice": (changed(7, offered=[0, 1, 2, 2]), "column 'offered', row 8 names an arm twice"),
    "offered below 0": (changed(7, offered=[0, 1, 2, -1]), "column 'offered', row 8 names arm -1, but there are 3"),
    "offered missing": (changed(7, offered=None), "column 'offered', row 8 has a missing value"),
    "offered no list": (columns(rounds=20) | {"offered": [3] * 20}, "has a column 'offered' of type int64; give lists"),
    "rounds out of order": (changed(5, round=5), "column 'round', row 6 is 5, which comes after 40; sort the rows"),
    "round twice": (changed(5, round=40), "column 'round', row 6 is 40, which is there twice"),
    "round of text": (columns(rounds=20) | {"round": ["a"] * 20}, "column 'round', row 1 is 'a', of type string"),
    "features of two lengths": (
        changed(3, "features", features=[[1, 0, 0], [0, 1], [0, 0, 1]]),
        "column 'features', row 4 has an arm with 2 features, but the first arm of all has 3",
    ),
    "features without arms": (changed(3, "features", features=[]), "column 'features', row 4 has no arm"),
    "features of nothing": (columns(rounds=20) | {"features": [[[]] * 3] * 20}, "row 1 has an arm without features"),
    "features flat": (
        columns(rounds=20) | {"features": [[1.0, 2.0]] * 20},
        "has a column 'features' of type double; give lists of arms",
    ),
    "features of text": (columns(rounds=20) | {"features": [[["a"]] * 3] * 20}, "column 'features', row 1 is 'a'"),
    "feature NaN": (
        changed(3, "features", features=[[1, 0, 0], [0, float("nan"), 0], [0, 0, 1]]),
        r"column 'features', row 4 is nan; .* \(scale takes raw columns",
    ),
    "feature missing": (
        changed(3, "features", features=[[1, 0, 0], [0, None, 0], [0, 0, 1]]),
        "column 'features', row 4 has a missing value",
    ),
    "feature huge": (
        changed(9, "context", context=[1e7, 0.0]),
        r"column 'context', row 10 is 1e\+07; .* \(scale takes",
    ),
    "context of two lengths": (changed(9, "context", context=[1.0]), "row 10 has 1 numbers, but row 1 has 2"),
    "context empty": (columns(rounds=20) | {"context": [[]] * 20}, "column 'context', row 1 is an empty list"),
    "features and context": (columns("features") | columns("context"), "has both 'features' of arms and a 'context'"),
    "too many dimensions": (columns(rounds=20) | {"context": [[0.0] * 2000] * 20}, "needs 6,003 dimensions for 3 arms"),
    "no table": (17, "log is no table"),
    "columns of two lengths": (columns(rounds=20) | {"arm": [0, 1]}, "log is no table"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_log_is_refused_in_a_line_that_says_where(case: str) -> None:
    log, message = BAD[case]
    with pytest.raises(InputError, match=message) as caught:
        read_log(log)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_uniform_logs_need_no_propensities_and_others_are_not_taken_for_them() -> None:
    table = columns(uniform=False)
    with pytest.raises(InputError, match=r"column 'propensity', row .* with 3 arms on offer, which is not uniform"):
        read_log(table, uniform=True)
    assert not read_log(table).uniform
    assert read_log(without("propensity"), uniform=True).uniform
    rounded = columns()
    rounded["propensity"] = np.full(T, 0.33)
    assert read_log(rounded, uniform=True).uniform
    assert df.replay(rounded, ["random"], progress=False).agents["random"]["ips"].value, "as good as 1/3"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("log.parquet", b"not a table at all", "log is log.parquet, but its content is not Parquet"),
        ("log.parquet", b"PAR1 and then nothing", "which "),
        ("log.csv", b"PAR1 and then nothing", "log is log.csv, but its content is Parquet"),
        ("log.csv", b"round;arm;reward\n1;0;0,5\n", "whose columns are separated by ';'; use commas"),
        ("log.json", b"{}", "give a .csv or .parquet file"),
        ("log.csv", b'round,arm,reward,propensity,context\n1,0,1,0.5,"[1"\n', r"row 1 is '\[1'; write lists as JSON"),
        ("log.csv", b'round,arm,reward,propensity,context\n1,0,1,0.5,"{}"\n', "row 1 is '{}'; write lists as JSON"),
        (
            "log.csv",
            b"round,arm,reward,propensity\n1,0,1,0.5\n2,zero,1,0.5\n",
            "column 'arm', row 1 is '0', of type string",
        ),
    ],
)
def test_a_file_that_is_no_log_gets_one_line(
    name: str, content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content)
    with pytest.raises(SystemExit) as caught:
        main(["replay", name])
    assert caught.value.code == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    with pytest.raises(InputError, match=message):
        read_log(name)


def test_agents_that_cannot_play_a_log_say_why() -> None:
    with pytest.raises(InputError, match=r"agent 'ucb' cannot play log table: .* arms must have no features"):
        df.replay(columns("context"), ["ucb"], progress=False)
    with pytest.raises(InputError, match="agent 'linucb' is named twice"):
        df.replay(columns(), ["linucb", "linucb@alpha=1"], progress=False)
    with pytest.raises(InputError, match="agents is 'linucb'; give a list"):
        df.replay(columns(), "linucb", progress=False)
    with pytest.raises(InputError, match="seed is -1; give a whole number"):
        df.replay(columns(), seed=-1, progress=False)


def test_the_table_shows_every_estimate_and_says_why_some_are_missing() -> None:
    page = df.replay(columns(uniform=False), ["linucb", "random"], progress=False).table()
    assert "unequal propensities" in page
    assert "no replay: arms were not drawn uniformly (row 1: 0.3 for an arm among 3 is not 1/3)" in page
    assert [page.count(f" {name} ") for name in ("replay", "ips", "snips", "dr")] == [2, 2, 2, 2]
    few = df.replay(columns(rounds=60), ["linucb"], progress=False).table()
    assert re.search(r"no replay: \d+ matches; 100 are needed, and the log has only 60 rounds", few)
    assert re.search(r"no ips, snips, dr: worth \d+ samples; 100 are needed, and the log has only 60 rounds", few)


def test_a_log_that_only_says_that_it_is_uniform_has_no_replay_of_any_agent() -> None:
    table = columns(rounds=2000, uniform=False)
    table.pop("propensity")
    found = df.replay(table, ["random", "linucb"], uniform=True, progress=False)
    assert "weights are" in found.agents["linucb"]["dr"].refused
    for estimates in found.agents.values():
        assert estimates["replay"].value is None
    assert "no replay: arms were not drawn uniformly after all" in found.table()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("features", "arms are known by their features"),
        ("context", "arms are known by their numbers, in a context"),
        ("arms", "arms are known by their numbers only: no features or context"),
    ],
)
def test_the_header_says_what_arms_are_known_by_and_what_is_ignored(kind: str, words: str) -> None:
    def said(log: dict[str, Any]) -> str:
        return " ".join(df.replay(log, ["random"], progress=False).table().split())

    table = columns(kind, 150)
    assert words in said(table)
    assert "ignored" not in said(table)
    assert f"{words}; ignored columns: 'feature', '[red]'" in said(table | {"feature": [1] * 150, "[red]": [2] * 150})


def test_the_same_seed_gives_the_same_estimates() -> None:
    one, same, other = (df.replay(columns(rounds=150), ["thompson"], seed=s, progress=False).agents for s in (0, 0, 1))
    assert one == same
    assert one != other


def test_the_page_on_logs_shows_what_really_comes_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "logs.md").read_text()
    program = page.split("```python\n")[2].split("```")[0]
    shown = page.split("answers in a few seconds:\n\n```\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    exec(program, {})
    main(["replay", "log.parquet"])
    printed = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    promised = [line.split() for line in shown.splitlines() if line.strip()]
    assert len(printed) == len(promised)
    for line, promise in zip(printed, promised, strict=True):
        assert len(line) == len(promise)
        for word, same in zip(line, promise, strict=True):
            number = same.strip("[],").replace(",", "")
            if "." in number and number.replace(".", "").isdigit():  # the last digit may depend on the machine
                assert float(word.strip("[],")) == pytest.approx(float(number), abs=0.005)
            elif not number.isdigit():
                assert word == same
