"""Logs of decisions, read and checked row by row: the schema of docs/logs.md.

A row is a round. Errors name the column and the row, counted from 1 without the header.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from driftformer.agents.base import ProblemShape
from driftformer.agents.services.scaling import Scaler
from driftformer.errors import InputError
from driftformer.logs.columns import MOST_ARMS, Array, Columns
from driftformer.problem import Observation, Traits
from driftformer.storage.tables import read_table

COLUMNS = ("round", "arm", "reward", "propensity", "features", "context", "offered")
MOST_DIM = 4096
MOST_CHOICES = 2**26
"""Rows times arms: what a model expects of each is kept, 512 MiB."""
LARGEST = 1e6
"""Of features and rewards: beyond, agents that compute in float32 lose digits."""
LARGEST_RAW = 1e15
"""Of features that are brought to one scale first."""
_CLOSE = 0.02
"""How far p times the number of arms may be from 1 where arms were drawn uniformly: 0.33 will do for 1/3."""


@dataclass(frozen=True)
class Round:
    """A round of B recorded histories: what was on offer, which arm was played and what it brought."""

    observation: Observation
    arm: Tensor  # [B]
    reward: Tensor  # [B]


@dataclass(frozen=True)
class Log:
    """A log that has been checked; T rounds of one history."""

    label: str
    arms: int
    features: Array | None  # [T, A, d] of each arm
    context: Array | None  # [T, c] of each round, a constant included
    offered: NDArray[np.bool_] | None  # [T, A]; None where all arms always are
    arm: NDArray[np.int64]  # [T]
    reward: NDArray[np.float64]  # [T]
    propensity: NDArray[np.float64]  # [T]
    ignored: tuple[str, ...]  # columns without a meaning

    def __len__(self) -> int:
        return len(self.arm)

    @property
    def shape(self) -> ProblemShape:
        dim = self.arms
        if self.features is not None:
            dim = self.features.shape[2]
        elif self.context is not None:
            dim = self.arms * self.context.shape[1]
        return ProblemShape(1, len(self), self.arms, dim, torch.device("cpu"), torch.float32)

    @property
    def traits(self) -> Traits:
        return Traits(one_hot=self.features is None and self.context is None, same_arms=self.features is None)

    @property
    def choices(self) -> NDArray[np.int64]:
        """How many arms were on offer, `[T]`."""
        whole = np.full(len(self), self.arms, np.int64)
        return whole if self.offered is None else self.offered.sum(axis=1)

    @property
    def known_by(self) -> str:
        """What agents know of arms."""
        if self.features is not None:
            return "their features"
        return "their numbers only: no features or context" if self.context is None else "their numbers, in a context"

    @property
    def uniform(self) -> bool:
        """Whether every arm on offer was as likely as the others."""
        return not self.not_uniform

    @property
    def not_uniform(self) -> str:
        """The first propensity that shows that arms were not equally likely; empty if they were."""
        for row in np.flatnonzero(np.abs(self.propensity * self.choices - 1) > _CLOSE)[:1]:
            count = self.choices[row]
            return f"row {row + 1}: {self.propensity[row]:.2g} for an arm among {count} is not 1/{count}"
        return ""

    def rounds(self) -> Iterator[Round]:
        """The history. A context stands in a block for each arm, so that linear agents learn a model for each."""
        one_hot = torch.eye(self.arms)
        arms, rewards = torch.tensor(self.arm), torch.tensor(self.reward, dtype=torch.float32)
        for t in range(len(self)):
            if self.features is not None:
                seen = torch.from_numpy(self.features[t])
            elif self.context is not None:
                seen = torch.kron(one_hot, torch.from_numpy(self.context[t]))  # [A, A·c]
            else:
                seen = one_hot
            offered = None if self.offered is None else torch.from_numpy(self.offered[t : t + 1])
            yield Round(Observation(seen.unsqueeze(0), offered), arms[t : t + 1], rewards[t : t + 1])


def read_log(log: Any, *, uniform: bool = False, scale: bool = False) -> Log:
    """A log from a file, a pyarrow table, a data frame or a mapping of columns.

    With `uniform`, a log without propensities is one whose arms were drawn uniformly. With `scale`, features and
    contexts may have any units and missing values (see agents/services/scaling.py).
    """
    label, table = _table(log)
    columns = Columns(label, table)
    for name in ("round", "arm", "reward"):
        columns.require(name)
    if not len(table):
        raise columns.error("has no rows; give some")
    if not uniform and "propensity" not in columns.names:
        raise columns.error(
            "has no column 'propensity', the probability with which each arm was drawn; add it, or give uniform if all "
            "arms on offer were equally likely"
        )
    _check_order(columns)
    arm, reward = columns.whole("arm"), columns.numbers("reward", LARGEST)
    features, context, offered = _on_offer(columns, arm, scale)
    choices = offered.sum(axis=1)
    return Log(
        label=label,
        arms=offered.shape[1],
        features=features,
        context=context,
        offered=None if offered.all() else offered,
        arm=arm,
        reward=reward,
        propensity=_propensities(columns, choices, uniform) if "propensity" in columns.names else 1 / choices,
        ignored=tuple(name for name in columns.names if name not in COLUMNS),
    )


def _table(log: Any) -> tuple[str, Any]:
    import pyarrow as pa

    if isinstance(log, (str, Path)):
        path = Path(log).expanduser()
        return path.name, read_table(path, "log")
    try:
        return "table", log if isinstance(log, pa.Table) else pa.table(log)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError) as error:
        reason = str(error).partition("\n")[0][:200] or type(error).__name__
        raise InputError(f"log is no table ({reason}); give a .parquet or .csv file, or columns by name") from None


def _check_order(columns: Columns) -> None:
    rounds = columns.whole("round")
    for row in np.flatnonzero(rounds[1:] <= rounds[:-1])[:1] + 1:
        now, before = rounds[row], rounds[row - 1]
        problem = "is there twice" if now == before else f"comes after {before}"
        raise columns.bad_row("round", row, f"is {now}, which {problem}; sort the rows, and give each round once")


def _propensities(columns: Columns, choices: Array, uniform: bool) -> NDArray[np.float64]:
    given = columns.numbers("propensity", 1.0, above_zero=True)
    if uniform:
        for row in np.flatnonzero(np.abs(given * choices - 1) > _CLOSE)[:1]:
            problem = f"is {given[row]:g} with {choices[row]} arms on offer, which is not uniform; drop uniform"
            raise columns.bad_row("propensity", row, problem)
    return 1 / choices if uniform else given


def _on_offer(
    columns: Columns, arm: NDArray[np.int64], scale: bool
) -> tuple[Array | None, Array | None, NDArray[np.bool_]]:
    """Features of arms or a context, and which arms were on offer, `[T, A]`."""
    if "features" in columns.names and "context" in columns.names:
        raise columns.error("has both 'features' of arms and a 'context'; give one of the two")
    for row in np.flatnonzero(arm < 0)[:1]:
        raise columns.bad_row("arm", row, f"is {arm[row]}; arms are numbered from 0")
    listed = columns.lists("offered") if "offered" in columns.names else None
    features = context = None
    most = LARGEST_RAW if scale else LARGEST
    if "features" in columns.names:
        features, counts = columns.matrices("features", most, missing=scale)  # [T, A, d], [T]
        arms = features.shape[1]
    else:
        if "context" in columns.names:
            context = columns.vectors("context", most, missing=scale)  # [T, c]
        arms = int(max(arm.max(), -1 if listed is None else listed[1].max(initial=-1))) + 1
    if not 2 <= arms <= MOST_ARMS or arms * len(arm) > MOST_CHOICES:
        raise columns.error(
            f"has {arms:,} arms, numbered from 0, in {len(arm):,} rows; give 2 to {MOST_ARMS:,} arms, and at most "
            f"{MOST_CHOICES:,} rows times arms"
        )
    offered = np.ones((len(arm), arms), bool) if features is None else np.arange(arms) < counts[:, None]
    if listed is not None:
        offered &= _mask(columns, *listed, offered.shape)
    _check_arms(columns, arm, offered)
    if features is not None:
        features = _scaled(features, offered) if scale else features
        dim = features.shape[2]
    elif context is not None:
        always = np.ones((len(context), 1), bool)
        context = _scaled(context[:, None], always)[:, 0] if scale else _with_constant(context)
        dim = arms * context.shape[1]
    if (features is not None or context is not None) and dim > MOST_DIM:
        raise columns.error(
            f"needs {dim:,} dimensions for {arms} arms; at most {MOST_DIM:,} will do: drop some columns"
        )
    return features, context, offered


def _mask(columns: Columns, row: Array, named: Array, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Which arms are on offer, `[T, A]`, from their numbers and the rows that name them."""
    for place in np.flatnonzero((named < 0) | (named >= shape[1]))[:1]:
        problem = f"names arm {named[place]}, but there are {shape[1]}; count from 0"
        raise columns.bad_row("offered", row[place], problem)
    mask = np.zeros(shape, bool)
    mask[row, named] = True
    for twice in np.flatnonzero(mask.sum(axis=1) < np.bincount(row, minlength=shape[0]))[:1]:
        raise columns.bad_row("offered", twice, "names an arm twice; name each once")
    return mask


def _check_arms(columns: Columns, arm: Array, offered: NDArray[np.bool_]) -> None:
    arms = offered.shape[1]
    fits = (arm < arms) & offered[np.arange(len(arm)), arm.clip(max=arms - 1)]
    for row in np.flatnonzero(~fits)[:1]:
        some = ", ".join(map(str, np.flatnonzero(offered[row])[:8])) or "none"
        raise columns.bad_row("arm", row, f"is {arm[row]}, which was not offered; on offer: {some}")


def _with_constant(context: Array) -> Array:
    return np.concatenate([context, np.ones((len(context), 1), np.float32)], axis=1)


def _scaled(rows: Array, there: NDArray[np.bool_]) -> Array:
    """Features `[T, A, 2·c + 1]` of raw columns `[T, A, c]`, by what was seen up to each round."""
    width = rows.shape[2]
    scaler, scaled = Scaler.fresh(width), np.zeros((*rows.shape[:2], Scaler.width(width)), np.float32)
    for t, on_offer in enumerate(there):
        scaler = scaler.after(rows[t, on_offer])
        scaled[t, on_offer] = scaler.scale(rows[t, on_offer])
    return scaled
