"""The plain loop of `benchmarks.restarts` is MASTER over LinUCB: as the agent, on average over problems."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from benchmarks.restarts import World, horizon_of_a_failure, play
from torch import Tensor

from driftformer.agents.master import Master
from driftformer.environments.drift import as_drift
from driftformer.environments.linear import LinearBandit
from driftformer.simulation.rollout import rollout


@pytest.mark.parametrize("test_scale", [0.002, 1e9])
def test_the_plain_loop_plays_as_the_agent_does(test_scale: float) -> None:
    """256 problems each; means differ by less than four standard errors."""
    world = World(horizon=300, span=20.0, change=140)

    def values(t: int, w: Tensor) -> Tensor:
        return torch.tensor(world.values(t), dtype=w.dtype).expand_as(w)

    bandit = LinearBandit(horizon=300, dim=2, arms=2, noise=0.0, arm_mode="one-hot", drift=as_drift(values))
    played = rollout(bandit, world.master(test_scale), chunks=range(4)).regrets
    regret = np.concatenate([one.regret for one in played]) / world.span
    restarts = np.concatenate([one.diagnostics["restarts"] for one in played])
    runs = [play(world, test_scale, seed) for seed in range(256)]
    for mine, other in (
        ([run.regret for run in runs], regret),
        ([len(run.restarts) for run in runs], restarts),
    ):
        error = np.sqrt((np.var(mine) + np.var(other)) / 256)
        assert abs(np.mean(mine) - np.mean(other)) <= 4 * error
    assert restarts.mean() > 0.5 if test_scale < 1 else restarts.max() == 0


def test_the_horizon_from_which_a_test_can_fail_is_the_first_power_of_two() -> None:
    horizon, master = horizon_of_a_failure(0.5), Master(c2=2.0)
    assert master.smallest_margins(horizon)[0] <= 0.5 < master.smallest_margins(horizon // 2)[0]
