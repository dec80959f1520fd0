"""A whole network with explicit weights approaches soft LinUCB as it gets deeper."""

from __future__ import annotations

import pytest

from driftformer.agents.linucb import LinUCB
from driftformer.theory import linucb
from driftformer.theory.noncontinuous import OneProblemAgent


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
    """Its largest probability is the arm that the agent would play."""
    target = linucb.SoftLinUCB(d=3, rounds=20)
    features, arms, rewards = linucb.history(target, 0)
    wanted = target.log_probabilities(features, arms, rewards).argmax(dim=1)
    agent = OneProblemAgent(LinUCB(), features)
    for t, offered in enumerate(features):
        arm, info = agent.act(offered)
        assert arm == int(wanted[t])
        agent.update(offered, int(arms[t]), float(rewards[t]), info)
