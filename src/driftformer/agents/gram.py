"""Ridge regression from its normal equations: where observations fade or leave, no rank-one formula is safe.

What is kept is Σ w·xxᵀ and Σ w·r·x; each round factorises Σ w·xxᵀ + ridge·I by Cholesky and solves for all arms.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.agents.base import pick
from driftformer.agents.ridge import inner


@dataclass(frozen=True)
class ValueInfo:
    """What an agent that chooses by one value for each arm hands on."""

    values: Tensor  # [B, A]
    arm: Tensor  # [B]

    @property
    def auxiliary_value(self) -> Tensor:
        """The value of the chosen arm, `[B]`."""
        return pick(self.values, self.arm)


def choose(values: Tensor) -> tuple[Tensor, ValueInfo]:
    """The arm with the largest value."""
    arm = values.argmax(dim=1)
    return arm, ValueInfo(values, arm)


def factorise(gram: Tensor, ridge: float) -> Tensor:
    """The lower Cholesky factor L of gram + ridge·I, `[B, d, d]`."""
    eye = torch.eye(gram.shape[1], device=gram.device, dtype=gram.dtype)
    factor: Tensor = torch.linalg.cholesky_ex(torch.add(gram, eye, alpha=ridge)).L
    return factor


def whiten(factor: Tensor, rows: Tensor) -> Tensor:
    """L⁻¹x of each row x, `[B, A, d]`."""
    whitened: Tensor = torch.linalg.solve_triangular(factor.mT, rows, upper=True, left=False)
    return whitened


def unwhiten(factor: Tensor, rows: Tensor) -> Tensor:
    """L⁻ᵀy of each row y, `[B, A, d]`: after `whiten`, the inverse times x."""
    solved: Tensor = torch.linalg.solve_triangular(factor, rows, upper=False, left=False)
    return solved


def predict(factor: Tensor, action_set: Tensor, moment: Tensor) -> tuple[Tensor, Tensor]:
    """The mean xᵀθ̂ `[B, A]` and L⁻¹x `[B, A, d]` of each arm, in one triangular solve."""
    solved = whiten(factor, torch.cat([action_set, moment.unsqueeze(1)], dim=1))
    whitened = solved[:, :-1]
    return inner(whitened, solved[:, -1]), whitened


def add_outer(gram: Tensor, features: Tensor, sign: float = 1.0) -> Tensor:
    """gram ± xxᵀ, in place."""
    return gram.addcmul_(features.unsqueeze(2), features.unsqueeze(1), value=sign)
