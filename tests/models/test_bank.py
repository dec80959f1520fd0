"""The bank against plain regressions written out for one problem, and all that must not change what it says."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from driftformer.models import bank as banks
from driftformer.models.bank import FILTERS, FREQUENCIES, MEMBERS, PHASES, SIGNS, Bank
from driftformer.models.statistics import Statistics, statistics

ROUNDS, ARMS, DIM = 40, 4, 3
Array = NDArray[np.float64]


def history(seed: int = 0, dim: int = DIM) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    features = torch.rand(ROUNDS, 1, ARMS, dim, generator=generator, dtype=torch.double) * 2 - 1
    arms = torch.randint(ARMS, (ROUNDS, 1), generator=generator)
    return features, arms, torch.randn(ROUNDS, 1, generator=generator, dtype=torch.double)


def follow(features: Tensor, arms: Tensor, rewards: Tensor, offered: Tensor | None = None) -> tuple[Bank, Statistics]:
    """The bank after a history whose last round is still to be played."""
    bank = banks.empty(features.shape[1], features.shape[3], torch.device("cpu"), features.dtype)
    for t in range(len(features) - 1):
        mask = None if offered is None else offered[t]
        banks.learn(bank, banks.predict(bank, features[t], mask), arms[t], rewards[t])
    mask = None if offered is None else offered[-1]
    return bank, statistics(bank, banks.predict(bank, features[-1], mask), mask)


class Plain:
    """One problem, one expert at a time, with matrices that are inverted and histories that are kept."""

    def __init__(self, features: Tensor, rewards: Tensor) -> None:
        sizes = [float(x.square().sum(-1).mean().sqrt()) for x in features[:, 0]]
        assert max(sizes) < 2 * sizes[0]  # so the unit is the first round's
        self.unit, self.first = sizes[0], float(rewards[0, 0])
        self.size = abs(float(rewards[1, 0]) - self.first)
        self.time, self.x, self.y = 0, list[Array](), list[float]()

    def read(self, x: Tensor) -> Array:
        scaled = x.numpy() / self.unit
        return np.array([*scaled, scaled.sum(), 1.0])

    def add(self, x: Tensor, reward: float) -> None:
        self.x.append(self.read(x))
        self.y.append((reward - self.first) / self.size)


def kalman(member: banks.Filter, plain: Plain, signs: Array | None = None) -> tuple[Array, Array]:
    """Mean and covariance of the weights before the next round, by the textbook's two steps."""
    dim = len(plain.x[0]) - 2
    kept = np.array([member.weights] * dim + [member.mean, member.shift]) ** 0.5
    prior = np.diag([member.signal] * dim + [member.common, member.offset])
    mean, covariance = np.zeros(dim + 2), prior.copy()
    for s, (x, y) in enumerate(zip(plain.x, plain.y, strict=True)):
        x = x if signs is None else x * signs[s]
        gain = covariance @ x / (1 + x @ covariance @ x)
        mean, covariance = mean + gain * (y - x @ mean), covariance - np.outer(gain, x @ covariance)
        mean, covariance = kept * mean, covariance * np.outer(kept, kept) + prior * (1 - np.outer(kept, kept))
    return mean, covariance


@pytest.mark.parametrize("place", range(len(FILTERS)))
def test_filters_are_kalmans(place: int) -> None:
    features, arms, rewards = history()
    bank, plain = follow(features, arms, rewards)[0], Plain(features, rewards)
    for t in range(ROUNDS - 1):
        plain.add(features[t, 0, arms[t, 0]], float(rewards[t, 0]))
    mean, covariance = kalman(FILTERS[place], plain)
    assert np.allclose(bank.theta[0, :, place], mean, atol=1e-10)
    assert np.allclose(bank.covariance[0, :, place], covariance, atol=1e-10)


def test_a_filter_that_forgets_nothing_is_ridge_regression() -> None:
    features, arms, rewards = history(1)
    bank, plain = follow(features, arms, rewards)[0], Plain(features, rewards)
    for t in range(ROUNDS - 1):
        plain.add(features[t, 0, arms[t, 0]], float(rewards[t, 0]))
    x, y = np.array(plain.x), np.array(plain.y)
    prior = np.diag([1 / FILTERS[1].signal] * DIM + [1 / FILTERS[1].common, 1 / FILTERS[1].offset])
    assert np.allclose(bank.theta[0, :, 1], np.linalg.solve(prior + x.T @ x, x.T @ y), atol=1e-9)


