"""What the page's script draws, as plain data."""

from __future__ import annotations

from typing import Any

from driftformer.experiments import EXPERIMENTS
from driftformer.experiments.base import Case, Experiment
from driftformer.experiments.claims import ORACLE
from driftformer.experiments.trainings import REFERENCES
from driftformer.plots.style import colour_of
from driftformer.report.content import Content
from driftformer.simulation.numbers import number
from driftformer.simulation.summary import AgentSummary, Summary

_POINTS = 250
"""The most points of a curve: more than a screen can show."""


def build_payload(content: Content) -> dict[str, Any]:
    """Curves thinned and rounded to what can be seen; numbers that are written out come as text."""
    return {
        "experiments": [_experiment(EXPERIMENTS[name], cases) for name, cases in content.summaries.items()],
        "trainings": content.trainings,
        "single_runs": content.single_runs,
        "colours": {agent: colour_of(agent) for agent in (*content.agents, *REFERENCES)},
    }


def _experiment(experiment: Experiment, summaries: dict[str, Summary]) -> dict[str, Any]:
    return {
        "name": experiment.name,
        "axis": experiment.axis,
        "panels": [{"title": panel.title, "agents": list(panel.agents)} for panel in experiment.panels],
        "cases": [_case(case, summaries[case.name], bool(experiment.axis)) for case in experiment.cases],
    }


def _case(case: Case, summary: Summary, swept: bool) -> dict[str, Any]:
    step = -(-summary.horizon // _POINTS)
    places = [] if swept else sorted({*range(0, summary.horizon, step), summary.horizon - 1})
    return {
        "title": case.title,
        "value": case.value,
        "runs": summary.runs,
        "rounds": [place + 1 for place in places],
        "oracle": ORACLE in summary.agents,
        "agents": {name: _agent(row, places) for name, row in summary.agents.items()},
    }


def _agent(row: AgentSummary, places: list[int]) -> dict[str, Any]:
    curves = {
        "regret": row.regret_curve,
        "regret_std": row.regret_curve_std,
        "suboptimality": row.suboptimality_curve,
        "suboptimality_std": row.suboptimality_curve_std,
    }
    ends = {"mean": row.regret_mean, "stderr": row.regret_stderr or 0.0, "text": number(row.regret_mean)}
    return ends | {name: [float(f"{curve[place]:.4g}") for place in places] for name, curve in curves.items()}
