"""The oracle is exact Bayesian regression through the drift, written here from the formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from driftformer.agents.oracle import Oracle
from driftformer.environments.registry import make_env
from driftformer.randomness import Randomness
from driftformer.simulation.rollout import rollout
from tests.plain import PlainRidge


@pytest.mark.parametrize(("env", "options"), [("high", {"b": 0.025}), ("low", {}), ("jumps", {"times": (9, 40)})])
def test_it_acts_on_the_exact_posterior(env: str, options: dict[str, object]) -> None:
    """Prior N(½, I/12), noise 1.5: a ridge of 2.25·12 around ½, on rewards with the drift undone."""
    environment = make_env(env, horizon=60, dim=5, arms=4, **options)
    seen = rollout(environment, Oracle(alpha=1.3), dtype=torch.float64, trajectories=True).trajectories
    assert seen is not None
    assert seen.auxiliary_values is not None
    randomness = Randomness(0, dtype=torch.float64)
    world = environment.reset(randomness)
    plain = [PlainRidge(5, ridge=27.0, prior_mean=0.5) for _ in range(10)]
    told = 0
    for t in range(1, 61):
        if env == "jumps" and t in (9, 40):
            plain = [PlainRidge(5, ridge=27.0, prior_mean=0.5) for _ in range(10)]
        scale = {"high": math.cos(2 * math.pi * 0.025 * t), "low": 1 / 12, "jumps": 1.0}[env]
        shift = 0.5 + (3.0 if t >= 50 else 0.0) if env == "low" else 0.0
        reward, _, following = environment.step(world, seen.arms[:, t - 1].long(), randomness)
        for b, model in enumerate(plain):
            arms, arm = world.observation.action_set[b].numpy(), int(seen.arms[b, t - 1])
            width = 1.5 * np.sqrt(np.einsum("ai,ij,aj->a", arms, model.inverse, arms))
            scores = scale * (arms @ model.theta) + 1.3 * abs(scale) * width
            assert scores[arm] == pytest.approx(scores.max(), abs=1e-9)
            assert seen.auxiliary_values[b, t - 1].item() == pytest.approx(scores.max() + shift, abs=1e-9)
            if abs(scale) > 1e-9:
                model.learn(arms[arm], (float(reward[b]) - shift) / scale)
                told += 1
        world = following
    assert told == (570 if env == "high" else 600)  # rounds 10, 30 and 50 of the cosine tell nothing


def test_it_is_far_ahead_of_agents_that_do_not_know_the_drift() -> None:
    environment = make_env("high")
    regret = {
        name: np.mean([chunk.regret.mean() for chunk in rollout(environment, Oracle(explore=name)).regrets])
        for name in ("ucb", "thompson")
    }
    assert regret["ucb"] < 20 < regret["thompson"] < 40  # over 200 problems: 12 and 25 where LinUCB has 274
