"""RM, the restart mechanism (Section 4.1): where a change is signalled, begin again with an empty memory.

A state is a dataclass of tensors, or tuples of them, with one row per problem, nested at will, so restarting some
problems means giving their rows the values they had at the start. The same few functions serve MASTER's bank of
instances, which is nothing but a state with more rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

State = TypeVar("State")


def _each(function: Callable[..., Tensor], *states: Any) -> Any:
    """Apply a function to the corresponding tensors of states of the same kind; what is no tensor stays."""
    first = states[0]
    if isinstance(first, Tensor):
        return function(*states)
    if isinstance(first, tuple):
        return tuple(_each(function, *items) for items in zip(*states, strict=True))
    if not dataclasses.is_dataclass(first):
        return first
    names = [field.name for field in dataclasses.fields(first)]
    values = {name: _each(function, *(getattr(state, name) for state in states)) for name in names}
    return dataclasses.replace(cast(Any, first), **values)


def split_rows(state: State, parts: int) -> State:
    """Rows `[B·M, …]` as `[B, M, …]`, without copying."""
    return cast(State, _each(lambda tensor: tensor.unflatten(0, (-1, parts)), state))


def join_rows(state: State) -> State:
    """Rows `[B, M, …]` as `[B·M, …]`, without copying."""
    return cast(State, _each(lambda tensor: tensor.flatten(0, 1), state))


def take_rows(state: State, rows: Tensor) -> State:
    """A copy of some rows."""
    return cast(State, _each(lambda tensor: tensor.index_select(0, rows), state))


def put_rows(state: State, rows: Tensor, values: State) -> State:
    """Write rows into a state, in place."""
    return cast(State, _each(lambda tensor, new: tensor.index_copy_(0, rows, new), state, values))


def append_rows(state: State, more: State) -> State:
    """All rows of one state, then all of the other."""
    return cast(State, _each(lambda *tensors: torch.cat(tensors), state, more))


def restart(state: State, signal: Tensor, fresh: State) -> State:
    """RM itself, in place: where the change signal C_t `[B]` is set, rows have the value of `fresh`, a state of one."""
    rows = signal.nonzero().squeeze(1)
    if rows.numel() == 0:
        return state
    copies: State = _each(lambda first: first.expand(len(rows), *first.shape[1:]), fresh)
    return put_rows(state, rows, copies)
