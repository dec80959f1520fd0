"""LinUCB as others run it: one problem, one round at a time, on the same linear bandit.

Every function plays `rounds` rounds of a stationary bandit with d=32, ten arms drawn anew in every round and noise
1.5, and counts the exact regret, as our simulator does. `features` are drawn inside, or given.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIM, ARMS, NOISE = 32, 10, np.float32(1.5)

Features = NDArray[np.float32]


def draw_features(rng: np.random.Generator, rounds: int) -> Iterator[Features]:
    """Unif[-1,1] features in float32, a round at a time."""
    for _ in range(rounds):
        yield rng.random((ARMS, DIM), dtype=np.float32) * np.float32(2) - np.float32(1)


def numpy_loop(rounds: int, features: list[Features] | None = None) -> float:
    """A plain loop with the Sherman–Morrison formula, in float32."""
    rng = np.random.default_rng(0)
    w = rng.random(DIM, dtype=np.float32)
    inverse, theta, regret = np.eye(DIM, dtype=np.float32), np.zeros(DIM, np.float32), 0.0
    for x in features[:rounds] if features else draw_features(rng, rounds):
        direction = x @ inverse
        variance = (direction * x).sum(axis=1)
        estimate = x @ theta
        arm = int((estimate + np.sqrt(variance)).argmax())
        means = x @ w
        reward = means[arm] + NOISE * rng.standard_normal(dtype=np.float32)
        regret += float(means.max() - means[arm])
        u, spread = direction[arm], 1 + variance[arm]
        theta = theta + u * ((reward - estimate[arm]) / spread)
        inverse = inverse - np.outer(u, u / spread)
    return regret


def coba(rounds: int) -> float:
    """coba's LinUCBLearner on the arms' own features."""
    from coba.learners import LinUCBLearner

    rng = np.random.default_rng(0)
    w = rng.random(DIM, dtype=np.float32)
    learner: Any = LinUCBLearner(alpha=1, features=["a"])
    regret = 0.0
    for x in draw_features(rng, rounds):
        actions = x.tolist()
        action, probability = learner.predict(None, actions)
        arm = actions.index(action)
        means = x @ w
        reward = float(means[arm] + NOISE * rng.standard_normal(dtype=np.float32))
        regret += float(means.max() - means[arm])
        learner.learn(None, action, reward, probability)
    return regret


def mabwiser(rounds: int) -> float:
    """MABWiser's LinUCB; it has one regression for each arm, so the offered arms are contexts of a single one."""
    from mabwiser.mab import MAB, LearningPolicy

    rng = np.random.default_rng(0)
    w = rng.random(DIM, dtype=np.float32)
    bandit = MAB(arms=[0], learning_policy=LearningPolicy.LinUCB(alpha=1, l2_lambda=1))
    bandit.fit([0], [0.0], np.zeros((1, DIM)))  # it must be fitted once; a zero vector teaches nothing
    regret = 0.0
    for x in draw_features(rng, rounds):
        scores = [row[0] for row in bandit.predict_expectations(x)]
        arm = int(np.argmax(scores))
        means = x @ w
        reward = float(means[arm] + NOISE * rng.standard_normal(dtype=np.float32))
        regret += float(means.max() - means[arm])
        bandit.partial_fit([0], [reward], x[arm : arm + 1])
    return regret
