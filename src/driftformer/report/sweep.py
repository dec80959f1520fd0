"""The page of a sweep: regret along the first varied setting, a panel for every combination of the world's others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from driftformer.agents.registry import AGENTS, ALIASES
from driftformer.errors import InputError
from driftformer.plots.sweeps import written
from driftformer.report.agents import agents_section
from driftformer.report.markup import escaped, figure, prose, table
from driftformer.report.page import Page, Section
from driftformer.report.worlds import rounded
from driftformer.simulation.numbers import number
from driftformer.simulation.summary import CHANCE
from driftformer.storage.files import MEND, read_json
from driftformer.sweeps.grid import OPTION
from driftformer.sweeps.sweep import ABOUT, TABLE, Row, read_table

_PANELS, _LINES, _ROWS = 12, 12, 200
"""The most panels, lines in each and rows of the page's table: the best ones; the sweep's own table has them all."""


def sweep_page(folder: Path) -> tuple[Page, str]:
    """The page, and its sentence."""
    grid = read_json(folder / ABOUT)
    if not (folder / TABLE).exists():
        raise InputError(
            f"folder '{folder}' holds a sweep that is not finished; run the same `driftformer sweep` again: it resumes"
        )
    rows = read_table(folder)
    varied = {name: values for name, values in grid["vary"].items() if len(values) > 1}
    if not rows or not varied or not {*varied, "agent", "label", "regret_mean"} <= rows[0].keys():
        raise InputError(f"files {ABOUT} and {TABLE} in {folder} do not belong together; {MEND}")
    if (seeds := {row["seed"] for row in rows}) != {grid["seed"]}:
        held = " and ".join(map(str, sorted(seeds)))
        raise InputError(f"folder '{folder}' holds a table of seed {held} and a sweep of seed {grid['seed']}; {MEND}")
    said = _verdict(rows, varied)
    lines = _lines(rows, varied)
    names = list(dict.fromkeys(name for panel in lines["panels"] for name in panel["lines"]))
    fixed = {name: values[0] for name, values in grid["vary"].items() if len(values) == 1}
    about = ", ".join([grid["environment"], *(f"{_short(name)} {written(value)}" for name, value in fixed.items())])
    about += f"; {grid['runs']:,} problems in each setting, seed {grid['seed']}"
    first = f"""<p class="quiet">{escaped(about)}.</p>
<h1>{prose(said)}</h1>
{figure("sweep", "hero")}
<p class="quiet">Mean dynamic regret after the last round, with 95% intervals; lower is better. In every setting
all agents play the same problems.{_left_out(rows, lines)}</p>"""
    sections = [_numbers(rows, varied), agents_section(names, frozenset(filter(_is_privileged, names)))]
    return Page(f"{grid['environment']}: a sweep", first, sections, {"sweep": lines}, names), said


def _is_privileged(spec: str) -> bool:
    name = spec.partition("@")[0]
    entry = AGENTS.get(ALIASES.get(name, name).partition("@")[0])
    return entry is not None and entry.privileged


def _verdict(rows: Sequence[Row], varied: Mapping[str, Any]) -> str:
    """Who is best in how many settings of the world, and by how much there."""
    worlds = [name for name in varied if not name.startswith(OPTION)]
    cells: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if not _is_privileged(row["label"]) and row["agent"] != CHANCE:
            cells.setdefault(tuple(row[name] for name in worlds), []).append(row)
    if not cells:
        return "Nobody plays here who could win."
    best = {cell: min(some, key=lambda row: float(row["regret_mean"])) for cell, some in cells.items()}
    (winner, count), *_ = Counter(row["label"] for row in best.values()).most_common()
    where = f"in {count} of {len(cells)} settings" if len(cells) > 1 else "here"
    gaps = []
    for cell, row in best.items():
        others = [float(other["regret_mean"]) for other in cells[cell] if other["label"] != row["label"]]
        if row["label"] == winner and others and min(others) > 0:
            gaps.append(1 - float(row["regret_mean"]) / min(others))
    if not gaps:
        return f"`{winner}` has the least regret {where}."
    low, high = f"{min(gaps):.0%}", f"{max(gaps):.0%}"
    much = low if low == high else f"{low} to {high}"
    return f"`{winner}` has the least regret {where}, {much} less than the next best there."


def _lines(rows: Sequence[Row], varied: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Panels of lines: what varies first is the axis; options of agents are part of a line's name."""
    axis, *others = varied
    worlds = [name for name in others if not name.startswith(OPTION)]
    panels: dict[tuple[Any, ...], dict[str, dict[Any, Row]]] = {}
    for row in rows:
        name = row["label"] if not axis.startswith(OPTION) else _without(row, axis, others)
        panels.setdefault(tuple(row[key] for key in worlds), {}).setdefault(name, {})[row[axis]] = row
    values = list(varied[axis])
    return {
        "kind": "lines",
        "axis": _short(axis),
        "y": "dynamic regret after the last round",
        "values": values,
        "total": len(panels),
        "panels": [
            {
                "title": ", ".join(f"{_short(key)} {written(one)}" for key, one in zip(worlds, cell, strict=True)),
                "lines": {name: _line(found, values) for name, found in _best(lines)},
            }
            for cell, lines in list(panels.items())[:_PANELS]
        ],
    }


