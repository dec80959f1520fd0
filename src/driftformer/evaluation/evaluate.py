"""Compare agents on one environment: compute what is missing, store it, sum it up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from driftformer.environments.base import Environment
from driftformer.environments.registry import make_env
from driftformer.errors import InputError
from driftformer.evaluation.plan import Agents, Plan
from driftformer.evaluation.progress import Progress, log_and_show, rounds_by_agent
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

    With `out`, results are stored in that folder, and only what it lacks is computed: more runs, more agents, or what
    an interrupted call left undone; its summary is that of the latest call. The same seed gives the same numbers, bit
    for bit, whatever the number of workers, the other agents or the interruptions. `trajectories` also stores every arm
    and reward. Agents given as a mapping go by its keys.

    `engine` is "local", with `workers` processes on this machine (one by default), or "ray": the cluster at `address`,
    or else one on this machine with that many workers (every core by default). An `Engine` object is used as it is and
    left open.
    """
    environment = make_env(environment) if isinstance(environment, str) else environment
    with opened(engine, workers, address) as crew:
        check_crew(crew, device, workers)
        plan = Plan(environment, agents, runs=runs, seed=seed, out=out, device=device, trajectories=trajectories)
        log = None if plan.folder is None else plan.folder.path
        compute_missing([plan], crew, environment.name, log, CONFIG, progress)
        return plan.finish()


def check_crew(crew: Engine, device: str, workers: int | None) -> None:
    """Refuse a GPU with more than the one local process that keeps it busy."""
    if check_device(device).type != "cuda":
        return
    if not isinstance(crew, LocalEngine):
        raise InputError(
            f"device is '{device}' with the engine ray, which uses CPU cores; use cpu, or the engine local"
        )
    if crew.workers > 1:
        raise InputError(f"workers is {workers} with device '{device}'; a GPU takes one worker and larger batches")


def compute_missing(
    plans: Sequence[Plan], crew: Engine, title: str, log: Path | None, mark: str, progress: bool | None = None
) -> None:
    """Compute what some plans lack, as one stream of tasks, and store it.

    Events go to the folder `log` as soon as there is something called `mark` in it.
    """
    tasks = [(task, plan) for plan in plans for task in plan.tasks(crew.workers)]
    if not tasks:
        return
    missing = sum(plan.chunks_missing for plan in plans)
    about = {
        "agents": list(dict.fromkeys(agent for plan in plans for agent in plan.players)),
        "chunks_known": sum(plan.chunks for plan in plans) - missing,
        "chunks_missing": missing,
    }
    owners = {id(task): plan for task, plan in tasks}
    with (
        sitting(log, mark=mark, engine=crew.name, workers=crew.workers, **about) as events,
        Progress(rounds_by_agent([task for task, _ in tasks]), title, progress, crew.workers, chunks=missing) as bar,
    ):
        for task, outcome in crew.run(compute, [task for task, _ in tasks], bar.played, log_and_show(events, bar)):
            owners[id(task)].take(task, outcome)
            bar.finished(task)
            events.settle()
