"""The plain versions that are plainly right: one problem, one round, one formula at a time, in float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class PlainRidge:
    """Ridge regression refitted from its whole history by solving the normal equations."""

    def __init__(self, dim: int, ridge: float, prior_mean: float = 0.0) -> None:
        self.prior_mean = np.full(dim, prior_mean)
        # Extended precision: ten thousand additions in float64 would err more than what is tested against them.
        self._gram = np.eye(dim, dtype=np.longdouble) * ridge
        self._moment = np.zeros(dim, dtype=np.longdouble)

    def learn(self, features: Vector, reward: float) -> None:
        x = features.astype(np.longdouble)
        self._gram += np.outer(x, x)
        self._moment += x * (np.longdouble(reward) - x @ self.prior_mean.astype(np.longdouble))

    @property
    def inverse(self) -> Vector:
        return np.linalg.inv(self._gram.astype(np.float64))

    @property
    def theta(self) -> Vector:
        return self.prior_mean + np.linalg.solve(self._gram.astype(np.float64), self._moment.astype(np.float64))


def linucb_bounds(model: PlainRidge, action_set: Vector, alpha: float) -> Vector:
    """xᵀθ̂ + α·√(xᵀA⁻¹x) of each arm."""
    inverse = model.inverse
    return np.array([x @ model.theta + alpha * np.sqrt(x @ inverse @ x) for x in action_set])
