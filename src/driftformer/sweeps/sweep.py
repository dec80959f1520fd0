"""Sweeps: every agent in every cell of a grid, as one tidy table.

    OUT/sweep.json           the grid, the runs and the seed of the latest call
    OUT/cells/CELL/          results of one environment (see `results.py`); a second call computes only what is missing
    OUT/table.parquet        a row for each cell and agent
    OUT/regret.png, .svg     a heatmap of two varied fields, or lines along one
    OUT/events.jsonl         what happened: starts, retries, ends

All cells share the seed, so every row has the same problems and noise, as far as their sizes agree. The tasks of all
cells form one stream, so many small cells keep as many workers busy as one large one.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table

from driftformer.environments.registry import make_env
from driftformer.errors import InputError
from driftformer.evaluation.evaluate import Plan, Task, compute
from driftformer.evaluation.fitting import FittingTable
from driftformer.evaluation.progress import Progress, rounds_by_agent
from driftformer.plots import sweeps as figures
from driftformer.simulation.engines import Engine, opened
from driftformer.simulation.numbers import number
from driftformer.storage.events import sitting
from driftformer.storage.files import require_new_folder, tidy, write_atomically, write_json
from driftformer.sweeps.grid import OPTION, Grid

ABOUT = "sweep.json"
TABLE = "table.parquet"

Row = dict[str, Any]

_MAY_BE_NONE = ("regret_stderr", "regret_low", "regret_high", "rounds_per_cpu_second")
_TYPES = {"seed": pa.uint64(), **dict.fromkeys(_MAY_BE_NONE, pa.float64())}
"""Of columns whose values do not tell it."""

_SHOWN = 30
"""Rows that are printed."""

_NINETY_FIVE = 1.959963984540054
"""Standard errors on either side of a 95% interval of a mean."""


def sweep(
    grid: Grid,
    out: Path,
    *,
    workers: int | None = None,
    engine: str | Engine = "local",
    address: str | None = None,
    progress: bool | None = None,
) -> list[Row]:
    """Compute what is missing and write the table; `workers`, `engine` and `address` are those of `evaluate`."""
    if not (out / ABOUT).exists():
        require_new_folder(out, "sweep")
    tidy(out)
    missing: Counter[str] = Counter()  # rounds, by agent
    chunks = 0
    for settings in grid.cells():  # before anything is computed: can it be played, and are stored results whole?
        plan = _plan(grid, settings, out, stored=False)
        chunks += plan.chunks_missing
        missing.update(rounds_by_agent(plan.tasks(workers=1)))
    if not (out / ABOUT).exists():
        write_json(out / ABOUT, vars(grid))
    rows: dict[int, list[Row]] = {}  # by the place of their cell
    under_way: dict[int, tuple[int, dict[str, Any], Plan]] = {}  # cells, by the identity of their tasks

    def tasks(workers: int) -> Iterator[Task]:
        """Cells are planned when their turn comes, and forgotten when their rows are done."""
        for place, settings in enumerate(grid.cells()):
            plan = _plan(grid, settings, out)
            if not plan.chunks_missing:
                rows[place] = _rows(grid, settings, plan)
            for task in plan.tasks(workers):
                under_way[id(task)] = place, settings, plan
                yield task

    title = f"{grid.size:,} rows"
    with (
        opened(engine, workers, address) as crew,
        sitting(out, engine=crew.name, rows=grid.size, runs=grid.runs, seed=grid.seed) as events,
        Progress(missing, title, progress, crew.workers if chunks else 1, chunks=chunks, events=events) as bar,
    ):
        each = max(1, -(-crew.workers // grid.size))  # workers for an agent of a cell, if all are under way at once
        for task, outcome in crew.run(compute, tasks(each), bar.played, bar.tell):
            place, settings, plan = under_way.pop(id(task))
            plan.take(task, outcome)
            bar.finished(task)
            if not plan.chunks_missing:
                rows[place] = _rows(grid, settings, plan)
    found = [row for place in sorted(rows) for row in rows[place]]
    write_json(out / ABOUT, vars(grid))
    write_table(found, out / TABLE)
    return found


def _plan(grid: Grid, settings: Mapping[str, Any], out: Path, stored: bool = True) -> Plan:
    """The evaluation of one cell; unless it is `stored`, only what is there is looked at."""
    folder = out / "cells" / cell_name(settings)
    agents = [variant.written for variant in grid.variants()]
    environment = make_env(grid.environment, **settings)
    return Plan(environment, agents, runs=grid.runs, seed=grid.seed, out=folder if stored or folder.exists() else None)


def _rows(grid: Grid, settings: Mapping[str, Any], plan: Plan) -> list[Row]:
    """One cell that is done: a row for each agent. A single run has no uncertainty."""
    timing, rows = plan.keep_timing(), []
    for variant, (name, found) in zip(grid.variants(), plan.regrets().items(), strict=True):
        mean, stderr = float(found.regret.mean[-1]), float(found.regret.stderr[-1])
        reach = _NINETY_FIVE * stderr
        options = {key: variant.options.get(key.removeprefix(OPTION)) for key in grid.vary if key.startswith(OPTION)}
        rows.append(
            {
                "environment": grid.environment,
                **settings,
                "agent": variant.agent,
                **options,
                "label": variant.written,
                "horizon": plan.environment.horizon,
                "runs": grid.runs,
                "seed": grid.seed,
                "regret_mean": mean,
                "regret_stderr": stderr if grid.runs > 1 else None,
                "regret_low": mean - reach if grid.runs > 1 else None,
                "regret_high": mean + reach if grid.runs > 1 else None,
                "rounds_per_cpu_second": timing.get(name, {}).get("rounds_per_cpu_second"),
            }
        )
    return rows


def cell_name(settings: Mapping[str, Any]) -> str:
    """A folder's name from the settings, or a checksum of them where that would be too long."""
    name = quote(",".join(f"{key}={value}" for key, value in sorted(settings.items())), safe="=,") or "all"
    return name if len(name) <= 120 else hashlib.sha256(json.dumps(dict(settings), sort_keys=True).encode()).hexdigest()


