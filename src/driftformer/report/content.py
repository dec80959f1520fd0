"""What the page shows, read from a folder of `driftformer reproduce`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from driftformer.experiments import RATES, THEORY, TRAININGS, reproduce
from driftformer.experiments.claims import CLAIMS, judge
from driftformer.report.single_runs import caption
from driftformer.storage.files import read_json


class Content:
    """Results by experiment, and by case where there are several."""

    def __init__(self, out: Path) -> None:
        results, runs = reproduce.read_results(out), reproduce.read_single_runs(out)
        about = read_json(out / reproduce.ABOUT)
        self.scale, self.seed, self.options = about["scale"], about["seed"], _options(about)
        self.summaries = reproduce.read_experiments(out)
        file = reproduce.NONSTATIONARITY
        self.nonstationarity = {
            name: {case: read_json(reproduce.stored(out / name / case / file, name)) for case in cases}
            for name, cases in self.summaries.items()
        }
        self.trainings = list(_trainings(results, self.options))
        self.rates_are_kept = RATES not in results  # they come with the package
        self.rates = results.get(RATES) or reproduce.kept(RATES) or {}
        self.bakeoff = reproduce.kept("bakeoff")
        self.theory = results.get(THEORY)
        self.verdicts = [judge(claim, self.summaries) for claim in CLAIMS]
        self.single_runs = {name: {**run, "caption": caption(run)} for name, run in runs.items()}
        every = [summary.agents for cases in self.summaries.values() for summary in cases.values()]
        self.agents = sorted({agent for agents in every for agent in agents})


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
        larger = reproduce.kept(name)
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
