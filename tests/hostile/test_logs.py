"""Logs from strangers: files cut, flipped or made up, and columns with anything in their cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, parquet

from driftformer.logs.read import Log, read_log
from tests.hostile.strategies import damaged, fuzz, json_values, loads_or_refuses

ROWS = 8
COLUMNS: dict[str, list[Any]] = {
    "round": list(range(ROWS)),
    "arm": [0, 1] * (ROWS // 2),
    "reward": [0.5] * ROWS,
    "propensity": [0.5] * ROWS,
    "offered": [[0, 1]] * ROWS,
    "features": [[[1.0, 2.0], [3.0, 4.0]]] * ROWS,
}


@pytest.fixture(params=["parquet", "csv"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"log.{request.param}"
    if request.param == "parquet":
        parquet.write_table(pa.table(COLUMNS), path)
    else:
        csv.write_csv(pa.table({name: [str(cell) for cell in cells] for name, cells in COLUMNS.items()}), path)
    return path


def check(log: Log | None) -> None:
    """A log that was read holds nothing that an agent could trip over."""
    if log is None:
        return
    assert log.arms >= 2
    assert np.isfinite(log.reward).all()
    assert ((log.propensity > 0) & (log.propensity <= 1)).all()
    assert len(list(log.rounds())) == len(log)
    for now in log.rounds():
        assert bool(now.observation.action_set.isfinite().all())
        offered = now.observation.offered
        assert 0 <= int(now.arm) < log.arms
        assert offered is None or bool(offered[0, now.arm])


@fuzz
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_in_words(path: Path, data: st.DataObject) -> None:
    whole = path.read_bytes()
    try:
        path.write_bytes(data.draw(damaged(whole)))
        check(loads_or_refuses(lambda: read_log(path)))
    finally:
        path.write_bytes(whole)


@fuzz
@given(data=st.data())
def test_columns_of_anything_are_read_or_refused_in_words(data: st.DataObject) -> None:
    columns = dict(COLUMNS)
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from([*COLUMNS, "context"]))
        cells = list(columns.get(name, COLUMNS["offered"]))
        if cells and data.draw(st.booleans()):
            cells[data.draw(st.integers(0, len(cells) - 1))] = data.draw(json_values)
        else:
            cells = [data.draw(json_values)] * data.draw(st.sampled_from([ROWS, ROWS, 0]))
        columns[name] = cells
        if len(columns) > 1 and data.draw(st.booleans()):
            columns.pop(data.draw(st.sampled_from(list(columns))))
    uniform, scale = data.draw(st.booleans()), data.draw(st.booleans())
    check(loads_or_refuses(lambda: read_log(columns, uniform=uniform, scale=scale)))
