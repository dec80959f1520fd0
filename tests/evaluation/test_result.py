"""Results in hands: short in a REPL, a table and a figure in a notebook, tidy data for whoever computes on."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from IPython.core.formatters import DisplayFormatter
from matplotlib.figure import Figure

import driftformer as df
from driftformer.errors import InputError
from driftformer.simulation.numbers import number

AGENTS = ["random", "linucb", "thompson", "greedy", "optimal"]


@pytest.fixture(scope="module")
def result() -> df.Result:
    return df.evaluate(df.make_env("high", horizon=20), AGENTS, runs=64)


def test_what_a_repl_prints_fits_a_few_lines(result: df.Result) -> None:
    for shown in (result, result.summary, result.summary.agents):
        assert len(repr(shown)) < 400
    assert "64 runs, seed 0" in repr(result)
    assert f"optimal {number(0)}, " in repr(result)
    assert repr(result).endswith("and 1 more)")


def test_a_notebook_shows_a_table_of_all_agents_and_the_figure(result: df.Result) -> None:
    data, _ = DisplayFormatter().format(result)
    page = data["text/html"]
    assert page.count("<tr>") == 1 + len(AGENTS)
    for name in AGENTS:
        assert f"<code>{name}</code>" in page
        assert number(result.summary.agents[name].regret_mean) in page
    picture, _ = DisplayFormatter().format(result.plot())
    assert picture["image/png"].startswith(b"\x89PNG")


def test_names_from_strangers_are_text_in_a_notebook() -> None:
    odd = df.evaluate(df.make_env("high", horizon=5), {"<script>x</script>": "random"}, runs=2)
    assert "<script>" not in odd._repr_html_()


def test_a_figure_is_given_back_and_written_only_where_a_path_is_given(result: df.Result, tmp_path: Path) -> None:
    figure = result.plot(kind="suboptimality")
    assert isinstance(figure, Figure)
    assert figure.axes[0].get_ylabel() == "suboptimality"
    assert isinstance(result.plot(tmp_path / "regret.pdf"), Figure)
    assert (tmp_path / "regret.pdf").read_bytes().startswith(b"%PDF")
    assert [path.name for path in tmp_path.iterdir()] == ["regret.pdf"]


def test_a_data_frame_holds_every_problem_every_round_or_every_agent(result: df.Result) -> None:
    problems = result.to_dataframe()
    assert isinstance(problems, pd.DataFrame)
    assert list(problems) == ["world", "seed", "agent", "privileged", "problem", "regret"]
    assert len(problems) == len(AGENTS) * 64
    assert np.array_equal(problems[problems.agent == "linucb"].regret, result.finals["linucb"])
    assert problems.groupby("agent").problem.max().unique().tolist() == [64]
    rounds = result.to_dataframe("rounds")
    assert len(rounds) == len(AGENTS) * 20
    last = rounds[(rounds.agent == "thompson") & (rounds["round"] == 20)].iloc[0]
    assert last.regret == result.summary.agents["thompson"].regret_mean
    assert last.suboptimality_stderr == result.summary.agents["thompson"].suboptimality_curve_stderr[-1]
    agents = result.to_dataframe("agents").set_index("agent")
    assert agents.regret.to_dict() == {name: row.regret_mean for name, row in result.summary.agents.items()}
    assert agents.privileged.to_dict() == {name: name == "optimal" for name in AGENTS}


def test_polars_and_parquet_hold_the_same(result: df.Result, tmp_path: Path) -> None:
    frame = result.to_dataframe("rounds", library="polars")
    assert isinstance(frame, pl.DataFrame)
    assert frame.to_dict(as_series=False) == result.to_dataframe("rounds").to_dict("list")
    result.to_parquet(tmp_path / "rounds.parquet", "rounds")
    assert pq.read_table(tmp_path / "rounds.parquet").to_pydict() == frame.to_dict(as_series=False)


def test_a_single_problem_has_a_frame_too() -> None:
    frame = df.evaluate(df.make_env("high", horizon=3), ["random"], runs=1).to_dataframe("agents")
    assert frame.regret_stderr.isna().all()


def test_without_either_library_the_extra_is_named(result: df.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = {"pandas", "polars"}

    def without(name: str, *others: Any) -> Any:
        if name in absent:
            raise ImportError(name)
        return real(name, *others)

    import importlib

    real = importlib.import_module
    monkeypatch.setattr("driftformer.evaluation.frames.importlib.import_module", without)
    with pytest.raises(
        InputError, match=r"needs pandas or polars, which is not installed; pip install 'driftformer\[data\]'"
    ):
        result.to_dataframe()
    absent.remove("polars")
    assert isinstance(result.to_dataframe(), pl.DataFrame)
    with pytest.raises(InputError, match="to_dataframe needs pandas, which is not installed"):
        result.to_dataframe(library="pandas")


def test_without_pyarrow_the_extra_is_named(result: df.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *others: Any, **more: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *others, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match="to_parquet needs pyarrow, which is not installed"):
        result.to_parquet(tmp_path / "x.parquet")


def test_two_agents_are_compared_on_the_same_problems(result: df.Result) -> None:
    found = result.compare("linucb", "random")
    apart = result.finals["linucb"] - result.finals["random"]
    assert found.difference.mean == pytest.approx(apart.mean())
    assert found.difference.low < apart.mean() < found.difference.high
    assert found.win_rate.mean == np.mean(apart < 0)
    assert found.win_rate.low <= found.win_rate.mean <= found.win_rate.high
    assert (found.ahead == "linucb") == (found.difference.high < 0)
    back = result.compare("random", "linucb")
    assert back.difference.mean == pytest.approx(-found.difference.mean)
    assert back.win_rate.mean == pytest.approx(1 - found.win_rate.mean)
    assert back.ahead == found.ahead
    assert "of 64 problems" in repr(found)


def test_agents_that_are_always_equal_are_level_and_win_half() -> None:
    twice = df.evaluate(df.make_env("high", horizon=5), {"one": "greedy", "two": "greedy@ridge=1.0000001"}, runs=8)
    found = twice.compare("one", "two")
    assert found.ahead is None
    assert found.win_rate.mean == found.win_rate.low == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda result: result.compare("linucb", "linucbb"), "agent: there is no 'linucbb'; did you mean 'linucb'"),
        (lambda result: result.compare("linucb", "linucb"), "rival: there is no 'linucb'"),
        (lambda result: result.to_dataframe("problem"), "of: there is no 'problem'; did you mean 'problems'"),
        (lambda result: result.to_dataframe(library="arrow"), "library: there is no 'arrow'"),
        (lambda result: result.plot(kind="rewards"), "kind: there is no 'rewards'"),
    ],
)
def test_what_is_not_there_is_named(result: df.Result, call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(result)
