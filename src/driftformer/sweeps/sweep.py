"""Sweeps: every agent in every cell of a grid, as one tidy table.

    OUT/sweep.json           the grid, the runs and the seed of the latest call
    OUT/cells/CELL/          results of one environment (see `results.py`); a second call computes only what is missing
    OUT/table.parquet        a row for each cell and agent
    OUT/regret.png, .svg     a heatmap of two varied fields, or lines along one
    OUT/events.jsonl         what happened: starts, retries, ends

All cells share the seed, so the same problems and noise stand behind every row, as far as their sizes are the same. The
tasks of all cells form one stream: many small cells keep as many workers busy as one large one.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from rich.box import SIMPLE_HEAD
from rich.table import Table

from driftformer.environments.registry import make_env
from driftformer.errors import InputError, require_count
from driftformer.evaluation.plan import Plan
from driftformer.evaluation.progress import Progress, told_by
from driftformer.randomness import CHUNK
from driftformer.simulation.chunks import Task, chunks_for, compute
from driftformer.simulation.engines import Engine, opened
from driftformer.storage.checksum import json_checksum
from driftformer.storage.events import EVENTS, sitting
from driftformer.storage.files import is_partial, tidy, write_atomically, write_json
from driftformer.sweeps.grid import OPTION, Grid, Variant

ABOUT = "sweep.json"
TABLE = "table.parquet"

Row = dict[str, Any]

_MEASURES = {
    "horizon": pa.int64(),
    "runs": pa.int64(),
    "seed": pa.uint64(),
    "regret_mean": pa.float64(),
    "regret_stderr": pa.float64(),
    "regret_low": pa.float64(),
    "regret_high": pa.float64(),
    "rounds_per_cpu_second": pa.float64(),
}

_SHOWN = 30
"""Rows that are printed."""

_NINETY_FIVE = 1.959963984540054
"""Standard errors to either side of a 95% interval of a mean."""


def sweep(
    grid: Grid,
    out: Path,
    *,
    runs: int = 200,
    seed: int = 0,
    workers: int | None = None,
    engine: str | Engine = "local",
    address: str | None = None,
    progress: bool | None = None,
) -> list[Row]:
    """Play what is missing and write the table; `workers`, `engine` and `address` are those of `evaluate`."""
    require_count("runs", runs)
    require_count("seed", seed, 0, most=2**63)
    variants = grid.variants()
    _check_folder(out)
    tidy(out)
    horizons = [_check_cell(grid, variants, settings, out, runs, seed) for settings in grid.cells()]
    asked = {"environment": grid.environment, "agents": grid.agents, "vary": grid.vary, "runs": runs, "seed": seed}
    if not (out / ABOUT).exists():
        write_json(out / ABOUT, asked)
    chunks = len(chunks_for(runs)) * len(variants)
    total = sum(chunks * CHUNK * horizon for horizon in horizons)
    about: dict[str, Any] = {"rows": grid.size, "runs": runs, "seed": seed}
    with (
        opened(engine, workers, address) as crew,
        sitting(out, engine=crew.name, **about) as events,
        Progress(total, f"{len(horizons):,} cells", progress, chunks=chunks * len(horizons)) as bar,
    ):
        cells = _Cells(grid, variants, out, runs, seed, crew, bar)
        for task, outcome in crew.run(
            compute, cells.tasks(), lambda task, rounds: bar.advance(rounds), told_by(events, bar)
        ):
            cells.take(task, outcome)
            bar.finish_chunks(len(task.chunks))
    rows = [row for place in sorted(cells.rows) for row in cells.rows[place]]
    write_json(out / ABOUT, asked)
    write_table(rows, out / TABLE)
    return rows


def _check_folder(out: Path) -> None:
    """Refuse one that holds other things."""
    if out.exists() and not out.is_dir():
        raise InputError(f"out is '{out}', which is a file; name a folder")
    if not (out / ABOUT).exists() and out.exists():
        foreign = [path.name for path in out.iterdir() if path.name != EVENTS and not is_partial(path)]
        if foreign:
            raise InputError(f"out is '{out}', a folder that is not empty and holds no sweep; name a new or empty one")


def _check_cell(
    grid: Grid, variants: list[Variant], settings: Mapping[str, Any], out: Path, runs: int, seed: int
) -> int:
    """See that a cell can be played and that what is there of it is whole, before any is; its horizon."""
    environment, folder = make_env(grid.environment, **settings), _folder(out, settings)
    Plan(environment, _written(variants), runs=runs, seed=seed, out=folder if folder.exists() else None)
    return environment.horizon


def _folder(out: Path, settings: Mapping[str, Any]) -> Path:
    return out / "cells" / cell_name(settings)


def _written(variants: list[Variant]) -> list[str]:
    return [variant.written for variant in variants]


@dataclass
class _Cell:
    """One environment under way."""

    place: int
    settings: Mapping[str, Any]
    plan: Plan
    left: int


@dataclass
class _Cells:
    """All environments of a grid: planned when their turn comes, forgotten when their rows are there."""

    grid: Grid
    variants: list[Variant]
    out: Path
    runs: int
    seed: int
    crew: Engine
    bar: Progress
    rows: dict[int, list[Row]] = field(default_factory=dict)
    _of: dict[int, _Cell] = field(default_factory=dict)  # by the identity of tasks that are under way

    def tasks(self) -> Iterator[Task]:
        share: int | None = None
        for place, settings in enumerate(self.grid.cells()):
            environment = make_env(self.grid.environment, **settings)
            folder = _folder(self.out, settings)
            plan = Plan(environment, _written(self.variants), runs=self.runs, seed=self.seed, out=folder)
            known = plan.chunks - plan.chunks_missing
            self.bar.skip(known * CHUNK * environment.horizon, known)
            cell = _Cell(place, settings, plan, 0)
            if not plan.chunks_missing:
                self._finish(cell)
                continue
            if share is None:  # workers for each cell's agent, if all cells are under way at once
                share = max(1, -(-self.crew.workers // self.grid.size))
            tasks = plan.tasks(share)
            cell.left = len(tasks)
            self._of |= {id(task): cell for task in tasks}
            yield from tasks

    def take(self, task: Task, outcome: Any) -> None:
        cell = self._of.pop(id(task))
        cell.plan.take(task, outcome)
        cell.left -= 1
        if not cell.left:
            self._finish(cell)

    def _finish(self, cell: _Cell) -> None:
        regrets, timing = cell.plan.regrets(), cell.plan.keep_timing()
        self.rows[cell.place] = [
            {
                "environment": self.grid.environment,
                **cell.settings,
                "agent": variant.agent,
                **{OPTION + name: variant.options.get(name) for name in self.grid.options},
                "label": variant.written,
                "horizon": cell.plan.environment.horizon,
                "runs": self.runs,
                "seed": self.seed,
                **_measured(float(regret.regret.mean[-1]), float(regret.regret.stderr[-1]), self.runs),
                "rounds_per_cpu_second": timing.get(name, {}).get("rounds_per_cpu_second"),
            }
            for variant, (name, regret) in zip(self.variants, regrets.items(), strict=True)
        ]


def _measured(mean: float, stderr: float, runs: int) -> dict[str, float | None]:
    """The mean regret and how sure it is; a single run claims no certainty."""
    if runs < 2:
        return {"regret_mean": mean, "regret_stderr": None, "regret_low": None, "regret_high": None}
    reach = _NINETY_FIVE * stderr
    return {"regret_mean": mean, "regret_stderr": stderr, "regret_low": mean - reach, "regret_high": mean + reach}


def cell_name(settings: Mapping[str, Any]) -> str:
    """A folder's name that tells the settings, or a checksum of them where it would be too long."""
    name = quote(",".join(f"{key}={value}" for key, value in sorted(settings.items())), safe="=,") or "all"
    return name if len(name) <= 120 else json_checksum(dict(settings))


