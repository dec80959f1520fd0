"""Alg_0 and Alg_B: what is played, and what it is labelled with."""

from __future__ import annotations

import pytest
import torch

from driftformer.environments.linear import LinearBandit
from driftformer.environments.registry import make_env
from driftformer.errors import InputError
from driftformer.pretraining.labels import check_labels, label
from driftformer.pretraining.worlds import worlds_of
from driftformer.randomness import CHUNK, Randomness
from driftformer.simulation.collect import check_behaviours, collect, mixture_weights
from driftformer.simulation.rollout import rollout
from driftformer.simulation.tape import problems_of
from driftformer.simulation.trajectories import played

SMALL = {"horizon": 40, "dim": 4, "arms": 5, "b": 0.03}


@pytest.mark.parametrize("mode", ["fixed", "resampled"])
def test_a_tape_pays_what_a_rollout_pays_to_the_last_bit(mode: str) -> None:
    environment = make_env("high", arm_mode=mode, tails="heavy", **SMALL)
    seen = rollout(environment, "linucb", seed=3, trajectories=True).trajectories
    assert seen is not None
    tape = problems_of(environment, Randomness(3))
    course = tape.begin()
    rewards = torch.stack([course.pay(arm) for arm in seen.arms.long().unbind(1)], dim=1)
    assert torch.equal(rewards, seen.rewards)
    assert torch.equal(played(tape, seen.arms.long(), rewards).suboptimality, seen.suboptimality)


def test_linucb_alone_collects_what_linucb_plays() -> None:
    environment = make_env("high", **SMALL)
    problems, randomness = problems_of(environment, Randomness(0, size=CHUNK)), Randomness(5, size=CHUNK)
    trajectories = collect(problems, {"linucb": 1.0}, randomness)
    again = label(trajectories, "linucb", Randomness(9, size=CHUNK))
    assert torch.equal(trajectories.arms, again), "led along its own history, it does the same again"


def test_an_expert_is_asked_on_the_same_history() -> None:
    """Labels of LinUCB along uniform play are what a plain ridge regression on that play would choose."""
    environment = make_env("stationary", horizon=15, dim=3, arms=4)
    problems, randomness = problems_of(environment, Randomness(0, size=8)), Randomness(1, size=8)
    trajectories = collect(problems, {"random": 1.0}, randomness)
    labels = label(trajectories, "linucb", randomness)
    for row in range(8):
        gram, moment = torch.eye(3, dtype=torch.double), torch.zeros(3, dtype=torch.double)
        for t in range(15):
            x = problems.features[row, t].double()
            inverse = torch.linalg.inv(gram)
            bound = x @ inverse @ moment + ((x @ inverse) * x).sum(1).sqrt()
            assert int(labels[row, t]) == int(bound.argmax())
            chosen = x[trajectories.arms[row, t]]
            gram, moment = gram + chosen.outer(chosen), moment + chosen * trajectories.rewards[row, t]


@pytest.mark.parametrize("preset", ["high", "jumps", "low"])
def test_a_privileged_expert_is_told_what_the_simulation_tells_it(preset: str) -> None:
    """Led along trajectories that it played itself, the oracle does the same again."""
    environment = make_env(preset, horizon=40, dim=4, arms=5)
    seen = rollout(environment, "oracle", seed=3, trajectories=True).trajectories
    assert seen is not None
    history = played(problems_of(environment, Randomness(3)), seen.arms.long(), seen.rewards)
    again = label(history, "oracle", Randomness(9, size=CHUNK))
    assert torch.equal(history.arms, again)


def test_other_labels_are_the_optimal_arm_and_the_arm_that_was_played() -> None:
    problems, randomness = problems_of(make_env("high", **SMALL), Randomness(0, size=8)), Randomness(1, size=8)
    trajectories = collect(problems, {"random": 1.0}, randomness)
    best = label(trajectories, "optimal", randomness)
    assert bool((problems.suboptimality.gather(2, best.unsqueeze(2)) == 0).all())
    assert torch.equal(label(trajectories, "behaviour", randomness), trajectories.arms)


def test_every_trajectory_has_weights_of_its_own_around_the_shares() -> None:
    weights = mixture_weights({"random": 0.8, "linucb": 0.2}, Randomness(0, size=4000).stream("w"))
    assert torch.allclose(weights.sum(dim=1), torch.ones(4000))
    assert float(weights[:, 0].std()) > 0.1
    assert 0.65 < float(weights[:, 0].mean()) < 0.85  # shares are drawn around, not met exactly


def test_a_mixture_plays_between_its_behaviours() -> None:
    environment = make_env("stationary", horizon=60, dim=4, arms=5, noise=0.3)
    problems = problems_of(environment, Randomness(0, size=256))

    def regret(shares: dict[str, float]) -> float:
        arms = collect(problems, shares, Randomness(1, size=256)).arms
        return float(problems.suboptimality.gather(2, arms.unsqueeze(2)).sum(dim=(1, 2)).mean())

    uniform, mixed, expert = regret({"random": 1.0}), regret({"random": 0.5, "linucb": 0.5}), regret({"linucb": 1.0})
    assert expert < mixed < uniform
    assert regret({"noisy-optimum": 1.0}) < uniform


def test_behaviours_and_labels_that_cannot_be_are_refused() -> None:
    with pytest.raises(InputError, match="noisy-optimum"):
        check_behaviours({"optimal": 1.0})
    with pytest.raises(InputError, match="there is no 'linucp'; did you mean 'linucb'"):
        check_behaviours({"linucp": 1.0})
    with pytest.raises(InputError, match="share of random"):
        check_behaviours({"random": 0.0})
    with pytest.raises(InputError, match="cannot play broad"):
        check_labels("oracle", worlds_of("broad"))


def test_fewer_dimensions_are_padded_with_zeros() -> None:
    environment = LinearBandit(horizon=5, dim=3, arms=2)
    small = problems_of(environment, Randomness(0, size=4))
    padded = problems_of(environment, Randomness(0, size=4), 6)
    assert padded.features.shape == (4, 5, 2, 6)
    assert torch.equal(padded.features[..., :3], small.features)
    assert bool((padded.features[..., 3:] == 0).all())
    assert torch.equal(padded.values, small.values)