def write_table(rows: list[Row], path: Path) -> None:
    """Write tidy Parquet: a row for each cell and agent, with types that do not depend on the values."""
    table, page = pa.Table.from_pylist(rows), io.BytesIO()
    schema = [field.with_type(_TYPES.get(field.name, field.type)) for field in table.schema]
    pq.write_table(table.cast(pa.schema(schema)), page)
    write_atomically(path, page.getvalue())


def read_table(out: Path | str) -> list[Row]:
    """The rows in the folder of a sweep."""
    path = Path(out) / TABLE
    if not path.exists():
        raise InputError(f"folder {out} has no {TABLE}; name the --out of `driftformer sweep`")
    try:
        rows: list[Row] = pq.read_table(path).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"table {path} is broken ({error}); delete it and run the sweep again") from None
    return rows


def draw(grid: Grid, rows: list[Row], path: Path) -> None:
    """A heatmap of two varied fields, or lines along one."""
    fixed = [
        f"{name.removeprefix(OPTION)} {figures.written(values[0])}"
        for name, values in grid.vary.items()
        if len(values) == 1
    ]
    title = ", ".join([grid.environment, *fixed, f"{rows[0]['runs']} runs"])
    figures.draw({name: grid.vary[name] for name in grid.varied}, rows, title, path)


def render(grid: Grid, rows: list[Row]) -> Table:
    """The rows as a table to read; of many, those with the lowest regret."""
    most = sorted(rows, key=lambda row: float(row["regret_mean"]))[:_SHOWN] if len(rows) > _SHOWN else rows
    title = f"{grid.environment}, {rows[0]['runs']} runs" + (f", best {_SHOWN} of {len(rows):,}" * (most is not rows))
    table = FittingTable(f"\n{title}", spared=("rounds/CPU-s", "95% interval"))
    for name in [*grid.varied, "agent", "regret", "95% interval", "rounds/CPU-s"]:
        table.add_column(name.removeprefix(OPTION), justify="left" if name == "agent" else "right")
    for row in most:
        cells = ["–" if row[name] is None else str(row[name]) for name in grid.varied]
        interval = "" if row["regret_low"] is None else f"[{number(row['regret_low'])}, {number(row['regret_high'])}]"
        speed = "" if row["rounds_per_cpu_second"] is None else f"{row['rounds_per_cpu_second']:,.0f}"
        table.add_row(*cells, row["agent"], number(row["regret_mean"]), interval, speed)
    return table
