"""LinUCB against a plain loop that refits from its history, choice by choice."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from driftformer.agents.linucb import LinUCB
from driftformer.environments.registry import make_env
from driftformer.errors import InputError
from driftformer.randomness import Randomness
from driftformer.simulation.rollout import rollout
from tests.plain import PlainRidge, linucb_bounds


@pytest.mark.parametrize(("env", "mode"), [("high", "fixed"), ("low", "resampled"), ("jumps", "fixed")])
def test_it_makes_the_same_choices_as_the_plain_loop(env: str, mode: str) -> None:
    environment = make_env(env, arm_mode=mode, horizon=120, dim=6, arms=5)
    agent = LinUCB(alpha=0.7, ridge=2.0)
    seen = rollout(environment, agent, seed=2, dtype=torch.float64, trajectories=True).trajectories
    assert seen is not None
    assert seen.auxiliary_values is not None
    randomness = Randomness(2, dtype=torch.float64)
    world = environment.reset(randomness)
    plain = [PlainRidge(6, ridge=2.0) for _ in range(10)]
    for t in range(120):
        reward, _, following = environment.step(world, seen.arms[:, t].long(), randomness)
        for b, model in enumerate(plain):
            arms = world.observation.action_set[b].numpy()
            bounds = linucb_bounds(model, arms, alpha=0.7)
            arm = int(seen.arms[b, t])
            assert arm == int(bounds.argmax())
            assert seen.auxiliary_values[b, t].item() == pytest.approx(bounds[arm], abs=1e-9)
            assert seen.rewards[b, t] == reward[b]
            gap = world.values[b].max() - world.values[b, arm]
            assert seen.suboptimality[b, t].item() == pytest.approx(gap.item(), abs=1e-12)
            model.learn(arms[arm], float(reward[b]))
        world = following


def test_the_first_arm_is_the_longest() -> None:
    """Before any reward all bounds are α·‖x‖, so optimism takes the arm with the largest norm."""
    environment = make_env("stationary", horizon=1)
    seen = rollout(environment, LinUCB(), trajectories=True).trajectories
    assert seen is not None
    longest = environment.reset(Randomness(0)).observation.action_set.norm(dim=-1).argmax(dim=1)
    assert np.array_equal(seen.arms[:, 0].numpy(), longest.numpy())


@pytest.mark.parametrize(("options", "field"), [({"alpha": -1.0}, "alpha"), ({"ridge": 1e-6}, "ridge")])
def test_bad_options_are_refused(options: dict[str, float], field: str) -> None:
    with pytest.raises(InputError, match=f"{field} is .*; give a finite number"):
        LinUCB(**options)
