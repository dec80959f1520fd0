"""Evaluations: numbers that depend on nothing but the setting, and that agree with an independent pilot."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftformer as df
from driftformer.errors import InputError
from driftformer.simulation import chunks as chunking

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


def test_agents_meet_the_same_problems() -> None:
    """With no noise and one arm to choose from, every agent must end with the same rewards."""
    environment = df.make_env("high", horizon=20, dim=3, arms=1)
    seen = [df.rollout(environment, df.make_agent(name), trajectories=True) for name in ("random", "thompson")]
    assert seen[0].trajectories is not None
    assert seen[1].trajectories is not None
    assert seen[0].trajectories.rewards.equal(seen[1].trajectories.rewards)


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
        row = result.summary["agents"][agent]
        assert abs(row["regret_mean"] - regret) < 4 * math.hypot(row["regret_stderr"], stderr)


def test_the_table_ranks_agents_and_marks_the_privileged() -> None:
    text = df.evaluate(df.make_env("high"), ["random", "linucb", "oracle"], runs=64).table()
    lines = [
        line.split()
        for line in text.splitlines()
        if line.split()[:1] and line.split()[0] in ("oracle", "linucb", "random")
    ]
    assert [line[0] for line in lines] == ["oracle", "linucb", "random"]
    assert lines[0][1] == "*"
    assert "difference: to linucb on the same problems" in text


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
        ({"agents": ["linucb", "linucb@alpha=1"]}, "agents: 'linucb@alpha=1' stands twice"),
        ({"trajectories": True}, "trajectories is set without out"),
    ],
)
def test_bad_input_is_refused_at_the_door(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        df.evaluate(df.make_env("high", **ENV), **{"agents": ["linucb"], **options})
    assert message in str(caught.value)


def test_a_lambda_cannot_be_sent_to_workers_and_the_error_says_what_to_do() -> None:
    environment = df.make_env("stationary", drift=lambda t, w: w, **ENV)
    with pytest.raises(InputError, match="use workers=1, or define the drift function at the top level"):
        df.evaluate(environment, ["random"], runs=200, workers=2)
