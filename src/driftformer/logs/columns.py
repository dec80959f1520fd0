"""The columns of a log as arrays: numbers, lists of numbers, lists of such lists, or an error that names the row."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftformer.errors import InputError, shown

Array = NDArray[Any]

MOST_ARMS = 1000
MOST_NUMBERS = 2**28
"""Numbers in all features of a log, arms that were not on offer included: 1 GiB."""


class Columns:
    """A table whose columns have names of their own."""

    def __init__(self, label: str, table: Any) -> None:
        self._label, self._table = label, table
        self.names: list[str] = table.column_names
        for name in self.names:
            if self.names.count(name) > 1:
                raise self.error(f"has two columns called {shown(name)}; rename one")

    def error(self, problem: str) -> InputError:
        return InputError(f"log {self._label} {problem}")

    def bad_row(self, name: str, row: int, problem: str) -> InputError:
        """What is wrong in a row, counted from 0 here and from 1 in the message."""
        return InputError(f"log {self._label}: column '{name}', row {row + 1} {problem}")

    def require(self, name: str) -> None:
        if name not in self.names:
            there = ", ".join(self.names[:8]) or "none"
            raise self.error(
                f"has no column '{name}' (it has {shown(there)}); see docs/logs.md for what a log looks like"
            )

    def numbers(self, name: str, most: float, *, above_zero: bool = False) -> NDArray[np.float64]:
        """A column of numbers of at most that size."""
        return self._numbers(name, self._column(name), most, int, above_zero=above_zero)

    def whole(self, name: str) -> NDArray[np.int64]:
        """A column of whole numbers."""
        return self._whole(name, self._column(name), int)

    def lists(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The row of each of the whole numbers that a column of lists holds, and the numbers."""
        lengths, inside = self._opened(name, self._parsed(name), int)
        row = np.repeat(np.arange(len(lengths)), lengths)
        return row, self._whole(name, inside, lambda place: int(row[place]))

    def vectors(self, name: str, most: float, *, missing: bool) -> Array:
        """A column of lists of equally many numbers, `[T, c]`; `missing` ones may be allowed, and become NaN."""
        lengths, inside = self._opened(name, self._parsed(name), int)
        width = int(lengths[0])
        for row in np.flatnonzero(lengths != width)[:1]:
            raise self.bad_row(name, row, f"has {lengths[row]} numbers, but row 1 has {width}; give equally many")
        if not width:
            raise self.bad_row(name, 0, "is an empty list; give at least one number, or drop the column")
        return self._features(name, inside, most, missing, lambda place: place // width).reshape(-1, width)

    def matrices(self, name: str, most: float, *, missing: bool) -> tuple[Array, NDArray[np.int64]]:
        """A column of lists of arms, each a list of equally many numbers: `[T, A, d]`, and how many arms, `[T]`."""
        counts, arms = self._opened(name, self._parsed(name), int)
        for empty in np.flatnonzero(counts == 0)[:1]:
            raise self.bad_row(name, empty, "has no arm; give one at least")
        row = np.repeat(np.arange(len(counts)), counts)  # of each arm
        lengths, inside = self._opened(name, arms, lambda place: int(row[place]))
        width, most_arms = int(lengths[0]), int(counts.max())
        for place in np.flatnonzero(lengths != width)[:1]:
            problem = (
                f"has an arm with {lengths[place]} features, but the first arm of all has {width}; give equally many"
            )
            raise self.bad_row(name, row[place], problem)
        if not width:
            raise self.bad_row(name, 0, "has an arm without features; give one at least, or drop the column")
        if most_arms > MOST_ARMS or len(counts) * most_arms * width > MOST_NUMBERS:
            raise self.error(
                f"has {len(counts):,} rows of up to {most_arms:,} arms with {width:,} features; give at most "
                f"{MOST_ARMS:,} arms and {MOST_NUMBERS:,} numbers in all"
            )
        values = self._features(name, inside, most, missing, lambda place: int(row[place // width]))
        padded = np.zeros((len(counts), most_arms, width), values.dtype)
        padded[np.arange(most_arms) < counts[:, None]] = values.reshape(-1, width)
        return padded, counts

    def _column(self, name: str) -> Any:
        """A column in one piece."""
        return self._table.column(name).combine_chunks()

    def _numbers(
        self, name: str, cells: Any, most: float, row_of: Callable[[int], int], *, above_zero: bool = False
    ) -> NDArray[np.float64]:
        import pyarrow as pa

        self._none_missing(name, cells, row_of)
        kind = cells.type
        if pa.types.is_decimal(kind):
            cells = cells.cast(pa.float64())
        elif not _is_number(kind) and len(cells):
            raise self.bad_row(name, row_of(0), f"is {shown(cells[0].as_py())}, of type {kind}; give numbers")
        numbers = cells.to_numpy(zero_copy_only=False).astype(np.float64)  # also of no cells at all
        fine = (np.abs(numbers) <= most) & ((numbers > 0) | (not above_zero))
        for place in np.flatnonzero(~fine)[:1]:
            limits = f"{'above 0 and' if above_zero else 'of'} at most {most:g}"
            raise self.bad_row(name, row_of(place), f"is {numbers[place]:g}; give a finite number {limits}")
        return np.asarray(numbers)

    def _whole(self, name: str, cells: Any, row_of: Callable[[int], int]) -> NDArray[np.int64]:
        import pyarrow as pa

        if pa.types.is_signed_integer(cells.type):  # exactly, however large
            self._none_missing(name, cells, row_of)
            return np.asarray(cells.to_numpy(zero_copy_only=False), np.int64)
        numbers = self._numbers(name, cells, 2.0**53, row_of)
        for place in np.flatnonzero(numbers != np.floor(numbers))[:1]:
            raise self.bad_row(name, row_of(place), f"is {numbers[place]:g}; give whole numbers")
        return numbers.astype(np.int64)

    def _features(self, name: str, cells: Any, most: float, missing: bool, row_of: Callable[[int], int]) -> Array:
        """Numbers in lists: as float32, or as float64 with NaN for those that are missing."""
        import pyarrow as pa

        if not missing:
            try:
                return self._numbers(name, cells, most, row_of).astype(np.float32)
            except InputError as error:
                raise InputError(f"{error} (scale takes raw columns, also with missing numbers)") from None
        if not (_is_number(cells.type) or pa.types.is_null(cells.type)):
            raise self.bad_row(name, row_of(0), f"is of type {cells.type}; give numbers")
        values = cells.to_numpy(zero_copy_only=False).astype(np.float64)
        for place in np.flatnonzero(np.abs(values) > most)[:1]:
            raise self.bad_row(name, row_of(place), f"is {values[place]:g}; give at most {most:g}")
        return np.asarray(values)

    def _parsed(self, name: str) -> Any:
        """A column of lists; in CSV they are written as JSON."""
        import pyarrow as pa

        column = self._column(name)
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            return column
        self._none_missing(name, column, int)
        lists = []
        for row, cell in enumerate(column.to_pylist()):
            try:
                lists.append(json.loads(cell))
            except (ValueError, RecursionError):
                lists.append(None)
            if not isinstance(lists[-1], list):
                raise self.bad_row(name, row, f"is {shown(cell)}; write lists as JSON, as in [1, 0.5]")
        try:
            return pa.array(lists)
        except (pa.ArrowException, OverflowError, RecursionError):
            raise self.error(f"has a column '{name}' whose lists differ in kind; give numbers in all of them") from None

    def _opened(self, name: str, column: Any, row_of: Callable[[int], int]) -> tuple[NDArray[np.int64], Any]:
        """The lengths of lists, and what is in them one after the other."""
        import pyarrow as pa
        from pyarrow import compute

        if not any(
            test(column.type) for test in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
        ):
            wanted = "lists of arms, each a list of numbers" if name == "features" else "lists of numbers"
            raise self.error(f"has a column '{name}' of type {column.type}; give {wanted}")
        self._none_missing(name, column, row_of)
        lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
        return lengths.astype(np.int64), compute.list_flatten(column)

    def _none_missing(self, name: str, cells: Any, row_of: Callable[[int], int]) -> None:
        if cells.null_count:
            place = int(np.argmax(cells.is_null().to_numpy(zero_copy_only=False)))
            raise self.bad_row(name, row_of(place), "has a missing value; fill it in or leave the row out")


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))
