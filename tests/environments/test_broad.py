"""The prior that the generalist is trained on."""

from __future__ import annotations

import pytest
import torch

from driftformer.environments.broad import CHANGES, FEATURES, WEIGHTS, BroadBandit
from driftformer.pretraining.worlds import worlds_of
from driftformer.randomness import Randomness
from driftformer.simulation.rollout import rollout
from driftformer.simulation.tape import lay_out


@pytest.mark.parametrize("world", worlds_of("broad"), ids=lambda world: world.environment.describe())
def test_problems_are_finite_and_worth_learning(world: object) -> None:
    environment = world.environment  # type: ignore[attr-defined]
    tape = lay_out(environment, Randomness(1, size=256))
    for value in (tape.features, tape.values, tape.spread):
        assert bool(value.isfinite().all())
    assert float(tape.values.abs().max()) < 1e4
    uniform = tape.suboptimality.mean(dim=(1, 2))
    assert float((uniform > 0.01 * float(uniform.median())).float().mean()) > 0.98
    if environment.law == "bernoulli":
        assert float(tape.values.min()) >= 0
        assert float(tape.values.max()) <= 1


def test_a_tape_pays_what_a_rollout_pays() -> None:
    environment = BroadBandit(horizon=30, dim=6, arms=4, arm_mode="resampled", offered=0.7, law="heavy", bent=0.5)
    played = rollout(environment, "linucb", seed=2, trajectories=True).trajectories
    assert played is not None
    tape = lay_out(environment, Randomness(2))
    course = tape.begin()
    for t in range(environment.horizon):
        assert torch.equal(course.pay(played.arms[:, t].long()), played.rewards[:, t])


def test_shares_are_shares() -> None:
    for shares in (FEATURES, WEIGHTS, CHANGES):
        assert sum(shares.values()) == pytest.approx(1.0)


def test_worlds_at_rest_stay_and_others_move() -> None:
    tape = lay_out(BroadBandit(horizon=60), Randomness(3, size=2000))
    centred = tape.values - tape.values.mean(dim=2, keepdim=True)
    still = (centred - centred[:, :1]).abs().amax(dim=(1, 2)) < 1e-3
    assert 0.1 < float(still.float().mean()) < 0.2
    mirrored = ((centred[:, -1] + centred[:, 0]).abs().amax(dim=1) < 1e-3) & ~still  # an odd number of flips
    assert 0.02 < float(mirrored.float().mean()) < 0.12