def test_waves_are_regressions_of_what_they_have_turned_back() -> None:
    features, arms, rewards = history(2)
    bank, plain = follow(features, arms, rewards)[0], Plain(features, rewards)
    for t in range(ROUNDS - 1):
        plain.add(features[t, 0, arms[t, 0]], float(rewards[t, 0]))
    _, covariance = kalman(FILTERS[0], plain)
    prediction = banks.predict(bank, features[-1])
    ages = np.arange(ROUNDS - 2, -1, -1)
    memory = (1 - 1 / 800) ** ages
    for wave in (0, 17, len(FREQUENCIES) + 30, 3 * len(FREQUENCIES) + 60):
        frequency, phase = FREQUENCIES[wave % len(FREQUENCIES)], math.pi / PHASES * (wave // len(FREQUENCIES))
        heights = np.cos(2 * np.pi * frequency * np.arange(1, ROUNDS + 1) + phase)
        share = memory * heights[:-1] / (heights[:-1] ** 2 + 0.05) * (ROUNDS - 1) / memory.sum()
        weights = covariance @ (np.array(plain.x).T @ (share * np.array(plain.y)))
        constant = covariance @ (np.array(plain.x).T @ share)
        for arm in range(ARMS):
            x = plain.read(features[-1, 0, arm])
            assert math.isclose(prediction.waves[0, arm, wave], heights[-1] * (x @ weights), abs_tol=1e-9)
            assert math.isclose(prediction.constant[0, arm, wave], 1 - heights[-1] * (x @ constant), abs_tol=1e-9)


def test_a_flip_is_noticed_and_what_was_learned_is_kept() -> None:
    generator = torch.Generator().manual_seed(3)
    rounds, batch, dim = 120, 64, 4
    w = torch.randn(batch, dim, generator=generator, dtype=torch.double)
    features = torch.randn(rounds, batch, ARMS, dim, generator=generator, dtype=torch.double)
    arms = torch.randint(ARMS, (rounds, batch), generator=generator)
    sign = torch.where(torch.arange(rounds) < 100, 1.0, -1.0).double()
    means = (features * w[None, :, None]).sum(-1).gather(2, arms.unsqueeze(2)).squeeze(2) * sign[:, None]
    rewards = means + 0.3 * torch.randn(rounds, batch, generator=generator, dtype=torch.double)
    before = follow(features[:100], arms[:100], rewards[:100])[0]
    after = follow(features, arms, rewards)[0]
    assert (before.odds > 2).double().mean() > 0.9
    assert (after.odds < -2).double().mean() > 0.9
    learned = after.theta[:, :dim, len(FILTERS)] + after.theta[:, dim : dim + 1, len(FILTERS)]
    assert float(torch.cosine_similarity(learned, w, dim=1).median()) > 0.98
    assert len(SIGNS) + len(FILTERS) == MEMBERS


Change = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]
SHUFFLED = torch.tensor([2, 0, 1])
CHANGES: dict[str, Change] = {
    "units of rewards": lambda x, a, r: (x, a, 1e4 * r - 7e5),
    "tiny rewards": lambda x, a, r: (x, a, 1e-9 * r),
    "units of features": lambda x, a, r: (x * 350, a, r),
    "mirrored features": lambda x, a, r: (-x, a, r),
    "order of features": lambda x, a, r: (x[..., SHUFFLED], a, r),
    "empty columns": lambda x, a, r: (torch.nn.functional.pad(x, (2, 5)), a, r),
}


@pytest.mark.parametrize("change", CHANGES)
def test_units_and_the_order_of_features_play_no_part(change: str) -> None:
    features, arms, rewards = history(4)
    before = follow(features, arms, rewards)[1]
    after = follow(*CHANGES[change](features, arms, rewards))[1]
    for name, one, other in zip(Statistics._fields, before, after, strict=True):
        assert torch.allclose(one, other, atol=1e-5), name


def test_arms_that_are_not_on_offer_and_other_problems_play_no_part() -> None:
    features, arms, rewards = history(5)
    alone = follow(features, arms, rewards)[1]
    strange = torch.randn_like(features) * 3
    wider, offered = torch.cat([features, strange], dim=2), torch.ones(ROUNDS, 1, 2 * ARMS, dtype=torch.bool)
    offered[:, :, ARMS:] = False
    padded = follow(wider, arms, rewards, offered)[1]
    for one, other in zip(alone, padded, strict=True):
        assert torch.allclose(one, other[:, :ARMS] if one.shape[1] == ARMS else other, atol=1e-9)
    others = history(6)
    together = follow(
        *(torch.cat([one, other], dim=1) for one, other in zip((features, arms, rewards), others, strict=True))
    )[1]
    for one, both in zip(alone, together, strict=True):
        assert torch.allclose(one, both[:1], atol=1e-9)


@pytest.mark.parametrize("kind", ["equal features", "no features", "equal rewards", "an outlier", "large at last"])
def test_whatever_comes_is_followed_with_finite_numbers(kind: str) -> None:
    features, arms, rewards = (value.float() if value.is_floating_point() else value for value in history(7))
    features, rewards = {
        "equal features": (torch.ones_like(features), rewards),
        "no features": (torch.zeros_like(features), rewards),
        "equal rewards": (features, torch.full_like(rewards, 3.0)),
        "an outlier": (features, torch.where(torch.arange(ROUNDS)[:, None] == 30, 1e12, rewards)),
        "large at last": (features * torch.where(torch.arange(ROUNDS) < 20, 1e-4, 1.0)[:, None, None, None], rewards),
    }[kind]
    bank, statistics = follow(features, arms, rewards)
    for value in (*statistics, *vars(bank).values()):
        assert bool(value.isfinite().all())
    assert float(statistics.arms.abs().max()) <= 20


def test_many_rounds_leave_it_sound() -> None:
    generator = torch.Generator().manual_seed(8)
    bank, w = banks.empty(1, 3, torch.device("cpu"), torch.float32), torch.tensor([1.0, -0.5, 0.2])
    for _ in range(5000):
        x = torch.randn(1, 2, 3, generator=generator)
        reward = x[:, 0] @ w + 0.5 * torch.randn(1, generator=generator)
        banks.learn(bank, banks.predict(bank, x), torch.zeros(1, dtype=torch.long), reward)
    learned = (bank.theta[0, :3, 0] + bank.theta[0, 3, 0]) / bank.unit * bank.size
    assert float((learned - w).abs().max()) < 0.05
    for member in range(MEMBERS):
        assert float(torch.linalg.eigvalsh(bank.covariance[0, :, member]).min()) > -1e-6
