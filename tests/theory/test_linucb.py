"""A whole network with explicit weights is soft LinUCB, the closer the deeper."""

from __future__ import annotations

import pytest
import torch

from driftformer.theory import linucb


@pytest.mark.parametrize("d", [2, 3, 4])
def test_the_network_is_soft_linucb(d: int) -> None:
    asked = linucb.SoftLinUCB(d=d, rounds=32)
    errors = [linucb.largest_error(asked, steps, pieces=128, problems=1) for steps in (10, 20, 50)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.05


def test_sixty_steps_are_enough_for_four_dimensions_and_sixty_four_rounds() -> None:
    assert linucb.largest_error(linucb.SoftLinUCB(d=4), 60, pieces=128, problems=1) < 0.01


def test_the_width_of_the_confidence_bound_needs_pieces() -> None:
    asked = linucb.SoftLinUCB(d=2, rounds=16)
    coarse, fine = (linucb.largest_error(asked, 60, pieces=pieces, problems=1) for pieces in (4, 64))
    assert fine < coarse / 10


def test_the_reference_is_linucb_itself() -> None:
    """Its largest probability is the arm that the agent would play."""
    from driftformer.agents.base import ProblemShape
    from driftformer.agents.linucb import LinUCB

    asked = linucb.SoftLinUCB(d=3, rounds=20)
    features, arms, rewards = linucb.history(asked, 0)
    wanted = asked.log_probabilities(features, arms, rewards).argmax(dim=1)
    agent = LinUCB()
    state = agent.init(ProblemShape(1, 20, asked.arms, 3, torch.device("cpu"), torch.double))
    for t in range(20):
        offered = features[t].unsqueeze(0)
        arm, info = agent.act(state, offered, None)  # type: ignore[arg-type]
        assert int(arm) == int(wanted[t])
        state = agent.update(state, offered, arms[t : t + 1], rewards[t : t + 1], info)
