"""Pretraining of the query form: its losses against plain versions, its play, its way back after a stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.distributions import Normal

import driftformer as df
from driftformer.environments.broad import BroadBandit
from driftformer.models.query import DARING, Verdict
from driftformer.models.sampling import standard_gumbel
from driftformer.pretraining.processes import Part
from driftformer.pretraining.query import QueryLoop, QueryPlayer, daring_loss, excess_regret, tries, value_loss
from driftformer.pretraining.recipes import Recipe, recipe_of
from driftformer.pretraining.run import train
from driftformer.pretraining.worlds import worlds_of
from driftformer.randomness import Randomness
from driftformer.simulation.rollout import rollout
from driftformer.simulation.tape import Tape, problems_of
from tests.models.test_query import make_policy


def small(**changes: object) -> Recipe:
    sizes = {"worlds": "tiny", "width": 16, "layers": 1, "heads": 2, "tokens": 3840, "tuning_tokens": 7680}
    return recipe_of("drift", **{**sizes, "tuning_rollouts": 4, "shards": 2, "warmup": 5, **changes})


def test_the_value_loss_is_minus_a_log_likelihood() -> None:
    mean, doubt, target = torch.randn(7, 3), 0.3 * torch.randn(7, 3), torch.randn(7, 3)
    counts = (torch.rand(7, 3) < 0.6).float()
    plain = -Normal(mean, doubt.exp()).log_prob(target)[counts > 0].mean() - 0.5 * np.log(2 * np.pi)
    assert torch.allclose(value_loss(Verdict(mean, doubt, mean, mean), target, counts), plain, atol=1e-6)
    impossible = torch.where(counts > 0, mean + 1e6 * doubt.exp(), target)
    assert torch.allclose(
        value_loss(Verdict(mean, doubt, mean, mean), impossible, counts), 200 + doubt[counts > 0].mean()
    )


def test_excess_regret_counts_from_the_beginning_of_a_stretch() -> None:
    regret = torch.rand(10, 3 * 2, dtype=torch.double)  # three rollouts of two problems; stretches begin at 0, 2, 5, 7
    found = excess_regret(regret, 3)
    for t in range(10):
        if t >= 7:
            assert bool((found[t] == 0).all())
            continue
        begin, end = next(part for part in ((5, 10), (2, 7), (0, 5)) if part[0] <= t)
        later = regret[begin:end].mean(0)
        for row in range(6):
            assert torch.allclose(found[t, row], later[row] - later[row % 2 :: 2].mean())


def test_what_is_tried_is_constant_in_a_stretch_and_has_a_mirror_image() -> None:
    tried = tries(Randomness(0, (0,), size=3), 4, 10, DARING).view(10, 4, 3, DARING)
    assert torch.equal(tried[:, :2], -tried[:, 2:])
    assert torch.equal(tried[2:5], tried[2:3].expand(3, -1, -1, -1))
    assert bool((tried[4] != tried[5]).all())
    assert bool((tried[7:] == 0).all())
    assert tries(Randomness(0, (0,), size=3), 3, 10, DARING).shape == (10, 9, DARING)


def test_the_daring_loss_has_the_gradient_of_regret() -> None:
    """Regret is a parabola in what is dared: its gradient at 0 against the estimator's mean over many tries."""
    best = torch.tensor([0.3, -0.2, 0.0, 0.1, 0.5], dtype=torch.double)
    stray = 0.5 * torch.randn(400_000, 5, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    daring = torch.zeros(1, 5, dtype=torch.double, requires_grad=True)
    verdict = Verdict(*(torch.zeros(1, 1),) * 3, daring.expand(len(stray), -1))
    daring_loss(verdict, stray, (stray - best).square().sum(1)).backward()
    assert daring.grad is not None
    assert torch.allclose(daring.grad[0], -2 * best, atol=0.02)


@pytest.mark.parametrize(
    "environment", [BroadBandit(horizon=15, dim=4, arms=3, offered=0.6), df.make_env("jumps", horizon=30, dim=6)]
)
def test_what_is_watched_is_what_the_agent_plays(environment: BroadBandit, tmp_path: Path) -> None:
    """On the same problems and without chance in the choice, training and evaluation see the same regret."""
    from driftformer.models.checkpoints import save_policy

    save_policy(make_policy(), tmp_path, torch.float32)
    played = rollout(environment, f"policy:{tmp_path}@mode=greedy", seed=3, trajectories=True)
    problems = problems_of(environment, Randomness(3, (0,)))
    shape = problems.shape
    watched = QueryPlayer(make_policy()).watch(problems, torch.zeros(shape.batch, shape.horizon, shape.arms))
    assert played.trajectories is not None
    assert torch.equal(watched.trajectories.arms.int(), played.trajectories.arms)
    assert torch.equal(watched.trajectories.rewards, played.trajectories.rewards)
    assert bool((watched.spread[0] == 0).all())
    assert bool((watched.spread[4] > 0).all())


@pytest.mark.parametrize("tuning", [False, True])
def test_problems_laid_out_for_many_steps_are_those_of_each_step(tuning: bool) -> None:
    worlds, part = worlds_of("tiny"), Part(2)
    unused: Any = None
    alone, together = (
        QueryLoop(small(), unused, worlds, unused, unused, part, unused, unused, torch.device("cpu"), ahead=ahead)
        for ahead in (1, 4)
    )
    for number in (5, 6, 3, 4):
        (one, first), (other, second) = alone._problems(number, tuning), together._problems(number, tuning)
        assert isinstance(one, Tape)
        assert isinstance(other, Tape)
        for name in ("features", "values", "spread", "noise"):
            assert torch.equal(getattr(one, name), getattr(other, name))
        assert torch.equal(first.stream("heat").uniform(), second.stream("heat").uniform())


def test_chance_follows_the_gumbel_numbers() -> None:
    problems = problems_of(BroadBandit(horizon=5, dim=2, arms=3), Randomness(0))
    player = QueryPlayer(make_policy())
    loud = standard_gumbel(torch.rand(64, 5, 3)) * 1e6
    assert torch.equal(player.play(problems, loud).arms, loud.argmax(2))


def test_a_training_learns_and_stops_and_goes_on_exactly(tmp_path: Path) -> None:
    whole = train(small(steps=12, tuning_steps=4), tmp_path / "whole", evaluate_every=12, evaluate_problems=32)
    assert whole.best is not None
    assert whole.best < 0.8  # of the uniform policy's regret
    parts = small(steps=12, tuning_steps=4)
    for stop in (5, 13):

        def enough(report: object, stop: int = stop) -> None:
            if len((tmp_path / "parts" / "log.jsonl").read_text().splitlines()) >= stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            train(parts, tmp_path / "parts", evaluate_every=1, evaluate_problems=4, save_every=0.0, on_report=enough)
    train(parts, tmp_path / "parts", evaluate_every=12, evaluate_problems=4)
    one, other = (load_file(tmp_path / name / "state.safetensors") for name in ("whole", "parts"))
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


def test_stored_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(df.InputError, match="this form learns from what it plays itself; leave --data out"):
        train(small(steps=1), tmp_path / "out", data=tmp_path)
