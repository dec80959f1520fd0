"""Tables for bandits: the built-in ones, files and arrays, checked cell by cell and brought to one scale.

Errors name the column and the row, counted from 1 without the header.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftformer.environments.table_sources import BUILT_IN, built_in
from driftformer.errors import LARGEST, InputError, shown, unknown_name
from driftformer.storage.fingerprint import identify
from driftformer.storage.tables import read_table

Array = NDArray[Any]

MOST_ROWS, MOST_CLASSES = 10**6, 1000
LARGEST_FEATURE = 2.5


@dataclass(frozen=True)
class TableData:
    """A table that can be played; two with the same content are equal."""

    label: str = field(compare=False)  # for people
    contexts: Array = field(compare=False, repr=False)  # [N, c] float64, standardised
    pays: Array = field(compare=False, repr=False)  # [N] each row's class, or [N, A] each arm's reward
    arms: int
    content: tuple[str, str]  # the fingerprints of features and classes or rewards as they were given


def load(
    data: Any, target: str = "", rewards: Sequence[str] = (), drop: Sequence[str] = (), fill: bool = False
) -> TableData:
    """A built-in table, a file less the columns to drop, or a pair of arrays; features may be missing with `fill`."""
    if not isinstance(fill, bool):
        raise InputError(f"fill is {shown(fill)}; give True or False")
    known = isinstance(data, str) and data in BUILT_IN
    if isinstance(data, (str, Path)) and not known:
        label = Path(data).name
        return _make(
            label, *_split(_read(Path(data).expanduser(), str(data)), label, target, rewards, drop, fill), fill
        )
    label = data if known else "arrays"
    if target or rewards or drop:
        raise InputError(
            f"data is {label}, whose columns have no names; leave out target, rewards and drop, or give a file"
        )
    features, paid = built_in(data) if known else _arrays(data)
    pays = {"classes": paid} if paid.ndim == 1 else _named("reward", paid)
    return _make(label, _named("feature", features), pays, fill)


def _named(kind: str, table: Array) -> dict[str, Array]:
    return {f"{kind} {place}": column for place, column in enumerate(table.T, 1)}


def _make(label: str, columns: dict[str, Array], pays: dict[str, Array], fill: bool) -> TableData:
    """Check the columns of features and those of classes (one) or rewards (one for each arm)."""
    rows = len(next(iter(pays.values())))
    if not rows or not columns:
        raise InputError(f"data is {label}, which has {rows} rows and {len(columns)} columns of features; give some")
    if rows > MOST_ROWS:
        raise InputError(f"data is {label}, which has {rows:,} rows; give at most {MOST_ROWS:,}")
    features = np.stack(
        [_numbers(label, name, column, fill=fill) for name, column in columns.items()], axis=1
    )  # [N, c]
    features = _filled(features) if fill else features
    if len(pays) == 1:
        paid, arms = _classes(label, *pays.popitem())
    else:
        paid = np.stack([_numbers(label, name, column, LARGEST) for name, column in pays.items()], axis=1)  # [N, A]
        arms = len(pays)
    return TableData(label, _standardised(features), paid, arms, (identify(features), identify(paid)))


def _filled(features: Array) -> Array:
    """Missing features as the mean of their column, and another column for each that says where they were."""
    missing = np.isnan(features)
    means = np.where(missing, 0.0, features).sum(axis=0) / np.maximum((~missing).sum(axis=0), 1)
    return np.concatenate([np.where(missing, means, features), missing[:, missing.any(axis=0)]], axis=1)


def _standardised(features: Array) -> Array:
    """Mean 0 and standard deviation ½ over the table, within ±2.5; a constant column becomes 0.

    So 95% of a normal feature lie in [-1, 1], where those of the other environments are.
    """
    unit = features / np.maximum(np.abs(features).max(axis=0), np.finfo(float).tiny)  # huge numbers would overflow
    spread = np.where(unit.min(axis=0) < unit.max(axis=0), unit.std(axis=0), np.inf)
    bounded: Array = ((unit - unit.mean(axis=0)) / (2 * spread)).clip(-LARGEST_FEATURE, LARGEST_FEATURE)
    return bounded


def _numbers(label: str, name: str, column: Array, most: float = np.finfo(float).max, *, fill: bool = False) -> Array:
    """A column as float64, finite in every row, or NaN where it is to be filled."""
    if column.dtype.kind not in "biuf":
        cells = column.astype(object)
        bad = [row for row, cell in enumerate(cells) if not isinstance(cell, (Real, Decimal))]
        if bad:  # text as a whole, perhaps for a single cell: name that one
            row = min(bad, key=lambda row: (fill and cells[row] is None, _reads_as_number(cells[row])))
            problem = f"is {shown(cells[row])}, not a number; name the column in drop, or encode it"
            raise _bad_cell(label, name, row, MISSING if cells[row] is None else problem)
    numbers = column.astype(np.float64)
    for row in np.flatnonzero(~((np.abs(numbers) <= most) | (np.isnan(numbers) & fill)))[:1]:
        problem = f"is {numbers[row]:g}; give finite numbers of at most {most:.3g}"
        raise _bad_cell(label, name, row, MISSING if np.isnan(numbers[row]) else problem)
    return numbers


def _reads_as_number(cell: Any) -> bool:
    try:
        return isinstance(cell, str) and float(cell) is not None
    except ValueError:
        return False


def _classes(label: str, name: str, column: Array) -> tuple[Array, int]:
    """Each row's class as a number from 0, in sorted order, and how many there are."""
    cells = column.tolist()
    for row, cell in enumerate(cells):
        if cell is None or cell == "" or cell != cell:  # NaN alone differs from itself
            raise _bad_cell(label, name, row, MISSING)
    try:
        number = {value: place for place, value in enumerate(sorted(set(cells)))}
    except TypeError:
        raise InputError(f"data is {label}: {name} mixes kinds of values; give text or numbers as classes") from None
    if len(number) == 1:
        raise InputError(f"data is {label}: {name} has one class only, {shown(cells[0])}; a bandit needs two or more")
    if len(number) > MOST_CLASSES:
        raise InputError(
            f"data is {label}: {name} has {len(number):,} classes, and at most {MOST_CLASSES:,} can be arms; "
            "choose another target"
        )
    return np.array([number[cell] for cell in cells], np.int64), len(number)


