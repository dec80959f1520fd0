"""Run experiments: each case is an evaluation in its own folder, so a second call only redraws.

OUT/reproduction.json            scale, seed and the experiments that are there
OUT/EXPERIMENT/CASE/             the results of one evaluation (see `evaluate`), and how much its world changes
OUT/EXPERIMENT/results.json      of an experiment that trains policies (see `run_trainings.py`)
OUT/policies/NAME/               policies trained here (with `pretrain`)
OUT/single-runs/                 single runs for the report (see `single_runs.py`)
OUT/figures/                     a figure of each experiment, as PNG and SVG
OUT/report.html                  all of it on one page
OUT/events.jsonl                 what happened (see `events.py`)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from driftformer import experiments
from driftformer.environments.nonstationarity import nonstationarity
from driftformer.errors import InputError, require_choice, require_count
from driftformer.evaluation.evaluate import Plan, check_crew, compute_missing
from driftformer.evaluation.progress import TrainingProgress
from driftformer.evaluation.result import Result
from driftformer.experiments import EXPERIMENTS, NAMES, RATES, THEORY, TRAININGS
from driftformer.experiments.base import SCALES, Case, Experiment
from driftformer.experiments.pretrained import in_place, pretrain_policies
from driftformer.experiments.rates import measure_rates
from driftformer.experiments.single_runs import SINGLE_RUNS, SingleRun, play
from driftformer.experiments.trainings import RESULTS
from driftformer.plots.curves import Column, draw_grid, draw_sweep
from driftformer.plots.trainings import draw_trainings
from driftformer.simulation.engines import Engine, opened
from driftformer.simulation.rollout import check_device
from driftformer.simulation.summary import Summary, read_summary
from driftformer.storage.files import MEND, read_json, tidy, write_json
from driftformer.theory.save_checks import CHECKED, check_theory

ABOUT = "reproduction.json"
KEPT = Path(experiments.__file__).parent / "kept"
NONSTATIONARITY = "nonstationarity.json"
LONGEST = {"quick": 10_000, "paper": 100_000}
"""The longest horizon of the rates' sweeps, by scale."""
_SINGLE_RUNS = "single-runs"
_PROBLEMS = 64
"""On which Δ and J are measured."""


def reproduce(
    names: Sequence[str],
    out: Path,
    *,
    scale: str = "quick",
    runs: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    engine: str | Engine = "local",
    address: str | None = None,
    device: str = "cpu",
    pretrain: bool = False,
    on_result: Callable[[Result], None] = lambda result: None,
) -> None:
    """Compute what `out` lacks of some experiments, with the scale's number of runs or `runs`.

    `workers`, `engine` and `address` are those of `evaluate`; trainings and the theory stay in this process. With
    `pretrain` the policies are trained first, and play instead of the shipped ones.
    """
    if not names:
        raise InputError(f"experiments is empty; name at least one of {', '.join(NAMES)}")
    for name in names:
        require_choice("experiment", name, NAMES)
    require_choice("scale", scale, SCALES)
    if runs is not None:
        require_count("runs", runs, 2)
    check_device(device)
    tidy(out)
    about = _about(out, {"scale": scale, "runs": runs, "seed": seed, "device": device, "pretrain": pretrain})
    cases = [(name, case) for name in names if name in EXPERIMENTS for case in EXPERIMENTS[name].cases]
    if pretrain:
        players = [agent for _, case in cases for agent in case.agents] + [run.agent for run in _single_runs(names)]
        with TrainingProgress() as bar:
            pretrain_policies(players, out, device, bar.show)
    whose = functools.partial(in_place, out=out) if pretrain else str
    with opened(engine, workers, address) as crew:
        check_crew(crew, device, workers)
        plans = {
            (name, case.name): Plan(
                (environment := case.preset.build()),
                {agent: whose(agent) for agent in case.agents},
                runs=runs or SCALES[scale].runs_for(environment.horizon),
                seed=seed,
                out=out / name / case.name,
                device=device,
            )
            for name, case in cases
        }
        # all at once, so that no worker waits for the end of a case
        compute_missing(list(plans.values()), crew, f"{len(plans)} worlds", out, ABOUT)
        for name in names:
            if name in TRAININGS:
                from driftformer.experiments.run_trainings import run_trainings  # brings what only training needs

                with TrainingProgress() as bar:
                    run_trainings(TRAININGS[name], out, scale, seed, device, bar.show)
            elif name == RATES:
                measure_rates(out / RATES, longest=LONGEST[scale], seed=seed, engine=crew)
            elif name == THEORY:
                check_theory(out / THEORY)
            else:
                for case in EXPERIMENTS[name].cases:
                    result = plans[name, case.name].finish()
                    _measure_nonstationarity(case, out / name / case.name, seed)
                    on_result(result)
            about["experiments"] = [one for one in NAMES if one in {*about["experiments"], name}]
            write_json(out / ABOUT, about)
    for run in _single_runs(about["experiments"]):
        play(replace(run, agent=whose(run.agent)), out / _SINGLE_RUNS / f"{run.name}.json", seed)


