"""Raw columns as features: any units, missing values, numbers of any size; and a context as features of all arms.

A column becomes (x − mean) / standard deviation, by what was seen of it so far, this round included; a missing value
(NaN) counts as the mean, and a second column says that it was missing; a constant closes the row, so that agents
without an intercept have one. Values further than ten standard deviations from the mean count as that far.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from driftformer.errors import InputError

_FARTHEST = 10.0
_MOST_NUMBERS = 2**27

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scaler:
    """Means and spreads of columns, over all arms of all rounds so far."""

    seen: Array  # [columns] values that were there
    mean: Array  # [columns]
    squares: Array  # [columns] squared deviations from the mean

    @staticmethod
    def fresh(columns: int) -> Scaler:
        return Scaler(np.zeros(columns), np.zeros(columns), np.zeros(columns))

    @staticmethod
    def width(columns: int) -> int:
        """How many features come of so many columns."""
        return 2 * columns + 1

    def after(self, rows: Array) -> Scaler:
        """With rows `[n, columns]` taken in: Chan's formula, so that a large mean takes no digits from the spread."""
        there = ~np.isnan(rows)
        count = there.sum(axis=0)
        mean = np.where(there, rows, 0.0).sum(axis=0) / np.maximum(count, 1)
        squares = (np.where(there, rows - mean, 0.0) ** 2).sum(axis=0)
        both = np.maximum(self.seen + count, 1)
        apart = np.where(count > 0, mean - self.mean, 0.0)
        return Scaler(
            seen=self.seen + count,
            mean=self.mean + apart * count / both,
            squares=self.squares + squares + apart**2 * self.seen * count / both,
        )

    def scale(self, rows: Array) -> Array:
        """Features `[…, width]` of rows `[…, columns]`."""
        missing = np.isnan(rows)
        spread = np.sqrt(self.squares / np.maximum(self.seen, 1))
        steps = np.where(missing, 0.0, rows - self.mean)
        scaled = np.divide(steps, spread, out=np.zeros_like(steps), where=spread > 0)
        constant = np.ones((*rows.shape[:-1], 1))
        return np.concatenate([scaled.clip(-_FARTHEST, _FARTHEST), missing.astype(np.float64), constant], axis=-1)


def in_blocks(contexts: Array, arms: int) -> Array:
    """Features `[U, A, A·c]` of contexts `[U, c]`: each arm's are in columns of its own, so that linear agents learn a
    model for each."""
    users, size = contexts.shape
    if users * arms * arms * size > _MOST_NUMBERS:
        raise InputError(f"features has {size} numbers for each of {arms} arms and {users} users; give fewer at once")
    blocks = np.zeros((users, arms, arms, size))
    blocks[:, range(arms), range(arms)] = contexts[:, np.newaxis]
    return blocks.reshape(users, arms, arms * size)
