"""An evaluation as tidy tables for pandas, polars and Parquet: an observation in each row, a quantity in each column.

    problems   agent, privileged, problem, regret                         who lost how much on which problem
    rounds     agent, privileged, round, regret, regret_stderr, …         mean curves
    agents     agent, privileged, problems, regret, regret_stderr, …      a row for each agent

All of them begin with the columns world and seed, so that tables of several evaluations can be put together.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from driftformer.errors import InputError, require_choice
from driftformer.simulation.summary import AgentSummary, Summary
from driftformer.storage.files import write_atomically

Of = Literal["problems", "rounds", "agents"]
Library = Literal["pandas", "polars"]

_EXTRA = "pip install 'driftformer[data]'"
_CURVES = {
    f"{quantity}{suffix}": f"{quantity}_curve{suffix}"
    for quantity in ("regret", "suboptimality")
    for suffix in ("", "_std", "_stderr")
}
"""Columns, and the curves that they hold."""


def tidy(summary: Summary, of: Of = "problems") -> dict[str, list[Any]]:
    """One of the tables, by column."""
    require_choice("of", of, _ROWS)
    rows = [
        {"world": summary.description, "seed": summary.seed, "agent": name, "privileged": row.privileged, **cells}
        for name, row in summary.agents.items()
        for cells in _ROWS[of](row)
    ]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _problems(row: AgentSummary) -> Iterator[dict[str, Any]]:
    for problem, regret in enumerate(row.regret_runs, 1):
        yield {"problem": problem, "regret": regret}


def _rounds(row: AgentSummary) -> Iterator[dict[str, Any]]:
    curves = [getattr(row, curve) for curve in _CURVES.values()]
    for t, values in enumerate(zip(*curves, strict=True), 1):
        yield {"round": t, **dict(zip(_CURVES, values, strict=True))}


def _agents(row: AgentSummary) -> Iterator[dict[str, Any]]:
    ends = {"regret": row.regret_mean, "regret_std": row.regret_std, "regret_stderr": row.regret_stderr}
    yield {"problems": row.runs, **ends}


_ROWS: dict[str, Callable[[AgentSummary], Iterator[dict[str, Any]]]] = {
    "problems": _problems,
    "rounds": _rounds,
    "agents": _agents,
}


def to_dataframe(summary: Summary, of: Of = "problems", library: Library | None = None) -> Any:
    """A table as a data frame of pandas or polars: the one that is installed, or the one that is named."""
    if library is not None:
        require_choice("library", library, ("pandas", "polars"))
    columns = tidy(summary, of)
    for name in (library,) if library else ("pandas", "polars"):
        try:
            return importlib.import_module(name).DataFrame(columns)
        except ImportError:
            continue
    raise InputError(f"to_dataframe needs {library or 'pandas or polars'}, which is not installed; {_EXTRA}")


def write_parquet(summary: Summary, path: Path, of: Of = "problems") -> None:
    """A table as a Parquet file."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError(f"to_parquet needs pyarrow, which is not installed; {_EXTRA}") from None
    page = io.BytesIO()
    pq.write_table(pa.table(tidy(summary, of)), page)
    write_atomically(path, page.getvalue())
