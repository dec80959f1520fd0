"""What the page shows, as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from driftformer.evaluation.result import describe
from driftformer.experiments import EXPERIMENTS, RATES, TRAININGS
from driftformer.experiments.base import Case, Experiment
from driftformer.experiments.claims import CLAIMS
from driftformer.experiments.reproduce import (
    ABOUT,
    kept,
    read_experiments,
    read_rates,
    read_stories,
    read_theory,
    read_trainings,
)
from driftformer.experiments.run_trainings import REFERENCES
from driftformer.experiments.trainings import TrainingExperiment
from driftformer.experiments.verdicts import ORACLE, judge
from driftformer.plots.style import colour_of
from driftformer.storage.files import read_json

_POINTS = 250
"""Most points of a curve: more than a screen can show."""


def build_payload(out: Path) -> dict[str, Any]:
    """Everything of a folder, rounded and thinned to what can be seen."""
    summaries = read_experiments(out)
    about = read_json(out / ABOUT)
    agents = sorted(
        {agent for cases in summaries.values() for summary in cases.values() for agent in summary["agents"]}
    )
    return {
        "title": "driftformer: what was measured",
        "scale": about["scale"],
        "seed": about["seed"],
        "asked": _asked(about),
        "experiments": [_experiment(EXPERIMENTS[name], cases) for name, cases in summaries.items()],
        "trainings": list(_trainings(out, _asked(about))),
        "rates": read_rates(out) or kept(RATES),
        "rates_are_kept": read_rates(out) is None,
        "theory": read_theory(out),
        "claims": [_claim(judge(claim, summaries)) for claim in CLAIMS],
        "stories": read_stories(out),
        "colours": {agent: colour_of(agent) for agent in (*agents, *REFERENCES)},
        "agents": agents,
    }


def _experiment(experiment: Experiment, cases: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "name": experiment.name,
        "title": experiment.title,
        "question": experiment.question,
        "paper": experiment.paper,
        "axis": experiment.axis,
        "panels": [{"title": panel.title, "agents": list(panel.agents)} for panel in experiment.panels],
        "cases": [_case(case, cases[case.name], bool(experiment.axis)) for case in experiment.cases],
    }


def _case(case: Case, summary: Mapping[str, Any], swept: bool) -> dict[str, Any]:
    rounds = list(range(1, summary["horizon"] + 1))
    kept = _thin(rounds)
    agents = {}
    for name, row in summary["agents"].items():
        agents[name] = {
            "runs": row["runs"],
            "privileged": row["privileged"],
            "mean": _round(row["regret_mean"]),
            "stderr": _round(row["regret_stderr"] or 0.0),
        }
        if not swept:
            agents[name] |= {
                key: [_round(row[f"{source}"][place]) for place in kept]
                for key, source in {
                    "regret": "regret_curve",
                    "regret_std": "regret_curve_std",
                    "suboptimality": "suboptimality_curve",
                    "suboptimality_std": "suboptimality_curve_std",
                }.items()
            }
    return {
        "name": case.name,
        "title": case.title,
        "value": case.value,
        "setting": describe(summary),
        "amount": _round(summary["nonstationarity"]["amount"]),
        "count": _round(summary["nonstationarity"]["count"]),
        "rounds": [] if swept else [rounds[place] for place in kept],
        "oracle": ORACLE in agents,
        "agents": agents,
    }


def _asked(about: Mapping[str, Any]) -> str:
    """The options that gave these results."""
    words = [f"--scale {about['scale']} --seed {about['seed']}"]
    words += [f"--runs {about['runs']}"] if about.get("runs") else []
    words += [f"--device {about['device']}"] if about.get("device", "cpu") != "cpu" else []
    return " ".join(words + ["--pretrain"] * bool(about.get("pretrain")))


def _trainings(out: Path, asked: str) -> Iterator[dict[str, Any]]:
    """What the folder holds, and what comes with the package where that is of a larger scale, or all there is."""
    own = read_trainings(out)
    for name, experiment in TRAININGS.items():
        if name in own:
            yield _trained(experiment, own[name], asked, is_kept=False)
        larger = kept(name)
        if larger is not None and own.get(name, {}).get("scale") != larger["scale"]:
            asked_then = f"--scale {larger['scale']} --seed {larger['seed']} --device cuda"
            yield _trained(experiment, larger, asked_then, is_kept=True)


def _trained(experiment: TrainingExperiment, results: Mapping[str, Any], asked: str, is_kept: bool) -> dict[str, Any]:
    return {
        "name": f"{experiment.name}-kept" if is_kept else experiment.name,
        "kept_from": results["device"] if is_kept else None,
        "command": f"driftformer reproduce {experiment.name} {asked}",
        "title": experiment.title + (", at the paper's scale" if is_kept else ""),
        "question": experiment.question,
        "paper": experiment.paper,
        "view": experiment.view,
        "axis": experiment.axis,
        "rows": [row | {"worlds": _rounded(row["worlds"])} for row in results["trainings"]],
        "references": {agent: _rounded(worlds) for agent, worlds in results["references"].items()},
    }


def _rounded(worlds: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {world: {key: _round(value) for key, value in found.items()} for world, found in worlds.items()}


def _claim(verdict: Any) -> dict[str, Any]:
    return {
        "text": verdict.claim.text,
        "where": verdict.claim.where,
        "rule": verdict.claim.rule,
        "share": verdict.claim.share,
        "verdict": verdict.verdict,
        "missing": list(verdict.missing),
        "findings": [
            {
                "experiment": finding.comparison.experiment,
                "case": finding.comparison.case,
                "agent": finding.comparison.agent,
                "rival": finding.comparison.rival,
                "value": _round(finding.value),
                "low": _round(finding.low),
                "high": _round(finding.high),
                "runs": finding.runs,
                "holds": finding.holds,
            }
            for finding in verdict.findings
        ],
    }


def _thin(rounds: list[int]) -> list[int]:
    """Places of at most so many rounds, evenly, always with the last."""
    step = -(-len(rounds) // _POINTS)
    return sorted({*range(0, len(rounds), step), len(rounds) - 1})


def _round(value: float) -> float:
    """Four digits are enough to draw and to read."""
    return float(f"{value:.4g}")
