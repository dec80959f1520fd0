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
from dataclasses import replace
from pathlib import Path
from typing import Any

from driftformer import experiments
from driftformer.environments.nonstationarity import nonstationarity
from driftformer.errors import InputError, require_count, unknown_name
from driftformer.evaluation.evaluate import Plan, check_crew, compute_missing
from driftformer.evaluation.progress import TrainingProgress
from driftformer.evaluation.result import Result
from driftformer.experiments import EXPERIMENTS, NAMES, RATES, THEORY, TRAININGS
from driftformer.experiments.base import Case, Experiment, scale_of
from driftformer.experiments.pretrained import in_place, pretrain_policies
from driftformer.experiments.rates import measure_rates
from driftformer.experiments.run_trainings import RESULTS, run_trainings
from driftformer.experiments.single_runs import SINGLE_RUNS, play
from driftformer.plots.curves import Column, draw_grid, draw_sweep
from driftformer.plots.trainings import draw_bars, draw_line, draw_matrix
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
    on_result: Callable[[Case, Result], None] | None = None,
) -> None:
    """Compute what `out` lacks of some experiments, with the scale's number of runs or `runs`.

    `workers`, `engine` and `address` are those of `evaluate`; trainings and the theory stay in this process. With
    `pretrain` the policies are trained first, and play instead of the shipped ones.
    """
    if not names:
        raise InputError(f"experiments is empty; name at least one of {', '.join(NAMES)}")
    for name in names:
        if name not in NAMES:
            raise unknown_name("experiment", name, NAMES)
    if runs is not None:
        require_count("runs", runs, 2)
    check_device(device)
    tidy(out)
    about = _about(out, {"scale": scale, "runs": runs, "seed": seed, "device": device, "pretrain": pretrain})
    if pretrain:
        _pretrain(names, out, device)
    whose = functools.partial(in_place, out=out) if pretrain else str
    with opened(engine, workers, address) as crew:
        check_crew(crew, device, workers)
        plans = {
            (name, case.name): Plan(
                (environment := case.preset.build()),
                {agent: whose(agent) for agent in case.agents},
                runs=runs or scale_of(scale).runs_for(environment.horizon),
                seed=seed,
                out=out / name / case.name,
                device=device,
            )
            for name, case in _cases(names)
        }
        # all at once, so that no worker waits for the end of a case
        compute_missing(list(plans.values()), crew, f"{len(plans)} worlds", out, ABOUT)
        for name in names:
            if name in TRAININGS:
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
                    if on_result is not None:
                        on_result(case, result)
            about["experiments"] = [one for one in NAMES if one in {*about["experiments"], name}]
            write_json(out / ABOUT, about)
    for run in SINGLE_RUNS:
        play(replace(run, agent=whose(run.agent)), out / _SINGLE_RUNS / f"{run.name}.json", seed)


def _pretrain(names: Sequence[str], out: Path, device: str) -> None:
    """Train all policies of some experiments and of the single runs."""
    agents = [agent for _, case in _cases(names) for agent in case.agents]
    with TrainingProgress() as bar:
        pretrain_policies([*agents, *(run.agent for run in SINGLE_RUNS)], out, device, bar.show)


def _about(out: Path, asked: dict[str, Any]) -> dict[str, Any]:
    """What the folder holds; it must be of the same scale and seed."""
    path = out / ABOUT
    if not path.exists():  # before anything is computed, so that it is known what an interrupted call belongs to
        write_json(path, {**asked, "experiments": []})
    found: dict[str, Any] = read_json(path)
    for key, value in asked.items():
        if found.get(key, False) != value:
            made = f"was made with {key} {found.get(key, False)}, not {value}"
            raise InputError(f"folder {out} {made}; name another --out")
    return {**found, "experiments": _experiments(path, found)}


def _experiments(path: Path, found: Mapping[str, Any]) -> list[str]:
    """The names that a reproduction.json lists."""
    names = found.get("experiments")
    if not isinstance(names, list) or not all(name in NAMES for name in names):
        raise InputError(f"file {path} is broken (its experiments are unknown); {MEND}")
    return names


def _cases(names: Sequence[str]) -> list[tuple[str, Case]]:
    """The cases of those experiments in which agents play, with the experiments' names."""
    return [(name, case) for name in names if name in EXPERIMENTS for case in EXPERIMENTS[name].cases]


