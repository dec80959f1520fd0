"""A world in which rewards turn and an arm's worth does not."""

from __future__ import annotations

import math

import torch

from driftformer.agents.registry import make_agent
from driftformer.experiments.readings import READINGS
from driftformer.randomness import Randomness
from driftformer.simulation.rollout import rollout

CASE = next(case for case in READINGS.cases if case.name.endswith("-static"))


def test_rewards_turn_with_the_cosine_and_regret_does_not() -> None:
    environment, randomness = CASE.preset.build(), Randomness(0, dtype=torch.float64)
    world = environment.reset(randomness)
    first = world.values
    noise_free = world.observation.action_set @ world.origin.w.unsqueeze(2)
    assert torch.allclose(first, noise_free.squeeze(2))
    paid = []
    for t in range(1, 61):
        arm = torch.full((64,), t % 10)
        assert torch.equal(world.values, first)
        reward, suboptimality, world = environment.step(world, arm, randomness)
        assert torch.allclose(suboptimality, first.amax(dim=1) - first[:, t % 10])
        paid.append((reward / math.cos(2 * math.pi * 0.018 * t) - first[:, t % 10]) / 1.5)
    noise = torch.stack(paid)  # standard normal if rewards are (⟨a, w*⟩ + ε)·cos(2πbt), ε of deviation 1.5
    assert abs(float(noise.mean())) < 4 / math.sqrt(noise.numel())
    assert abs(float(noise.std()) - 1) < 4 / math.sqrt(2 * noise.numel())


def test_an_agent_that_knows_of_the_four_clocks_must_be_told_which_optimum_counts() -> None:
    """It is far ahead of LinUCB then, and worse than chance if it plays the best arm of the round."""
    agents = ("clock-posterior@optimum=static", "clock-posterior", "linucb", "random")
    static, moving, linucb, chance = (
        float(rollout(CASE.preset.build(), make_agent(agent)).regrets[0].regret.mean()) for agent in agents
    )
    assert static < linucb / 3 < linucb < chance < moving
