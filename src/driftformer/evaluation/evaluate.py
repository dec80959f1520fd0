"""Compare agents on one environment: plan what is missing, compute it, store it, sum it up.

Whoever computes the tasks, here or far away, in whatever order, `Plan` alone counts and stores what they bring.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from driftformer.agents.base import Agent, Privileged
from driftformer.agents.registry import check_agent, full_label, label, make_agent
from driftformer.environments.base import Environment
from driftformer.environments.registry import make_env
from driftformer.errors import InputError, require_count
from driftformer.evaluation.progress import Progress, rounds_by_agent
from driftformer.evaluation.result import Result
from driftformer.evaluation.statistics import AgentRegret, combine, summarize
from driftformer.problem import check_config, check_environment
from driftformer.randomness import CHUNK, Chunk, chunks_for
from driftformer.simulation.engines import Engine, LocalEngine, opened
from driftformer.simulation.results import CONFIG, ResultsFolder
from driftformer.simulation.rollout import ChunkRegret, Rollout, check_applies, check_device, rollout
from driftformer.storage.events import JSON_LINES, sitting
from driftformer.storage.files import read_json, write_atomically, write_json

Agents = Sequence[Agent | str] | Mapping[str, Agent | str]
"""Agents to compare; a mapping gives them names of the caller's choice."""


STACK = 10
"""Chunks stacked into one batch on a CPU: about 640 problems are the fastest there; more leave its cache."""

DEVICE_STACK = 256
"""Chunks stacked into one batch on an accelerator."""


@dataclass(frozen=True)
class Task:
    """One agent on a stack of chunks: everything a worker needs to know."""

    environment: Environment
    name: str  # of the agent, as it was asked for
    agent: Agent
    chunks: tuple[Chunk, ...]
    seed: int
    device: str
    trajectories: bool

    @property
    def label(self) -> str:
        numbers = ", ".join(str(chunk.index) for chunk in self.chunks)
        return f"'{self.name}' on '{self.environment.name}', chunk {numbers}"

    @property
    def rounds(self) -> int:
        return len(self.chunks) * CHUNK * self.environment.horizon


@dataclass(frozen=True)
class Outcome:
    """What a worker gives back for a task."""

    rollout: Rollout
    cpu_seconds: float
    wall_seconds: float