MISSING = "is missing; fill it in or leave the row out (features may be missing with fill)"


def _bad_cell(label: str, name: str, row: int, problem: str) -> InputError:
    return InputError(f"data is {label}: {name}, row {row + 1} {problem}")


def _arrays(data: Any) -> tuple[Array, Array]:
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise InputError(f"data is {shown(data)}; give a built-in table, a file, or two arrays (features, classes)")
    try:
        features, paid = np.asarray(data[0]), np.asarray(data[1])
    except (TypeError, ValueError) as error:
        raise InputError(f"data has something that NumPy cannot read ({error}); give arrays") from None
    if features.ndim != 2 or paid.ndim not in (1, 2) or len(features) != len(paid) or paid.shape[1:] in ((0,), (1,)):
        raise InputError(
            f"data has arrays of shapes {list(features.shape)} and {list(paid.shape)}; "
            "give features [N, c] with classes [N] or with rewards [N, A] of two or more arms"
        )
    return features, paid


def _split(
    table: Any, label: str, target: str, rewards: Sequence[str], drop: Sequence[str], fill: bool
) -> tuple[dict[str, Array], dict[str, Array]]:
    """A file's columns of features, and those of classes or rewards."""
    names = table.column_names
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"data is {label}: two columns are called '{twice[0]}'; rename one")
    if len(names) < 2:
        raise InputError(f"data is {label}, which has one column, {shown(names[0])}; add columns of features")
    for option, given in (("rewards", rewards), ("drop", drop)):
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise InputError(f"{option} is {shown(given)}; give a list of columns")
    for name in drop:
        if name not in names:
            raise unknown_name("drop", str(name), names)
        if name in (target, *rewards):
            raise InputError(f"drop has {shown(name)}, which is the target or a reward; leave it out of drop")
    names = [name for name in names if name not in drop]
    if not names:
        raise InputError("drop leaves no column; name fewer")
    if rewards and target:
        raise InputError(f"target is {shown(target)}, but rewards are given too; drop one of the two")
    if rewards and len(set(rewards)) != max(2, len(rewards)):
        raise InputError(f"rewards is {shown(tuple(rewards))}; give two or more different columns, one for each arm")
    paid = list(rewards) or [target or names[-1]]
    for name in paid:
        if name not in names:
            raise unknown_name("rewards" if rewards else "target", str(name), names)
    cells = {name: _cells(table.column(name), label, name, fill and name not in paid) for name in names}
    pays = {f"column '{name}'": cells.pop(name) for name in paid}
    return {f"column '{name}'": column for name, column in cells.items()}, pays


def _cells(column: Any, label: str, name: str, fill: bool) -> Array:
    """A column's cells: numbers as such, all else as Python's values; none is missing, or NaN if it is to be filled."""
    import pyarrow as pa

    if column.null_count and not fill:
        raise _bad_cell(label, f"column '{name}'", column.is_null().to_pylist().index(True), MISSING)
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    kinds += (pa.types.is_decimal, pa.types.is_null) if fill else ()
    if any(test(column.type) for test in kinds):
        return np.asarray((column.cast(pa.float64()) if column.null_count else column).to_numpy())
    cells = np.empty(len(column), dtype=object)
    cells[:] = column.to_pylist()
    return cells


def _read(path: Path, asked: str) -> Any:
    """The table in a file, as pyarrow's; `asked` may be a built-in table's name with a slip in it."""
    if not path.suffix and not path.exists():
        raise unknown_name("data", asked, (*BUILT_IN, "FILE.csv", "FILE.parquet"))
    return read_table(path, "data")