def _measure_nonstationarity(case: Case, folder: Path, seed: int) -> None:
    """Δ and J of Definition 1 over all rounds, on some of the problems that were played."""
    path = folder / NONSTATIONARITY
    if path.exists():
        return
    try:
        found = nonstationarity(case.preset.build(), problems=_PROBLEMS, seed=seed)
    except InputError:  # an environment that cannot say what arms would have paid that were not on offer
        write_json(path, {"problems": 0, "amount": None, "count": None})
        return
    means = {"amount": float(found.amount().mean()), "count": float(found.count().double().mean())}
    write_json(path, {"problems": _PROBLEMS, **means})


def draw_experiments(out: Path) -> None:
    """Draw every experiment that a folder holds; the figure of the rates is in their own folder."""
    trainings, summaries = read_trainings(out), read_experiments(out)
    for suffix in ("png", "svg"):
        for name, results in trainings.items():
            _draw_trainings(name, results, out / "figures" / f"{name}.{suffix}")
        for name, found in summaries.items():
            _draw_experiment(EXPERIMENTS[name], found, out / "figures" / f"{name}.{suffix}")


def _draw_experiment(experiment: Experiment, summaries: Mapping[str, Summary], path: Path) -> None:
    if experiment.axis:
        draw_sweep(experiment.axis, [case.value for case in experiment.cases], list(summaries.values()), path)
    else:
        draw_grid(_columns(experiment, summaries), path)


def _draw_trainings(name: str, results: Mapping[str, Any], path: Path) -> None:
    rows, references, experiment = results["trainings"], results["references"], TRAININGS[name]
    if experiment.view == "matrix":
        draw_matrix(rows, path)
    elif experiment.view == "line":
        draw_line(rows, references, experiment.axis, path)
    else:
        draw_bars(rows, references, path)


def _columns(experiment: Experiment, summaries: Mapping[str, Summary]) -> list[Column]:
    """The paper's panels of one world, or a column for each world."""
    if experiment.panels:
        summary = summaries[experiment.cases[0].name]
        return [Column(panel.title, summary, panel.agents) for panel in experiment.panels]
    return [Column(case.title, summaries[case.name], case.agents) for case in experiment.cases]


def read_experiments(out: Path) -> dict[str, dict[str, Summary]]:
    """The summaries that a folder holds, by experiment and case, without computing anything."""
    return {
        name: {case.name: _read_case(out, EXPERIMENTS[name], case) for case in EXPERIMENTS[name].cases}
        for name in _held(out)
        if name in EXPERIMENTS
    }


def read_nonstationarity(out: Path, experiment: str, case: str) -> dict[str, Any]:
    """How much the world of a case changes."""
    return _read(out / experiment / case / NONSTATIONARITY, experiment)


def read_trainings(out: Path) -> dict[str, dict[str, Any]]:
    """The results of all experiments that train policies."""
    return {name: _read(out / name / RESULTS, name) for name in _held(out) if name in TRAININGS}


def kept(name: str) -> dict[str, Any] | None:
    """Results that come with the package, of a larger run than most machines allow, if there are any."""
    path = KEPT / f"{name}.json"
    return read_json(path) if path.exists() else None


def read_single_runs(out: Path) -> dict[str, dict[str, Any]]:
    """The single runs, by name."""
    return {run.name: _read(out / _SINGLE_RUNS / f"{run.name}.json", "") for run in SINGLE_RUNS}


def read_rates(out: Path) -> dict[str, Any] | None:
    """The measured rates, if they are there."""
    return _read(out / RATES / "rates.json", RATES) if RATES in _held(out) else None


def read_theory(out: Path) -> dict[str, Any] | None:
    """The checks of the proof, if they are there."""
    return _read(out / THEORY / CHECKED, THEORY) if THEORY in _held(out) else None


def _held(out: Path) -> list[str]:
    """The experiments that a folder holds."""
    if not (out / ABOUT).exists():
        raise InputError(f"folder {out} has no {ABOUT}; name the --out of `driftformer reproduce`")
    return _experiments(out / ABOUT, read_json(out / ABOUT))


def _read(path: Path, name: str) -> dict[str, Any]:
    if not path.exists():
        command = f"driftformer reproduce {name}".strip()
        raise InputError(f"folder {path.parent} has no {path.name}; run `{command}` again")
    return read_json(path)


def _read_case(out: Path, experiment: Experiment, case: Case) -> Summary:
    folder, again = out / experiment.name / case.name, f"run `driftformer reproduce {experiment.name}` again"
    if not (folder / "summary.json").exists():
        raise InputError(f"folder {folder} has no summary.json; {again}")
    summary = read_summary(folder / "summary.json")
    absent = [agent for agent in case.agents if agent not in summary.agents]
    if absent:  # made by an earlier version
        raise InputError(f"folder {folder} has no results of {', '.join(absent)}; {again}")
    return summary