def _about(out: Path, asked: dict[str, Any]) -> dict[str, Any]:
    """What the folder holds; it must be of the same scale and seed."""
    if not (out / ABOUT).exists():  # before anything is computed: it is known what an interrupted call belongs to
        write_json(out / ABOUT, {**asked, "experiments": []})
    found = read_json(out / ABOUT)
    for key, value in asked.items():
        if found.get(key, False) != value:
            made = f"was made with {key} {found.get(key, False)}, not {value}"
            raise InputError(f"folder {out} {made}; name another --out")
    return {**found, "experiments": _held(out)}


def _measure_nonstationarity(case: Case, folder: Path, seed: int) -> None:
    """Δ and J of Definition 1 over all rounds, on some of the problems that were played."""
    if (folder / NONSTATIONARITY).exists():
        return
    measured: dict[str, Any] = {"problems": 0, "amount": None, "count": None}
    with suppress(InputError):  # of an environment that cannot say what arms would have paid that were not on offer
        found = nonstationarity(case.preset.build(), problems=_PROBLEMS, seed=seed)
        means = {"amount": float(found.amount().mean()), "count": float(found.count().double().mean())}
        measured = {"problems": _PROBLEMS, **means}
    write_json(folder / NONSTATIONARITY, measured)


def draw_experiments(out: Path) -> None:
    """Draw every experiment that a folder holds; the figure of the rates is in their own folder."""
    results, summaries = read_results(out), read_experiments(out)
    for suffix in ("png", "svg"):
        for name in (*results, *summaries):
            path = out / "figures" / f"{name}.{suffix}"
            if name in TRAININGS:
                draw_trainings(TRAININGS[name].view, TRAININGS[name].axis, results[name], path)
            elif name in EXPERIMENTS:
                _draw_experiment(EXPERIMENTS[name], summaries[name], path)


def _draw_experiment(experiment: Experiment, summaries: Mapping[str, Summary], path: Path) -> None:
    """Regret along the axis of a sweep, the paper's panels of one world, or a column for each world."""
    if experiment.axis:
        draw_sweep(experiment.axis, [case.value for case in experiment.cases], list(summaries.values()), path)
        return
    first = summaries[experiment.cases[0].name]
    columns = [Column(panel.title, first, panel.agents) for panel in experiment.panels]
    draw_grid(columns or [Column(case.title, summaries[case.name], case.agents) for case in experiment.cases], path)


def read_experiments(out: Path) -> dict[str, dict[str, Summary]]:
    """The summaries that a folder holds, by experiment and case, without computing anything."""
    held = [EXPERIMENTS[name] for name in _held(out) if name in EXPERIMENTS]
    return {one.name: {case.name: _read_case(out, one.name, case) for case in one.cases} for one in held}


def _read_case(out: Path, experiment: str, case: Case) -> Summary:
    path = out / experiment / case.name / "summary.json"
    summary = read_summary(stored(path, experiment))
    if absent := ", ".join(agent for agent in case.agents if agent not in summary.agents):  # by an earlier version
        again = f"run `driftformer reproduce {experiment}` again"
        raise InputError(f"folder {path.parent} has no results of {absent}; {again}")
    return summary


def read_results(out: Path) -> dict[str, dict[str, Any]]:
    """What a folder holds of the experiments in which no agents play: trainings, the rates and the proof."""
    files = {**dict.fromkeys(TRAININGS, RESULTS), RATES: "rates.json", THEORY: CHECKED}
    return {name: read_json(stored(out / name / files[name], name)) for name in _held(out) if name in files}


def read_single_runs(out: Path) -> dict[str, dict[str, Any]]:
    """The single runs, by name."""
    shown = _single_runs(_held(out))
    return {run.name: read_json(stored(out / _SINGLE_RUNS / f"{run.name}.json")) for run in shown}


def _single_runs(experiments: Sequence[str]) -> list[SingleRun]:
    """Those that are shown beside some experiments."""
    return [run for run in SINGLE_RUNS if not run.experiment or run.experiment in experiments]


def kept(name: str) -> dict[str, Any] | None:
    """Results that come with the package, of a larger run than most machines allow, if there are any."""
    path = KEPT / f"{name}.json"
    return read_json(path) if path.exists() else None


def _held(out: Path) -> list[str]:
    """The experiments that a folder holds."""
    if not (out / ABOUT).exists():
        raise InputError(f"folder {out} has no {ABOUT}; name the --out of `driftformer reproduce`")
    names = read_json(out / ABOUT).get("experiments")
    if not isinstance(names, list) or not all(name in NAMES for name in names):
        raise InputError(f"file {out / ABOUT} is broken (its experiments are unknown); {MEND}")
    return names


def stored(path: Path, experiment: str = "") -> Path:
    """A file of an experiment, or an error that says what to do if it is gone."""
    if not path.exists():
        command = f"driftformer reproduce {experiment}".strip()
        raise InputError(f"folder {path.parent} has no {path.name}; run `{command}` again")
    return path
