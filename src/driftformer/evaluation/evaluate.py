"""Compare agents on one environment: compute what is missing, keep it, sum it up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from driftformer.environments.base import Environment
from driftformer.environments.registry import make_env
from driftformer.errors import InputError
from driftformer.evaluation.plan import Agents, Plan
from driftformer.evaluation.progress import Progress, told_by
from driftformer.evaluation.result import Result
from driftformer.simulation.chunks import compute
from driftformer.simulation.engines import Engine, LocalEngine, opened
from driftformer.simulation.results import CONFIG
from driftformer.simulation.rollout import check_device
from driftformer.storage.events import sitting


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
        check_crew(crew, device, workers)
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
        log = None if plan.folder is None else plan.folder.path
        compute_missing([plan], crew, environment.name, log, CONFIG, progress)
        return plan.finish()


def check_crew(crew: Engine, device: str, workers: int | None) -> None:
    """A GPU is kept busy by one process of this machine."""
    if check_device(device).type != "cuda":
        return
    if not isinstance(crew, LocalEngine):
        raise InputError(f"device is '{device}' with the engine ray, which uses cores; use cpu, or the engine local")
    if crew.workers > 1:
        raise InputError(f"workers is {workers} with device '{device}'; a GPU takes one worker and larger batches")


def compute_missing(
    plans: Sequence[Plan], crew: Engine, title: str, log: Path | None, mark: str, progress: bool | None = None
) -> None:
    """Have what some plans lack computed, as one stream of tasks, and keep it.

    Events go to the folder `log`, once it has a file `mark`.
    """
    tasks = [(task, plan) for plan in plans for task in plan.tasks(crew.workers)]
    if not tasks:
        return
    missing = sum(plan.chunks_missing for plan in plans)
    about = {
        "agents": list(dict.fromkeys(agent for plan in plans for agent in plan.agents)),
        "chunks_known": sum(plan.chunks for plan in plans) - missing,
        "chunks_missing": missing,
    }
    owners = {id(task): plan for task, plan in tasks}
    with (
        sitting(log, mark=mark, engine=crew.name, workers=crew.workers, **about) as events,
        Progress(sum(task.rounds for task, _ in tasks), title, progress, chunks=missing) as bar,
    ):
        for task, outcome in crew.run(
            compute, [task for task, _ in tasks], lambda task, rounds: bar.advance(rounds), told_by(events, bar)
        ):
            owners[id(task)].take(task, outcome)
            bar.finish_chunks(len(task.chunks))
            events.settle()
