"""Evaluations: numbers that depend on nothing but the setting, and that agree with an independent pilot."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import driftformer as df
from driftformer.errors import InputError
from driftformer.evaluation import evaluate as chunking
from driftformer.evaluation.result import render

ENV = {"horizon": 25, "dim": 5, "arms": 4}


@settings(max_examples=25, deadline=None)
@given(
    others=st.sets(st.sampled_from(["random", "linucb@alpha=2", "thompson", "optimal", "oracle"])),
    runs=st.integers(1, 200),
    stack=st.integers(1, 4),
    seed=st.integers(0, 10),
)
def test_results_do_not_depend_on_the_company(others: set[str], runs: int, stack: int, seed: int) -> None:
    """Not on which other agents run, how many runs there are, nor how chunks are stacked."""
    environment = df.make_env("high", **ENV)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunking, "STACK", stack)
        crowd = df.evaluate(environment, ["linucb", *sorted(others)], runs=runs, seed=seed)
    alone = df.evaluate(environment, ["linucb"], runs=200, seed=seed)
    assert np.array_equal(crowd.finals["linucb"], alone.finals["linucb"][:runs])


@pytest.mark.parametrize("workers", [2, 3])
def test_results_do_not_depend_on_the_number_of_workers(workers: int) -> None:
    environment = df.make_env("jumps", **ENV, arm_mode="resampled")
    agents = ["random", "linucb", "thompson", "oracle"]
    here = df.evaluate(environment, agents, runs=200, seed=1)
    there = df.evaluate(environment, agents, runs=200, seed=1, workers=workers)
    assert here.summary == there.summary


def test_agents_meet_the_same_problems_and_noise() -> None:
    """Wherever two agents choose the same arm they get the same reward and regret, though they chose apart before."""
    environment = df.make_env("high", horizon=60, dim=3, arms=3, arm_mode="resampled")
    one, two = (df.rollout(environment, name, trajectories=True).trajectories for name in ("random", "thompson"))
    assert one is not None
    assert two is not None
    same = one.arms == two.arms
    assert 0.2 < same.float().mean() < 0.6
    assert torch.equal(one.rewards[same], two.rewards[same])
    assert torch.equal(one.suboptimality[same], two.suboptimality[same])
    assert not bool((one.rewards[~same] == two.rewards[~same]).any())


PILOT = {
    # regret and standard error of an independent pilot with 200 problems of its own
    ("high", "fixed"): {"random": (379, 7), "linucb": (273, 6), "thompson": (331, 7), "oracle": (13, 1.3)},
    ("high", "resampled"): {"random": (370, 3), "linucb": (366, 2), "thompson": (369, 3), "oracle": (26, 0.5)},
    ("low", "fixed"): {"random": (253, 6), "linucb": (90, 6), "thompson": (117, 6), "oracle": (6.2, 1.0)},
    ("low", "resampled"): {"random": (240, 1), "linucb": (152, 2), "thompson": (163, 3), "oracle": (6.8, 0.2)},
}


@pytest.mark.parametrize(("env", "mode"), PILOT)
def test_regret_agrees_with_an_independent_pilot(env: str, mode: str) -> None:
    """Within four standard errors of the difference of two independent samples of 200 problems."""
    pilot = PILOT[env, mode]
    result = df.evaluate(df.make_env(env, arm_mode=mode), list(pilot), runs=200, seed=0)
    for agent, (regret, stderr) in pilot.items():
        row = result.summary.agents[agent]
        assert abs(row.regret_mean - regret) < 4 * math.hypot(row.regret_stderr, stderr)


def test_the_table_ranks_agents_and_marks_the_privileged() -> None:
    text = df.evaluate(df.make_env("high"), ["random", "linucb", "oracle"], runs=64).table()
    lines = [
        line.split()
        for line in text.splitlines()
        if line.split()[:1] and line.split()[0] in ("oracle", "linucb", "random")
    ]
    assert [line[0] for line in lines] == ["oracle", "linucb", "random"]
    assert lines[0][1] == "*"
    assert "difference from linucb on the same problems" in " ".join(text.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runs": 0}, "runs is 0; give a whole number of at least 1"),
        ({"seed": -1}, "seed is -1; give a whole number of at least 0"),
        ({"workers": 0}, "workers is 0; give a whole number of at least 1"),
        ({"device": "gpu"}, "device is 'gpu'; give cpu or cuda"),
        ({"device": "meta"}, "device is 'meta'; give cpu or cuda"),
        ({"agents": []}, "agents is []; give a list with at least one"),
        ({"agents": "linucb"}, "agents is 'linucb'; give a list"),
        ({"agents": df.make_agent("linucb")}, "give a list"),
        ({"agents": [object()]}, "cannot be played; give a name, or an object of a frozen dataclass"),
        ({"agents": [None]}, "cannot be played"),
        ({"device": None}, "device is None; give cpu or cuda"),
        ({"agents": ["linucb", "linucb@alpha=1"]}, "agents: 'linucb@alpha=1' is given twice"),
        ({"trajectories": True}, "trajectories is set without out"),
    ],
)
def test_bad_input_is_refused_at_the_door(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        df.evaluate(df.make_env("high", **ENV), **{"agents": ["linucb"], **options})
    assert message in str(caught.value)


def test_numbers_from_numpy_are_numbers() -> None:
    environment = df.make_env("high", horizon=np.int64(5), noise=np.float32(0.5), b=np.float64(0.1))
    assert environment.config() == df.make_env("high", horizon=5, noise=0.5, b=0.1).config()


def test_a_single_run_claims_no_certainty() -> None:
    result = df.evaluate("high", ["random", "linucb"], runs=1)
    assert result.summary.agents["linucb"].regret_stderr is None
    assert "±" not in result.table().split("standard error")[0].rsplit("±", 1)[0]
    assert "[" not in result.table()


def test_the_table_fits_eighty_columns_and_keeps_names_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    agents = ["discounted-linucb@gamma=0.9,alpha=0.25", "discounted-linucb@gamma=0.9,alpha=0.75", "linucb"]
    page = io.StringIO()
    result = df.evaluate(df.make_env("high", horizon=60), agents, runs=64)
    Console(file=page, width=80).print(render(result.summary, result.timing))
    assert "…" not in page.getvalue()
    assert max(map(len, page.getvalue().splitlines())) <= 80


def test_a_lambda_cannot_be_sent_to_workers_and_the_error_says_what_to_do() -> None:
    environment = df.make_env("stationary", drift=lambda t, w: w, **ENV)
    with pytest.raises(InputError, match="use workers=1, or define drift functions and agents at the top level"):
        df.evaluate(environment, ["random"], runs=200, workers=2)