def stack(chunks: Sequence[Chunk], workers: int, device: str, agent: Agent) -> list[tuple[Chunk, ...]]:
    """Batches of chunks that are large enough to be fast and numerous enough to keep every worker busy.

    An agent may set a limit of its own, `stack`, where its numbers would depend on the size of the batch.
    """
    limit = min(STACK if device == "cpu" else DEVICE_STACK, _own_limit(agent))
    size = max(1, min(limit, -(-len(chunks) // workers)))
    return [tuple(chunks[start : start + size]) for start in range(0, len(chunks), size)]


def _own_limit(agent: Any) -> int:
    """The least that an agent, or one that it wraps, allows."""
    inner = _own_limit(agent.base) if hasattr(agent, "base") else DEVICE_STACK
    return min(getattr(agent, "stack", DEVICE_STACK), inner)


def compute(task: Task, on_rounds: Callable[[int], None] | None = None) -> Outcome:
    """Roll one task out, timed; this thread does all of the computing."""
    cpu, wall = time.thread_time(), time.perf_counter()
    played = rollout(
        task.environment,
        task.agent,
        seed=task.seed,
        chunks=[chunk.index for chunk in task.chunks],
        counts=[chunk.count for chunk in task.chunks],
        device=task.device,
        trajectories=task.trajectories,
        on_rounds=on_rounds,
    )
    return Outcome(played, time.thread_time() - cpu, time.perf_counter() - wall)


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

    >>> result = df.evaluate("high", ["random", "linucb", "oracle"], runs=64, progress=False)
    >>> result
    Result(high: b=0.018, phase=0.0, T=200, d=32, 10 fixed arms, 64 runs, seed 0; regret: oracle 15.4, linucb 285.4,
    random 382.6)
    """
    environment = make_env(environment) if isinstance(environment, str) else environment
    alone = engine == "local" and workers in (None, 1) and address is None
    with nullcontext() if alone else opened(engine, workers, address) as crew:
        check_crew(crew, device, workers)
        plan = Plan(environment, agents, runs=runs, seed=seed, out=out, device=device, trajectories=trajectories)
        log = None if plan.folder is None else plan.folder.path
        compute_missing([plan], crew, environment.name, log, CONFIG, progress)
        return plan.finish()


def check_crew(crew: Engine | None, device: str, workers: int | None) -> None:
    """Refuse a GPU with more than the one local process that keeps it busy."""
    if check_device(device).type != "cuda" or crew is None:
        return
    if not isinstance(crew, LocalEngine):
        raise InputError(
            f"device is '{device}' with the engine ray, which uses CPU cores; use cpu, or the engine local"
        )
    if crew.workers > 1:
        raise InputError(f"workers is {workers} with device '{device}'; a GPU takes one worker and larger batches")


def compute_missing(
    plans: Sequence[Plan], crew: Engine | None, title: str, log: Path | None, mark: str, progress: bool | None = None
) -> None:
    """Compute what some plans lack, as one stream of tasks, and store it; without a crew, in this process.

    Events go to the folder `log` as soon as there is something called `mark` in it.
    """
    name, workers = ("local", 1) if crew is None else (crew.name, crew.workers)
    owned = [(task, plan) for plan in plans for task in plan.tasks(workers)]
    if not owned:
        return
    tasks, owners = [task for task, _ in owned], {id(task): plan for task, plan in owned}
    missing = sum(plan.chunks_missing for plan in plans)
    known = sum(plan.chunks for plan in plans) - missing
    agents = list(dict.fromkeys(agent for plan in plans for agent in plan.players))
    about = {"agents": agents, "chunks_known": known, "chunks_missing": missing}
    silent = log is None and not JSON_LINES.get()
    with (
        nullcontext() if silent else sitting(log, mark=mark, engine=name, workers=workers, **about) as events,
        Progress(rounds_by_agent(tasks), title, progress, workers, chunks=missing, events=events) as bar,
    ):
        done = _in_turn(tasks, bar.played) if crew is None else crew.run(compute, tasks, bar.played, bar.tell)
        for task, outcome in done:
            owners[id(task)].take(task, outcome)
            bar.finished(task)
            if events is not None:
                events.settle()


def _in_turn(tasks: Sequence[Task], on_rounds: Callable[[Task, int], None]) -> Iterator[tuple[Task, Outcome]]:
    for task in tasks:
        yield task, compute(task, partial(on_rounds, task))


class Plan:
    """Some agents in one environment: which chunks are stored, and which are missing."""

    def __init__(
        self,
        environment: Environment,
        agents: Agents,
        *,
        runs: int,
        seed: int = 0,
        out: Path | str | None = None,
        device: str = "cpu",
        trajectories: bool = False,
    ) -> None:
        """Check the request and read what is stored; the arguments are those of `evaluate`."""
        self.environment, self.players = environment, by_name(agents)
        self._seed, self._device, self._trajectories = seed, device, trajectories
        check_environment(environment)
        require_count("runs", runs)
        require_count("seed", seed, 0, most=2**63)
        for agent in self.players.values():
            check_applies(environment, agent)
        self._kind = check_device(device).type
        if trajectories and out is None:
            raise InputError("trajectories is set without out; name the folder that should hold them")
        self.folder = None
        if out is not None:
            check_config(environment)
            config = {"environment": environment.config(), "seed": seed, "device": self._kind}
            self.folder = ResultsFolder(out, config, environment.horizon)
        self._chunks = chunks_for(runs)
        self._known: dict[tuple[str, Chunk], ChunkRegret] = {}
        if self.folder is not None:
            self._load(self.folder)
        self._timing: dict[str, dict[str, float]] = {}

    def _load(self, folder: ResultsFolder) -> None:
        """Read what is stored: a broken file is an error now, not after hours of computing."""
        for name, agent in self.players.items():
            stored = full_label(agent)
            for chunk in self._chunks:
                if folder.has(stored, chunk, self._trajectories):
                    self._known[name, chunk] = folder.load(stored, chunk)
                    if self._trajectories:
                        folder.load_trajectories(stored, chunk)

    def missing(self, name: str) -> list[Chunk]:
        """An agent's chunks that are still to be played."""
        return [chunk for chunk in self._chunks if (name, chunk) not in self._known]

    @property
    def chunks(self) -> int:
        """How many chunks there are, over all agents."""
        return len(self._chunks) * len(self.players)

    @property
    def chunks_missing(self) -> int:
        return self.chunks - len(self._known)

    def tasks(self, workers: int) -> list[Task]:
        """All that is missing, in batches that keep this many workers busy."""
        return [
            Task(self.environment, name, agent, batch, self._seed, self._device, self._trajectories)
            for name, agent in self.players.items()
            for batch in stack(self.missing(name), workers, self._kind, agent)
        ]

    def take(self, task: Task, outcome: Outcome) -> None:
        """Store the outcome of a task; each chunk comes once."""
        tensors = {} if outcome.rollout.trajectories is None else outcome.rollout.trajectories.tensors()
        for place, (chunk, regret) in enumerate(zip(task.chunks, outcome.rollout.regrets, strict=True)):
            if (task.name, chunk) in self._known:
                raise AssertionError(f"{task.label} came twice")
            self._known[task.name, chunk] = regret
            if self.folder is not None:
                own = slice(place * CHUNK, place * CHUNK + chunk.count)  # this chunk's rows of the stack
                rows = {name: value[own].cpu().numpy() for name, value in tensors.items()}
                self.folder.save(full_label(task.agent), chunk, regret, rows or None)
        spent = {"rounds": task.rounds, "cpu_seconds": outcome.cpu_seconds, "wall_seconds": outcome.wall_seconds}
        before = self._timing.get(task.name, {})
        timing = {name: before.get(name, 0) + value for name, value in spent.items()}
        self._timing[task.name] = {**timing, "rounds_per_cpu_second": timing["rounds"] / timing["cpu_seconds"]}

    def regrets(self) -> dict[str, AgentRegret]:
        """The regret of each agent, once nothing is missing."""
        return {name: combine([self._known[name, chunk] for chunk in self._chunks]) for name in self.players}

    def finish(self) -> Result:
        """Sum up, and store the summary."""
        privileged = [name for name, agent in self.players.items() if isinstance(agent, Privileged)]
        result = Result(summarize(self.environment, self.regrets(), self._seed, privileged), self._timing)
        if self.folder is not None:
            self.folder.claim()
            write_json(self.folder.path / "summary.json", result.summary.to_json())
            self.keep_timing()
        return result

    def keep_timing(self) -> dict[str, Any]:
        """Store the latest timing of each agent; one that had nothing to compute keeps its earlier timing."""
        if self.folder is None:
            return self._timing
        path = self.folder.path / "timing.json"
        timing = self._timing
        with suppress(InputError):  # nothing is computed from timings, so a broken file is no reason to stop
            timing = {**read_json(path), **timing} if path.exists() else timing
        write_atomically(path, (json.dumps(timing, indent=1) + "\n").encode())  # no checksum, for other programs
        return timing


def by_name(agents: Agents) -> dict[str, Agent]:
    """Agents by the names they were asked for."""
    if not isinstance(agents, (list, tuple, Mapping)) or not agents:
        raise InputError(f"agents is {agents!r}; give a list with at least one, as `driftformer list` shows them")
    players: dict[str, Agent] = {}
    named = agents.items() if isinstance(agents, Mapping) else ((None, asked) for asked in agents)
    for given, asked in named:
        agent = make_agent(asked) if isinstance(asked, str) else check_agent(asked)
        name = given or (asked if isinstance(asked, str) else label(agent))
        if full_label(agent) in {full_label(other) for other in players.values()}:
            raise InputError(f"agents: '{name}' is given twice; name each agent once")
        players[name] = agent
    return players
