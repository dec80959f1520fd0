"""Compare agents on one environment: compute what is missing, keep it, sum it up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from driftformer.environments.base import Environment
from driftformer.environments.presets import make_env
from driftformer.errors import InputError
from driftformer.evaluation.plan import Agents, Plan
from driftformer.evaluation.progress import Progress, told_by
from driftformer.evaluation.result import Result
from driftformer.events import sitting
from driftformer.simulation.chunks import compute
from driftformer.simulation.engines import Engine, LocalEngine, opened
from driftformer.simulation.results import CONFIG
from driftformer.simulation.rollout import check_device


def evaluate(
    environment: Environment | str,
    agents: Agents,
    *,
    runs: int = 200,
    fewer_runs: Mapping[str, int] | None = None,
    seed: int = 0,
    out: Path | str | None = None,
    workers: int | None = None,
    engine: str | Engine = "local",
    address: str | None = None,
    device: str = "cpu",
    trajectories: bool = False,
    progress: bool | None = None,
) -> Result:
    """Play every agent on the same `runs` problems and measure its dynamic regret.

    With `out`, results are kept in that folder and only what it lacks is computed: more runs, more agents, or what a
    killed run left undone; its summary is of the latest call. The same seed gives the same numbers, bit for bit,
    whatever the number of workers, the other agents or the interruptions. `trajectories` also keeps every arm and
    reward there. Agents given as a mapping are called by its keys. Slow agents may play only the first problems:
    `fewer_runs` says how many, by name.

    `engine` is local, with `workers` processes of this machine (one if not said), or ray: the cluster at `address`, or
    one of this machine with so many workers (all cores if not said). An engine that is handed in is used and left open.
    """
    environment = make_env(environment) if isinstance(environment, str) else environment
    with opened(engine, workers, address) as crew:
        _check_crew(crew, device, workers)
        plan = Plan(
            environment,
            agents,
            runs=runs,
            fewer_runs=fewer_runs,
            seed=seed,
            out=out,
            device=device,
            trajectories=trajectories,
        )
        if plan.chunks_missing:
            _compute(plan, crew, progress)
        return plan.finish()


def _check_crew(crew: Engine, device: str, workers: int | None) -> None:
    """A GPU is kept busy by one process of this machine."""
    if check_device(device).type != "cuda":
        return
    if not isinstance(crew, LocalEngine):
        raise InputError(f"device is '{device}' with the engine ray, which uses cores; use cpu, or the engine local")
    if crew.workers > 1:
        raise InputError(f"workers is {workers} with device '{device}'; a GPU takes one worker and larger batches")


def _compute(plan: Plan, crew: Engine, progress: bool | None) -> None:
    """Have what is missing computed, and keep it."""
    tasks, folder = plan.tasks(crew.workers), plan.folder
    rounds, chunks = sum(task.rounds for task in tasks), plan.chunks_missing
    about = {"agents": plan.agents, "chunks_known": plan.chunks - chunks, "chunks_missing": chunks}
    with (
        sitting(
            None if folder is None else folder.path, mark=CONFIG, engine=crew.name, workers=crew.workers, **about
        ) as events,
        Progress(rounds, plan.environment.name, progress, chunks=chunks) as bar,
    ):
        for task, outcome in crew.run(compute, tasks, bar.advance, told_by(events, bar)):
            plan.take(task, outcome)
            bar.finish_chunks(len(task.chunks))
            events.settle()