def write_table(rows: list[Row], path: Path) -> None:
    """Tidy Parquet: one row for each cell and agent, with types that do not depend on the values."""
    kinds = {int: pa.int64(), float: pa.float64(), str: pa.string()}
    schema = []
    for name in rows[0]:
        given = next((row[name] for row in rows if row[name] is not None), "")
        schema.append(pa.field(name, _MEASURES.get(name) or kinds[type(given)]))
    page = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(schema)), page)
    write_atomically(path, page.getvalue())


def read_table(out: Path | str) -> list[Row]:
    """The rows of a sweep's folder."""
    path = Path(out) / TABLE
    if not path.exists():
        raise InputError(f"folder {out} has no {TABLE}; name the --out of `driftformer sweep`")
    try:
        rows: list[Row] = pq.read_table(path).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"table {path} is broken ({error}); delete it and run the sweep again") from None
    return rows


def render(grid: Grid, rows: list[Row]) -> Table:
    """The rows as a table to read; of many, those of least regret."""
    most = sorted(rows, key=lambda row: float(row["regret_mean"]))[:_SHOWN] if len(rows) > _SHOWN else rows
    title = f"{grid.environment}, {rows[0]['runs']} runs" + (f", best {_SHOWN} of {len(rows):,}" * (most is not rows))
    table = Table(title=f"\n{title}", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name in [*grid.varied, "agent", "regret", "95% interval", "rounds/CPU-s"]:
        table.add_column(name.removeprefix(OPTION), overflow="fold", justify="left" if name == "agent" else "right")
    for row in most:
        cells = ["–" if row[name] is None else str(row[name]) for name in grid.varied]
        interval = "" if row["regret_low"] is None else f"[{row['regret_low']:.1f}, {row['regret_high']:.1f}]"
        speed = row["rounds_per_cpu_second"]
        table.add_row(
            *cells, row["agent"], f"{row['regret_mean']:.1f}", interval, "" if speed is None else f"{speed:,.0f}"
        )
    return table
