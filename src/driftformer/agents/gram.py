"""Ridge regression from its normal equations, for observations that fade under a ridge that does not.

What is kept is V = ridge·I + Σ w·xxᵀ and Σ w·r·x; each round factorises V by Cholesky and solves for all arms at once.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.agents.ridge import inner


def factorise(gram: Tensor) -> Tensor:
    """The lower Cholesky factor L of a matrix `[B, d, d]`."""
    factor: Tensor = torch.linalg.cholesky_ex(gram).L
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


def fade(gram: Tensor, features: Tensor, gamma: float, ridge: float) -> Tensor:
    """γV + xxᵀ + (1−γ)·ridge·I, in place: what was known fades, the ridge does not."""
    gram.mul_(gamma).addcmul_(features.unsqueeze(2), features.unsqueeze(1))
    gram.diagonal(dim1=1, dim2=2).add_((1 - gamma) * ridge)
    return gram
