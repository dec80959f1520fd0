"""What the page shows, read from a folder of `driftformer reproduce`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftformer.experiments import RATES, THEORY, TRAININGS
from driftformer.experiments.claims import CLAIMS, Verdict, judge
from driftformer.experiments.reproduce import (
    ABOUT,
    NONSTATIONARITY,
    kept,
    read_experiments,
    read_results,
    read_single_runs,
    stored,
)
from driftformer.simulation.numbers import number
from driftformer.simulation.summary import Summary
from driftformer.storage.files import read_json


@dataclass(frozen=True)
class Content:
    """Results by experiment, and by case where there are several."""

    scale: str
    seed: int
    options: str  # of the command that gave these results
    summaries: dict[str, dict[str, Summary]]
    nonstationarity: dict[str, dict[str, dict[str, Any]]]
    trainings: list[dict[str, Any]]
    rates: dict[str, Any]
    rates_are_kept: bool  # they come with the package
    theory: dict[str, Any] | None
    verdicts: list[Verdict]
    single_runs: dict[str, dict[str, Any]]
    agents: list[str]


def read_content(out: Path) -> Content:
    summaries, about, results = read_experiments(out), read_json(out / ABOUT), read_results(out)
    options = _options(about)
    return Content(
        scale=about["scale"],
        seed=about["seed"],
        options=options,
        summaries=summaries,
        nonstationarity={
            name: {case: read_json(stored(out / name / case / NONSTATIONARITY, name)) for case in cases}
            for name, cases in summaries.items()
        },
        trainings=list(_trainings(results, options)),
        rates=results.get(RATES) or kept(RATES) or {},
        rates_are_kept=RATES not in results,
        theory=results.get(THEORY),
        verdicts=[judge(claim, summaries) for claim in CLAIMS],
        single_runs={name: {**run, "caption": caption(run)} for name, run in read_single_runs(out).items()},
        agents=sorted({agent for cases in summaries.values() for one in cases.values() for agent in one.agents}),
    )


def caption(run: Mapping[str, Any]) -> str:
    """What a single run shows, in words."""
    words = (
        f"Problem {run['problem']} of {run['runs']}, the one with the median regret: {number(run['regret_final'])}. "
        f"Over all {run['runs']} the median is {number(run['regret_median'])}, the mean {number(run['regret_mean'])}. "
        f"Here the agent played the best arm in {run['best_arm_share']:.0%} of the rounds"
    )
    if run["kind"] == "policy":
        return f"{words}."
    count = len(run["restarts"])
    return f"{words} and restarted {'once' if count == 1 else f'{count} times' if count else 'never'}."


def _options(about: Mapping[str, Any]) -> str:
    words = [f"--scale {about['scale']} --seed {about['seed']}"]
    words += [f"--runs {about['runs']}"] if about.get("runs") else []
    words += [f"--device {about['device']}"] if about.get("device", "cpu") != "cpu" else []
    return " ".join(words + ["--pretrain"] * bool(about.get("pretrain")))


def _trainings(own: Mapping[str, Any], options: str) -> Iterator[dict[str, Any]]:
    """What the folder holds, and what comes with the package where that is of another scale or all there is."""
    for name in TRAININGS:
        if name in own:
            yield _training(name, own[name], options, is_kept=False)
        larger = kept(name)
        if larger is not None and own.get(name, {}).get("scale") != larger["scale"]:
            options_then = f"--scale {larger['scale']} --seed {larger['seed']} --device cuda"
            yield _training(name, larger, options_then, is_kept=True)


def _training(name: str, results: Mapping[str, Any], options: str, is_kept: bool) -> dict[str, Any]:
    experiment = TRAININGS[name]
    return {
        "name": f"{name}-kept" if is_kept else name,
        "kept_from": results["device"] if is_kept else None,
        "command": f"driftformer reproduce {name} {options}",
        "title": experiment.title + (", at the paper's scale" if is_kept else ""),
        **{key: getattr(experiment, key) for key in ("question", "paper", "view", "axis")},
        "rows": results["trainings"],
        "references": results["references"],
    }
