"""The first rounds of a million: what is known does not drift, memory stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from reliability.long_runs import AGENTS, BOUND, faults, play

from driftformer.agents.base import ProblemShape
from driftformer.agents.linucb import LONG
from driftformer.agents.registry import make_agent
from driftformer.errors import InputError
from driftformer.problem import Observation
from driftformer.randomness import Randomness
from driftformer.simulation.results import FORMAT, LONG_FORMAT, ResultsFolder


@pytest.mark.parametrize("agent", AGENTS)
def test_over_many_rounds_nothing_drifts_and_nothing_grows(agent: str) -> None:
    """Fixed arms, the hard case: most directions are never played."""
    found = play(agent, 20_000 if agent == "linucb" else 6_000, problems=2, readings=3)
    assert not faults(found)


def test_in_float32_the_same_rounds_would_drift_past_the_bound() -> None:
    """That is why problems of more than 100,000 rounds are learned in float64."""
    assert play("linucb", 10_000, horizon=LONG, readings=1)[-1].drift > BOUND


@pytest.mark.parametrize("name", ["linucb", "thompson", "master-linucb", "master-thompson"])
def test_only_long_problems_are_learned_in_float64(name: str) -> None:
    agent = make_agent(name)
    for horizon, kind in ((LONG, torch.float32), (LONG + 1, torch.float64)):
        state = agent.init(ProblemShape(2, horizon, 3, 4, torch.device("cpu"), torch.float32))
        state = state.bank if name.startswith("master") else state
        assert state.theta.dtype == kind
    offered, rng = torch.ones(2, 3, 4), Randomness(0, size=2).stream("agent")
    state = agent.init(ProblemShape(2, LONG + 1, 3, 4, torch.device("cpu"), torch.float32))
    for _ in range(3):
        arm, info = agent.act(state, Observation(offered), rng)
        state = agent.update(state, Observation(offered), arm, torch.ones(2), info)
    assert bool(info.auxiliary_value.isfinite().all())


def test_detection_refuses_horizons_whose_rewards_it_could_not_keep() -> None:
    shape = ProblemShape(64, 10**7, 10, 4, torch.device("cpu"), torch.float32)
    with pytest.raises(InputError, match=r"horizon is 10000000 .* over 8 GiB; give fewer rounds or watch=forced"):
        make_agent("detection-linucb").init(shape)


def test_stored_results_of_long_problems_are_told_apart_from_those_learned_in_float32(tmp_path: Path) -> None:
    def folder(horizon: int) -> ResultsFolder:
        return ResultsFolder(tmp_path, {"environment": {}}, horizon)

    assert (folder(LONG).config["format"], folder(LONG + 1).config["format"]) == (FORMAT, LONG_FORMAT)
