"""A policy as one ONNX graph, for services without torch: a call reads the outcome of a round and says what to do next.

The graph takes what is on offer, the last outcome and the state, and gives the probabilities of the arms and the next
state. Nothing is hidden: a state is one tensor with a row for each problem, and begins as zeros. What it holds depends
on the form: a bank of regressions (query), or the keys and values of all tokens so far (pointer, paper).

The functions are those of every other use (`bank.py`, `incontext.py`); here they are only put in a row and traced.
"""

from __future__ import annotations

import dataclasses
import json
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from driftformer.errors import InputError, require_count
from driftformer.models.bank import Bank, empty, learn, predict, statistics
from driftformer.models.checkpoints import read_policy
from driftformer.models.incontext import InContextPolicy
from driftformer.models.query import QueryPolicy
from driftformer.policies import digest_of, folder_of
from driftformer.storage.files import write_atomically


class BankStep(nn.Module):
    """A round of the query form."""

    def __init__(self, policy: QueryPolicy, dim: int) -> None:
        super().__init__()
        self.policy = policy
        self._fresh = vars(empty(1, dim, torch.device("cpu"), torch.float32))  # each [1, …]
        self.size = sum(value.numel() for value in self._fresh.values())

    def forward(self, features: Tensor, played: Tensor, reward: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Probabilities `[B, A]` and the next state, from `[B, A, d]`, `[B, d]`, `[B]` and `[B, S]`."""
        before, after = self._unpacked(state), self._unpacked(state)
        once = torch.zeros_like(played[:, :1], dtype=torch.bool)  # [B, 1] the unit is set by arms on offer alone
        learn(after, predict(after, played.unsqueeze(1), once), once[:, 0].long(), reward.nan_to_num())
        told = ~reward.isnan()
        bank = Bank(**{name: _where(told, value, vars(before)[name]) for name, value in vars(after).items()})
        known = statistics(bank, predict(bank, features))
        return self.policy(known).logits.softmax(dim=1), torch.cat(_columns(bank), dim=1)

    def _unpacked(self, state: Tensor) -> Bank:
        """A copy of the state as a bank. Before the first reward only the unit of features is known."""
        sizes = [value.numel() for value in self._fresh.values()]
        parts = zip(self._fresh.items(), state.split(sizes, dim=1), strict=True)
        held = {name: part.reshape(-1, *value.shape[1:]) for (name, value), part in parts}
        begun = held["t"] > 0
        fields = {name: _where(begun, held[name], value) for name, value in self._fresh.items()}
        return Bank(**fields | {"unit": held["unit"].clone()})


def _columns(bank: Bank) -> list[Tensor]:
    return [value.reshape(value.shape[0], -1) for value in vars(bank).values()]


def _where(rows: Tensor, value: Tensor, other: Tensor) -> Tensor:
    """One of two values for each row, `[B, …]`."""
    return torch.where(rows.view(-1, *(1,) * (value.ndim - 1)), value, other)
