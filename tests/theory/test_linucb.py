"""A whole network with explicit weights approaches soft LinUCB as it gets deeper."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
import torch

from driftformer.agents.base import ProblemShape
from driftformer.problem import Observation
from driftformer.randomness import Stream
from driftformer.theory import linucb
from driftformer.theory.soft import draw_by_softmax


@pytest.mark.parametrize("d", [2, 3, 4])
def test_the_network_is_soft_linucb(d: int) -> None:
    target = linucb.SoftLinUCB(d=d, rounds=32)
    errors = [linucb.largest_error(target, steps, pieces=128, problems=1) for steps in (10, 20, 50)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.05


def test_sixty_steps_are_enough_for_four_dimensions_and_sixty_four_rounds() -> None:
    assert linucb.largest_error(linucb.SoftLinUCB(d=4), 60, pieces=128, problems=1) < 0.01


def test_the_width_of_the_confidence_bound_needs_pieces() -> None:
    target = linucb.SoftLinUCB(d=2, rounds=16)
    coarse, fine = (linucb.largest_error(target, 60, pieces=pieces, problems=1) for pieces in (4, 64))
    assert fine < coarse / 10


def test_the_reference_is_linucb_itself() -> None:
    """The agent that is led along the same history gives every arm the same probability."""
    target = linucb.SoftLinUCB(d=3, rounds=20)
    features, arms, rewards = linucb.history(target, 0)
    wanted, agent = target.log_probabilities(features, arms, rewards), target.agent
    state = agent.init(ProblemShape(1, target.rounds, target.arms, target.d, features.device, features.dtype))
    stream = cast(Stream, SimpleNamespace(uniform=lambda: torch.zeros(1, dtype=torch.double)))
    for t in range(target.rounds):
        observation = Observation(features[t : t + 1])
        _, info = agent.act(state, observation, stream)
        assert torch.allclose(info.log_probabilities[0], wanted[t], atol=1e-9)
        state = agent.update(state, observation, arms[t : t + 1], rewards[t : t + 1], info)


def test_a_softmax_draws_arms_as_often_as_it_says() -> None:
    chances = torch.tensor([[0.1, 0.2, 0.7]], dtype=torch.double)
    uniforms = (torch.arange(1000, dtype=torch.double) + 0.5) / 1000
    arms = draw_by_softmax(chances.log().expand(1000, -1), uniforms)
    assert torch.bincount(arms).tolist() == [100, 200, 700]
