"""Agents in one world or several, from their summaries: curves to look at, and a table of where they end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from driftformer.report.agents import linked
from driftformer.report.markup import escaped, table
from driftformer.simulation.numbers import number, with_error
from driftformer.simulation.summary import AgentSummary, Summary

ORACLE = "oracle"
_POINTS = 250
"""The most points of a curve: more than a screen can show."""


def curves(worlds: Iterable[tuple[str, Summary]], panels: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """A figure of curves, one world at a time; a panel holds a title and some of the agents."""
    return {
        "kind": "curves",
        "panels": list(panels) or [{"title": "", "agents": None}],
        "worlds": [_world(title, summary) for title, summary in worlds],
    }


def _world(title: str, summary: Summary) -> dict[str, Any]:
    step = -(-summary.horizon // _POINTS)
    places = sorted({*range(0, summary.horizon, step), summary.horizon - 1})
    return {
        "title": title,
        "runs": summary.runs,
        "rounds": [place + 1 for place in places],
        "oracle": ORACLE in summary.agents,
        "best": summary.contenders[:2],
        "agents": {name: _agent(summary.agents[name], places, summary.stages) for name in summary.ranking},
    }


def _agent(row: AgentSummary, places: Sequence[int], stages: int) -> dict[str, Any]:
    """What happens in a round is averaged over its episode."""
    kept = {
        "regret": (row.regret_curve, 1),
        "regret_std": (row.regret_curve_std, 1),
        "regret_stderr": (row.regret_curve_stderr, 1),
        "suboptimality": (row.suboptimality_curve, stages),
        "suboptimality_std": (row.suboptimality_curve_std, stages),
        "suboptimality_stderr": (row.suboptimality_curve_stderr, stages),
    }
    thin = {
        name: [rounded(fmean(curve[(first := place - place % size) : first + size])) for place in places]
        for name, (curve, size) in kept.items()
    }
    return {"text": number(row.regret_mean), **thin}


def rounded(value: float) -> float:
    """Four digits are enough to draw."""
    return float(f"{value:.4g}")


def table_of(summary: Summary, caption: str) -> str:
    """The agents of a world, the best one first, with paired differences to the best that can win."""
    best = next(iter(summary.contenders), summary.ranking[0])
    rows = []
    for name in summary.ranking:
        row = summary.agents[name]
        gap = "" if name == best else summary.difference(name, best).text
        std = "–" if row.regret_std is None else number(row.regret_std)
        rows.append((linked(name) + " *" * row.privileged, with_error(row.regret_mean, row.regret_stderr), std, gap))
    heads = ("Agent", "Dynamic regret", "std", f"Difference to <code>{escaped(best)}</code> (95%)")
    return table(heads, rows, caption)


def about(summary: Summary) -> str:
    """What was played, in a line."""
    return f"{summary.description}; {summary.runs:,} problems, seed {summary.seed}."


def privileged_in(summaries: Iterable[Summary]) -> frozenset[str]:
    """The agents that know what no real agent can."""
    return frozenset(name for one in summaries for name, row in one.agents.items() if row.privileged)
