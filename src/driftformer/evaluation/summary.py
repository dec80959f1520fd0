"""Summaries as they lie on disk: what tables, figures and the report need is checked before any of it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from driftformer.errors import InputError
from driftformer.storage.files import read_json

_LARGEST = 2**30
"""Bytes of a summary: curves of many agents over a million rounds."""
_NUMBERS = ("runs", "regret_mean")
_CURVES = tuple(f"{kind}_curve{spread}" for kind in ("regret", "suboptimality") for spread in ("", "_std", "_stderr"))


def read_summary(path: Path) -> dict[str, Any]:
    """A summary that tables, figures and reports can be made of, or an error that names it."""
    summary = read_json(path, _LARGEST)
    agents, pairs = summary.get("agents"), summary.get("paired_differences")
    horizon, environment = summary.get("horizon"), summary.get("environment")
    sound = (
        isinstance(environment, dict)
        and {"name", "drift", "dim", "arms", "arm_mode"} <= environment.keys()
        and all(type(summary.get(name)) is int for name in ("horizon", "runs", "seed"))
        and isinstance(agents, dict)
        and bool(agents)
        and all(isinstance(row, dict) and _is_row(row, horizon) for row in agents.values())
        and isinstance(pairs, list)
        and all(isinstance(pair, dict) and _is_pair(pair, agents) for pair in pairs)
    )
    if not sound:
        raise InputError(f"results file {path} is broken (it is no summary); delete it and run the evaluation again")
    return summary


def _is_row(row: Mapping[str, Any], horizon: Any) -> bool:
    """Whether one agent's part of a summary has all that is shown of it."""
    spread = [row.get(name) for name in ("regret_stderr", "regret_std")]
    told, curves = row.get("diagnostics"), [row.get(name) for name in _CURVES]
    return (
        isinstance(row.get("privileged"), bool)
        and all(_is_number(row.get(name)) for name in _NUMBERS)
        and all(_is_number(value) or (value is None and row["runs"] == 1) for value in spread)
        and _are_numbers(row.get("regret_runs"), row["runs"])
        and all(_are_numbers(curve, horizon) for curve in curves)
        and isinstance(told, dict)
        and all(isinstance(one, dict) and _are_numbers([one.get("mean"), one.get("max")], 2) for one in told.values())
    )


def _is_pair(pair: Mapping[str, Any], agents: Mapping[str, Any]) -> bool:
    named = all(isinstance(pair.get(name), str) and pair[name] in agents for name in ("agent", "reference"))
    return named and all(_is_number(pair.get(name)) for name in ("mean", "low", "high", "runs"))


def _are_numbers(values: Any, count: Any) -> bool:
    return isinstance(values, list) and len(values) == count and all(map(_is_number, values))


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -1e300 < value < 1e300
