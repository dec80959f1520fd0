"""Detection-augmented learning against a plain loop, and what it is for."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import driftformer as df
from driftformer.agents.detection import Detection
from driftformer.agents.linucb import LinUCB
from driftformer.errors import InputError
from driftformer.randomness import Randomness
from tests.plain import PlainRidge, linucb_bounds


def alarm(rewards: list[float], detector: str, noise: float, horizon: int) -> bool:
    """The test of one arm, straight from its formula."""
    n = len(rewards)
    if n < 2:
        return False
    statistics = [
        s * (n - s) / (2 * noise**2 * n) * (np.mean(rewards[:s]) - np.mean(rewards[s:])) ** 2 for s in range(1, n)
    ]
    threshold = math.log(4 * n**1.5 * horizon)
    if detector == "glr":
        return max(statistics) >= threshold
    return math.log(sum(math.exp(value) for value in statistics)) >= threshold + math.log(n)


@pytest.mark.parametrize("detector", ["glr", "gsr"])
@pytest.mark.parametrize(("watch", "exploration"), [("forced", 1.0), ("all", 0.2)])
def test_it_is_the_plain_procedure_round_by_round(detector: str, watch: str, exploration: float) -> None:
    horizon, arms, noise = 400, 3, 0.3
    environment = df.make_env("jumps", horizon=horizon, dim=3, arms=arms, noise=noise, prior="normal", changes=4)
    agent = Detection(LinUCB(), detector, watch, exploration, noise)
    played = df.rollout(environment, agent, dtype=torch.float64, trajectories=True)
    seen = played.trajectories
    assert seen is not None
    action_set = environment.reset(Randomness(0, dtype=torch.float64)).observation.action_set.numpy()
    alarms = 0
    for b in range(20):
        k, age, before = 1, 0, False
        model, history = PlainRidge(3, 1.0), [[] for _ in range(arms)]
        for t in range(horizon):
            share = min(1.0, exploration * math.sqrt(k * arms * math.log(horizon) / horizon))
            phase = age % math.ceil(arms / share)
            own = int(linucb_bounds(model, action_set[b], 1.0).argmax())
            arm = phase if phase < arms else own
            assert int(seen.arms[b, t]) == arm
            reward = float(seen.rewards[b, t])
            model.learn(action_set[b, arm], reward)
            age += 1
            fired = False
            if watch == "all" or phase < arms:
                history[arm].append(reward)
                fired = alarm(history[arm], detector, noise, horizon)
            assert bool(seen.events["restarted"][b, t]) == before  # the first round after an alarm
            before = fired
            if fired:
                k, age, alarms = k + 1, 0, alarms + 1
                model, history = PlainRidge(3, 1.0), [[] for _ in range(arms)]
    assert alarms > 20


def test_in_a_world_that_stands_still_alarms_are_rare() -> None:
    """64 problems, 2,000 rounds, ten arms: a threshold of ln(4·n^1.5·T) leaves a few false alarms in all, if any."""
    environment = df.make_env("stationary", horizon=2000, dim=4, arms=10)
    played = df.rollout(environment, "detection-linucb")
    assert played.regrets[0].diagnostics["restarts"].sum() <= 3


def test_on_jumps_it_beats_linucb_and_the_change_point_oracle_beats_both() -> None:
    """T=2000, four changes, as in docs/master.md but with 128 problems; differences are paired."""
    environment = df.make_env("jumps", horizon=2000, changes=4)
    oracle, rivals = (
        "change-point-oracle@base=linucb+alpha=2",
        ["weighted-linucb@gamma=0.99", "discounted-linucb@gamma=0.99"],
    )
    agents = ["linucb", "detection-linucb", "sliding-window-linucb@window=200", *rivals, oracle]
    result = df.evaluate(environment, agents, runs=128)
    difference = result.summary.difference
    assert difference("linucb", "detection-linucb").low > 0
    assert difference("linucb", "sliding-window-linucb@window=200").low > 0
    for agent in agents[:-1]:
        assert difference(agent, oracle).low > 0


def test_bad_options_are_refused() -> None:
    with pytest.raises(InputError, match=r"noise is 0\.0; give a finite number above 0"):
        Detection(noise=0.0)
    with pytest.raises(InputError, match="detector: there is no 'glrt'; did you mean 'glr'"):
        df.make_agent("detection-linucb@detector=glrt")