def _without(row: Row, axis: str, others: Sequence[str]) -> str:
    """An agent's name with the options that are not the axis."""
    options = [f"{_short(key)}={row[key]}" for key in others if key.startswith(OPTION) and row[key] is not None]
    agent: str = row["agent"]
    return agent + ("," if "@" in agent else "@") * bool(options) + ",".join(options)


def _best(lines: Mapping[str, dict[Any, Row]]) -> list[tuple[str, dict[Any, Row]]]:
    """The lines with the lowest regret anywhere."""
    return sorted(lines.items(), key=lambda item: min(float(row["regret_mean"]) for row in item[1].values()))[:_LINES]


def _line(found: Mapping[Any, Row], values: Sequence[Any]) -> dict[str, Any]:
    """Means and intervals along the axis; an agent without the varied option is a level line."""
    row = [found[value] if value in found else found[None] for value in values]
    return {
        "mean": [rounded(one["regret_mean"]) for one in row],
        "low": [rounded(one["regret_mean" if one["regret_low"] is None else "regret_low"]) for one in row],
        "high": [rounded(one["regret_mean" if one["regret_high"] is None else "regret_high"]) for one in row],
        "text": [number(one["regret_mean"]) for one in row],
    }


def _left_out(rows: Sequence[Row], lines: Mapping[str, Any]) -> str:
    held = sum(len(panel["lines"]) for panel in lines["panels"]) * len(lines["values"])
    return f" Shown are the best lines; all {len(rows):,} rows are in {TABLE}." if held < len(rows) else ""


def _numbers(rows: Sequence[Row], varied: Mapping[str, Any]) -> Section:
    shown = sorted(rows, key=lambda row: float(row["regret_mean"]))[:_ROWS] if len(rows) > _ROWS else rows
    lines = []
    for row in shown:
        interval = "" if row["regret_low"] is None else f"[{number(row['regret_low'])}, {number(row['regret_high'])}]"
        settings = [escaped(written(row[name])) for name in varied]
        lines.append((escaped(row["agent"]), *settings, number(row["regret_mean"]), interval))
    heads = ("Agent", *(escaped(_short(name)) for name in varied), "Dynamic regret", "95% interval")
    caption = f"The best {_ROWS} of {len(rows):,} rows; all are in {TABLE}." if len(rows) > _ROWS else ""
    return Section("numbers", "The numbers", table(heads, lines, caption), "Numbers")


def _short(name: str) -> str:
    return name.removeprefix(OPTION)
