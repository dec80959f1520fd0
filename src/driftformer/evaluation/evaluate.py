"""Compare agents on one environment: compute what is missing, keep it, sum it up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from driftformer.agents.base import Agent, Privileged
from driftformer.agents.registry import check_agent, full_label, label, make_agent
from driftformer.environments.base import Environment
from driftformer.environments.presets import make_env
from driftformer.errors import InputError, require_count
from driftformer.evaluation.progress import Progress
from driftformer.evaluation.result import Result, summarize
from driftformer.evaluation.statistics import combine
from driftformer.files import read_json, write_atomically, write_json
from driftformer.randomness import CHUNK
from driftformer.simulation.chunks import Chunk, Outcome, Task, chunks_for, run, stack
from driftformer.simulation.regret import ChunkRegret
from driftformer.simulation.results import Arrays, ResultsFolder
from driftformer.simulation.rollout import Trajectories, check_applies, check_device


def evaluate(
    environment: Environment | str,
    agents: Sequence[Agent | str],
    *,
    runs: int = 200,
    fewer_runs: Mapping[str, int] | None = None,
    seed: int = 0,
    out: Path | str | None = None,
    workers: int = 1,
    device: str = "cpu",
    trajectories: bool = False,
    progress: bool | None = None,
) -> Result:
    """Play every agent on the same `runs` problems and measure its dynamic regret.

    With `out`, results are kept in that folder and only what it lacks is computed: more runs, more agents, or what a
    killed run left undone; its summary is of the latest call. The same seed gives the same numbers, bit for bit,
    whatever the number of workers, the other agents or the interruptions. `trajectories` also keeps every arm and
    reward there. Slow agents may play only the first problems: `fewer_runs` says how many, by name.
    """
    environment = make_env(environment) if isinstance(environment, str) else environment
    players = _by_name(agents)
    require_count("runs", runs)
    require_count("seed", seed, 0, most=2**63)
    require_count("workers", workers)
    for agent in players.values():
        check_applies(environment, agent)
    kind = check_device(device).type
    if kind == "cuda" and workers > 1:
        raise InputError(f"workers is {workers} with device '{device}'; a GPU takes one worker and larger batches")
    if trajectories and out is None:
        raise InputError("trajectories is set without out; name the folder that should hold them")
    config = {"environment": environment.config(), "seed": seed, "device": kind}
    folder = ResultsFolder(out, config) if out is not None else None

    counts = _counts(players, runs, fewer_runs or {})
    chunks = {name: chunks_for(count) for name, count in counts.items()}
    known = _load(folder, players, chunks, trajectories)
    missing = {name: [chunk for chunk in chunks[name] if (name, chunk) not in known] for name in players}
    tasks = [
        Task(environment, name, agent, batch, seed, device, trajectories)
        for name, agent in players.items()
        for batch in stack(missing[name], workers, kind, agent)
    ]
    timing: dict[str, dict[str, float]] = {}
    with Progress(sum(task.rounds for task in tasks), environment.name, progress) as bar:
        for task, outcome in run(tasks, workers, bar.advance):
            name = task.name
            for place, (chunk, regret) in enumerate(zip(task.chunks, outcome.rollout.regrets, strict=True)):
                known[name, chunk] = regret
                if folder is not None:
                    rows = _rows(outcome.rollout.trajectories, place, chunk)
                    folder.save(full_label(task.agent), chunk, regret, rows)
            timing[name] = _add_timing(timing.get(name), task, outcome)

    regrets = {name: combine([known[name, chunk] for chunk in chunks[name]]) for name in players}
    privileged = [name for name, agent in players.items() if isinstance(agent, Privileged)]
    result = Result(
        summarize(environment.config(), regrets, runs, seed, privileged),
        timing,
        {name: regret.final for name, regret in regrets.items()},
    )
    if folder is not None:
        folder.claim()
        write_json(folder.path / "summary.json", result.summary)
        _keep_timing(folder.path / "timing.json", timing)
    return result


def _by_name(agents: Sequence[Agent | str]) -> dict[str, Agent]:
    """Agents under the names they were asked for by."""
    if not isinstance(agents, (list, tuple)) or not agents:
        raise InputError(f"agents is {agents!r}; give a list with at least one, as `driftformer list` shows them")
    players: dict[str, Agent] = {}
    for asked in agents:
        agent = make_agent(asked) if isinstance(asked, str) else check_agent(asked)
        name = asked if isinstance(asked, str) else label(agent)
        if full_label(agent) in {full_label(other) for other in players.values()}:
            raise InputError(f"agents: '{name}' stands twice; name each agent once")
        players[name] = agent
    return players


def _counts(players: Mapping[str, Agent], runs: int, fewer: Mapping[str, int]) -> dict[str, int]:
    """How many of the runs each agent plays."""
    for name, count in fewer.items():
        if name not in players:
            raise InputError(f"fewer_runs names '{name}', which is none of the agents: {', '.join(players)}")
        require_count(f"fewer_runs of {name}", count, most=runs)
    return {name: fewer.get(name, runs) for name in players}


def _load(
    folder: ResultsFolder | None,
    players: Mapping[str, Agent],
    chunks: Mapping[str, Sequence[Chunk]],
    trajectories: bool,
) -> dict[tuple[str, Chunk], ChunkRegret]:
    """What the folder has already; a broken file is an error now, not after hours of computing."""
    if folder is None:
        return {}
    stored = {name: full_label(agent) for name, agent in players.items()}
    known = {}
    for name, place in stored.items():
        for chunk in chunks[name]:
            if folder.has(place, chunk, trajectories):
                known[name, chunk] = folder.load(place, chunk)
                if trajectories:
                    folder.load_trajectories(place, chunk)
    return known


def _rows(trajectories: Trajectories | None, place: int, chunk: Chunk) -> Arrays | None:
    """One chunk's trajectories out of the stack's."""
    if trajectories is None:
        return None
    rows = slice(place * CHUNK, place * CHUNK + chunk.count)
    return {name: value[rows].cpu().numpy() for name, value in trajectories.tensors().items()}


def _add_timing(before: Mapping[str, float] | None, task: Task, outcome: Outcome) -> dict[str, float]:
    before = before or {"rounds": 0, "cpu_seconds": 0.0, "wall_seconds": 0.0}
    rounds, cpu = before["rounds"] + task.rounds, before["cpu_seconds"] + outcome.cpu_seconds
    return {
        "rounds": rounds,
        "cpu_seconds": cpu,
        "wall_seconds": before["wall_seconds"] + outcome.wall_seconds,
        "rounds_per_cpu_second": rounds / cpu,
    }


def _keep_timing(path: Path, timing: Mapping[str, Any]) -> None:
    """The latest timing of each agent; one that had nothing to compute keeps its earlier one."""
    try:
        earlier = read_json(path) if path.exists() else {}
    except InputError:  # a broken one says nothing, and nothing is computed from it
        earlier = {}
    # No checksum: others read it, agent by agent.
    write_atomically(path, (json.dumps({**earlier, **timing}, indent=1) + "\n").encode())
