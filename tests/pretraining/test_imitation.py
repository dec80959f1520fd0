"""How close a policy is to its teacher: exact cases, and the warnings that must come."""

from __future__ import annotations

import math

import pytest
import torch

from driftformer.agents.registry import make_agent
from driftformer.environments.registry import make_env
from driftformer.errors import InputError
from driftformer.pretraining import imitation
from driftformer.randomness import Randomness
from driftformer.simulation.collect import collect
from driftformer.simulation.tape import problems_of
from driftformer.simulation.trajectories import Trajectories


def setting() -> tuple[Trajectories, Randomness]:
    problems = problems_of(make_env("stationary", horizon=12, dim=3, arms=4), Randomness(0, size=16))
    randomness = Randomness(1, size=16)
    return collect(problems, {"random": 1.0}, randomness), randomness


def test_the_teacher_is_closest_to_itself() -> None:
    trajectories, randomness = setting()
    taught = imitation.teacher_distribution(make_agent("linucb"), trajectories, randomness, copies=1)
    itself = imitation.closeness(taught, taught)
    uniform = imitation.closeness(taught, imitation.uniform_distribution(trajectories))
    assert torch.allclose(itself.kl, torch.zeros(12).double(), atol=1e-5)
    assert bool((uniform.kl >= itself.kl).all())
    assert torch.allclose(uniform.agreement, torch.full((12,), 0.25).double())
    assert torch.allclose(uniform.log_likelihood, torch.full((12,), -math.log(4)).double())


def test_a_cold_teacher_is_its_argmax_and_copies_average_its_coins() -> None:
    trajectories, randomness = setting()
    cold = imitation.teacher_distribution(
        make_agent("linucb"),
        trajectories,
        randomness,
        temperature=1e-6,
        copies=1,
    )
    assert bool(cold.isfinite().all()), "nothing underflows: ratios against it stay finite"
    assert float(cold.exp().amax(dim=2).min()) > 0.99
    coins = imitation.teacher_distribution(
        make_agent("thompson"),
        trajectories,
        randomness,
        temperature=1e-4,
        copies=16,
    )
    assert float(coins.exp()[:, 0].amax(dim=1).median()) < 0.9, "before any reward, posterior samples differ"
    assert torch.allclose(coins.exp().sum(dim=2), torch.ones(16, 12).double(), atol=1e-4)


def test_kl_is_the_textbook_one() -> None:
    teacher = torch.tensor([[[0.5, 0.5]], [[0.9, 0.1]]]).log()
    algorithm = torch.tensor([[[0.25, 0.75]], [[0.9, 0.1]]]).log()
    expected = (0.5 * math.log(2) + 0.5 * math.log(0.5 / 0.75)) / 2
    assert float(imitation.closeness(teacher, algorithm).kl) == pytest.approx(expected, abs=1e-6)


def test_equal_algorithms_have_ratio_one() -> None:
    logs = torch.rand(50, 20).log()
    ratio = imitation.distribution_ratio(logs, logs)
    assert ratio.log_ratio == pytest.approx(0.0, abs=1e-9)
    assert ratio.relative_error == 0
    assert ratio.effective == pytest.approx(50)
    assert ratio.warning is None


def test_the_ratio_is_the_average_of_products_and_says_when_few_carry_it() -> None:
    first, second = torch.tensor([[-1.0, -1.0], [-2.0, -0.5]]), torch.tensor([[-1.5, -1.0], [-2.0, -1.5]])
    ratio = imitation.distribution_ratio(first, second)
    assert ratio.log_ratio == pytest.approx(math.log((math.exp(0.5) + math.exp(1.0)) / 2), abs=1e-6)
    logs = torch.zeros(100, 1)
    logs[0] = 500.0  # exp(500) would overflow: logarithms do not
    lonely = imitation.distribution_ratio(logs, torch.zeros(100, 1))
    assert lonely.effective == pytest.approx(1.0)
    assert "rests on 1.0 of 100 trajectories" in str(lonely.warning)
    assert math.isfinite(lonely.log_ratio)


def test_a_teacher_that_compares_nothing_is_refused() -> None:
    trajectories, randomness = setting()
    with pytest.raises(InputError, match="compares no values"):
        imitation.teacher_distribution(make_agent("random"), trajectories, randomness)
