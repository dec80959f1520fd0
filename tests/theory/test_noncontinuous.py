"""MASTER by weights against the MASTER agent, round by round, with the same random numbers."""

from __future__ import annotations

import pytest

from driftformer.agents.linucb import LinUCB
from driftformer.agents.master import Master
from driftformer.theory.noncontinuous import play_by_weights, play_with_agent, small_problem


@pytest.mark.parametrize("test_scale", [1.0, 0.01, 0.001])
@pytest.mark.parametrize("seed", range(4))
def test_the_network_does_what_master_does(seed: int, test_scale: float) -> None:
    horizon = 40
    master, problem = Master(base=LinUCB(), test_scale=test_scale), small_problem(horizon, seed)
    by_weights = play_by_weights(master, problem)
    by_agent = play_with_agent(master, problem, [one.coins for one in by_weights])
    assert [t for t in range(horizon) if by_weights[t] != by_agent[t]] == []
    restarts = sum(one.failed for one in by_weights)
    assert restarts > 0 if test_scale == 0.001 else restarts < horizon / 2
