"""adaptive-linucb: what a plain version computes, any units, and what it learns after a change."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import driftformer as df
from driftformer.agents.adaptive import LEVEL, MARGIN, MEMORIES, NOISE, RECORD
from driftformer.agents.base import ProblemShape
from driftformer.errors import InputError
from driftformer.problem import Observation
from driftformer.randomness import Randomness
from driftformer.simulation.rollout import rollout


class PlainAdaptive:
    """One problem, one filter after the other, in float64."""

    def __init__(self, dim: int, alpha: float, signal: float) -> None:
        self.alpha, self.signal, self.t, self.unit = alpha, signal, 0, 0.0
        prior = np.diag([signal] * dim + [LEVEL])
        self.filters = [
            {"P": prior.copy(), "theta": np.zeros(dim + 1), "squares": 0.0, "record": 0.0} for _ in MEMORIES
        ]
        self.rounds, self.first, self.size = 0.0, 0.0, 0.0

    def noise(self, one: dict) -> float:
        return max(one["squares"] / max(self.rounds, 1), 1e-6) if self.size else 1.0

    def values(self, features: np.ndarray) -> np.ndarray:
        now = np.sqrt((features**2).sum(axis=1).mean())
        if now > 2 * self.unit:
            for one in self.filters:
                one["theta"][:-1] *= now / self.unit if self.unit else 1
            self.unit = now
        self.x = np.hstack([features / self.unit, np.ones((len(features), 1))])
        records = np.array([one["record"] for one in self.filters])
        belief = np.exp(records - records.max())
        values = np.zeros(len(features))
        for share, one in zip(belief / belief.sum(), self.filters, strict=True):
            for arm, x in enumerate(self.x):
                width = np.sqrt(x @ one["P"] @ x * self.noise(one))
                values[arm] += share * (x @ one["theta"] + self.alpha * width)
        return values * (self.size or 1) + self.first

    def update(self, arm: int, reward: float) -> None:
        x = self.x[arm]
        self.first = reward if self.t == 0 else self.first
        self.size = self.size or abs(reward - self.first)
        reward = (reward - self.first) / (self.size or 1)
        self.rounds = NOISE * self.rounds + 1
        for gamma, one in zip(MEMORIES, self.filters, strict=True):
            spread = 1 + x @ one["P"] @ x
            surprise = reward - x @ one["theta"]
            one["squares"] = NOISE * one["squares"] + surprise**2 / spread
            expected = self.noise(one) * spread
            told = -(np.log(expected) + surprise**2 / expected) / 2
            one["record"] = RECORD * one["record"] + (told if self.t > 2 else 0)
            gain = one["P"] @ x / spread
            one["theta"] = np.sqrt(gamma) * (one["theta"] + gain * surprise)
            one["P"] = gamma * (one["P"] - np.outer(gain, one["P"] @ x)) + (1 - gamma) * self.signal * np.eye(len(x))
        self.t += 1
        best = int(np.argmax([one["record"] for one in self.filters]))
        for place in range(best):
            if self.filters[best]["record"] - self.filters[place]["record"] > MARGIN:
                self.filters[place] = {name: np.copy(value) for name, value in self.filters[best].items()}


def play(features: np.ndarray, worth: np.ndarray, scale: float = 1.0, shift: float = 0.0) -> tuple[list, list]:
    """Arms and upper bounds of the agent on given features [T, A, d] and rewards [T, A], one problem in a batch."""
    agent = df.make_agent("adaptive-linucb")
    rounds, arms, dim = features.shape
    state = agent.init(ProblemShape(1, rounds, arms, dim, torch.device("cpu"), torch.float64))
    rng, played, bounds = Randomness(0).stream("agent"), [], []
    for x, row in zip(features, worth, strict=True):
        observation = Observation(torch.from_numpy(x)[None])
        arm, info = agent.act(state, observation, rng)
        played.append(int(arm))
        bounds.append(info.values[0].numpy().copy())
        reward = torch.tensor([row[played[-1]] * scale + shift], dtype=torch.float64)
        state = agent.update(state, observation, arm, reward, info)
    return played, bounds


def stream(rounds: int = 120, arms: int = 4, dim: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Features, and rewards whose weights turn around half-way."""
    rng = np.random.default_rng(4)
    features = rng.normal(size=(rounds, arms, dim))
    features[:10] *= 0.2  # the unit is found to be larger later
    weights = rng.normal(size=dim)
    sign = np.where(np.arange(rounds) < rounds // 2, 1.0, -1.0)
    return features, features @ weights * sign[:, None] + 0.1 * rng.normal(size=(rounds, arms))


def test_bounds_are_those_of_a_plain_version_also_when_longer_memories_begin_anew() -> None:
    features, worth = stream()
    arms, bounds = play(features, worth)
    plain = PlainAdaptive(features.shape[2], alpha=1.0, signal=3.0)
    renewed = False
    for x, row, arm, bound in zip(features, worth, arms, bounds, strict=True):
        np.testing.assert_allclose(plain.values(x), bound, rtol=1e-7, atol=1e-7)
        plain.update(arm, row[arm])
        renewed = renewed or any(np.array_equal(plain.filters[0]["P"], one["P"]) for one in plain.filters[1:])
    assert renewed


def test_units_of_features_and_rewards_do_not_matter() -> None:
    features, worth = stream()
    arms, _ = play(features, worth)
    assert play(features * 1000, worth)[0] == arms
    assert play(features, worth, scale=1e-3, shift=50.0)[0] == arms


def test_it_follows_changes_and_loses_nothing_where_nothing_changes() -> None:
    """LinUCB never forgets (83 mistakes in 300 rounds with changes), D-LinUCB always does (20 without)."""
    for change, rival in (("permute", "linucb"), ("none", "discounted-linucb")):
        environment = df.make_env("items", data="wine", horizon=300, change=change, changes=3)
        regret = {name: rollout(environment, name).regrets[0].regret.mean() for name in ("adaptive-linucb", rival)}
        assert regret["adaptive-linucb"] < 0.6 * regret[rival]


def test_bad_options_are_refused() -> None:
    with pytest.raises(InputError, match="signal is 0"):
        df.make_agent("adaptive-linucb@signal=0")
    with pytest.raises(InputError, match="alpha is -1"):
        df.make_agent("adaptive-linucb@alpha=-1")
