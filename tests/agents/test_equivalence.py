"""Appendix `appx-equivalence`: what the window scheduler and the restart mechanism contain, and what they do not.

One order of adjacent equal windows is periodic restart. A true sliding window is another thing: it drops its oldest
round in every round, where adjacent windows drop all of theirs at once; the text calls them equivalent, the last test
shows that they are not.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import driftformer as df
from driftformer.agents.base import ProblemShape
from driftformer.agents.linucb import LinUCB
from driftformer.agents.rows import restart
from driftformer.agents.schedule import periodic, run
from driftformer.agents.thompson import Thompson
from driftformer.environments.linear import LinearBandit
from driftformer.randomness import Randomness

WINDOW, HORIZON = 8, 96


def scheduled_arms(environment: LinearBandit, base: LinUCB | Thompson) -> Tensor:
    """Play a base agent under WS with one order: each instance begins with an empty memory, `[B, T]`."""
    randomness = Randomness(0, dtype=torch.float64)
    shape = ProblemShape(64, HORIZON, environment.arms, environment.dim, torch.device("cpu"), torch.float64)
    fresh = base.init(ProblemShape(1, HORIZON, environment.arms, environment.dim, shape.device, shape.dtype))
    schedule = run(periodic(WINDOW), HORIZON, Randomness(1).stream("coins"))
    state, world, arms = base.init(shape), environment.reset(randomness), []
    for t in range(HORIZON):
        state = restart(state, schedule[t].started[:, 0], fresh)
        arm, info = base.act(state, world.observation, randomness.stream("agent"))
        reward, _, following = environment.step(world, arm, randomness)
        state = base.update(state, world.observation, arm, reward, info)  # type: ignore[arg-type]
        arms.append(arm)
        world = following
    return torch.stack(arms, dim=1)


def arms_of(environment: LinearBandit, spec: str) -> Tensor:
    seen = df.rollout(environment, spec, dtype=torch.float64, trajectories=True).trajectories
    assert seen is not None
    return seen.arms.long()


@pytest.mark.parametrize("base", [LinUCB(), Thompson()])
@pytest.mark.parametrize("mode", ["fixed", "resampled"])
def test_adjacent_equal_windows_are_periodic_restart_round_for_round(base: LinUCB | Thompson, mode: str) -> None:
    environment = df.make_env("high", horizon=HORIZON, dim=6, arms=5, arm_mode=mode)
    assert torch.equal(
        scheduled_arms(environment, base), arms_of(environment, f"restart@base={base.name},every={WINDOW}")
    )


def test_restarts_by_a_test_are_the_same_restart_mechanism() -> None:
    """An alarm leaves nothing: after it, the agent acts like one that begins in that round."""
    environment = df.make_env("jumps", horizon=200, dim=3, arms=3, noise=0.2, prior="normal", times=(100,))
    seen = df.rollout(environment, "detection-linucb@noise=0.2", dtype=torch.float64, trajectories=True).trajectories
    assert seen is not None
    assert seen.auxiliary_values is not None
    first = (
        environment.reset(Randomness(0, dtype=torch.float64)).observation.action_set.norm(dim=-1).amax(dim=1)
    )  # α·‖x‖, α=1
    checked = 0
    for b in range(64):
        for t in seen.events["restarted"][b].nonzero().flatten().tolist():
            assert seen.auxiliary_values[b, t].item() == pytest.approx(first[b].item())
            checked += 1
    assert checked > 30


def test_a_sliding_window_is_not_a_schedule_of_adjacent_windows() -> None:
    """The counterexample to the text: the same window length and problems, yet other arms in most of the rounds."""
    environment = df.make_env("high", horizon=HORIZON)
    sliding = arms_of(environment, f"sliding-window-linucb@window={WINDOW}")
    adjacent = arms_of(environment, f"restart-linucb@every={WINDOW}")
    agreement = (sliding == adjacent).double()
    assert agreement[:, :WINDOW].min() == 1.0  # until the first window is full they are the same
    assert agreement[:, WINDOW:].mean() < 0.5
