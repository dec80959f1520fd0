"""One evaluation's bookkeeping: what it lacks, the tasks for that, and the result once all of them are back.

Whoever computes the tasks, here or far away, in whatever order, `Plan` alone counts and stores what they bring.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from driftformer.agents.base import Agent, Privileged
from driftformer.agents.registry import check_agent, full_label, label, make_agent
from driftformer.environments.base import Environment
from driftformer.errors import InputError, require_count
from driftformer.evaluation.result import Result, summarize
from driftformer.evaluation.statistics import AgentRegret, combine
from driftformer.randomness import CHUNK
from driftformer.simulation.chunks import Chunk, Outcome, Task, chunks_for, stack
from driftformer.simulation.regret import ChunkRegret
from driftformer.simulation.results import Arrays, ResultsFolder
from driftformer.simulation.rollout import Trajectories, check_applies, check_device
from driftformer.storage.files import read_json, write_atomically, write_json

Agents = Sequence[Agent | str] | Mapping[str, Agent | str]
"""Those to compare, perhaps under other names than their own."""


class Plan:
    """Some agents in one environment: which chunks are known, which are missing."""

    def __init__(
        self,
        environment: Environment,
        agents: Agents,
        *,
        runs: int,
        fewer_runs: Mapping[str, int] | None = None,
        seed: int = 0,
        out: Path | str | None = None,
        device: str = "cpu",
        trajectories: bool = False,
    ) -> None:
        """Check all that was asked for, and read what is there; the arguments are those of `evaluate`."""
        self.environment, self._players = environment, by_name(agents)
        self._runs, self._seed, self._device, self._trajectories = runs, seed, device, trajectories
        require_count("runs", runs)
        require_count("seed", seed, 0, most=2**63)
        for agent in self._players.values():
            check_applies(environment, agent)
        self._kind = check_device(device).type
        if trajectories and out is None:
            raise InputError("trajectories is set without out; name the folder that should hold them")
        config = {"environment": environment.config(), "seed": seed, "device": self._kind}
        self.folder = ResultsFolder(out, config, environment.horizon) if out is not None else None
        counts = _counts(self._players, runs, fewer_runs or {})
        self._chunks = {name: chunks_for(count) for name, count in counts.items()}
        self._known = _load(self.folder, self._players, self._chunks, trajectories)
        self._timing: dict[str, dict[str, float]] = {}

    @property
    def agents(self) -> list[str]:
        return list(self._players)

    def missing(self, name: str) -> list[Chunk]:
        """An agent's chunks that are still to be played."""
        return [chunk for chunk in self._chunks[name] if (name, chunk) not in self._known]

    @property
    def chunks(self) -> int:
        """How many chunks there are, over all agents."""
        return sum(map(len, self._chunks.values()))

    @property
    def chunks_missing(self) -> int:
        return self.chunks - len(self._known)

    def tasks(self, workers: int) -> list[Task]:
        """All that is missing, in batches that keep so many workers busy."""
        return [
            Task(self.environment, name, agent, batch, self._seed, self._device, self._trajectories)
            for name, agent in self._players.items()
            for batch in stack(self.missing(name), workers, self._kind, agent)
        ]

    def take(self, task: Task, outcome: Outcome) -> None:
        """Keep what a task brought; a chunk that is known already is not taken again."""
        for place, (chunk, regret) in enumerate(zip(task.chunks, outcome.rollout.regrets, strict=True)):
            if (task.name, chunk) in self._known:
                raise AssertionError(f"{task.label} came twice")
            self._known[task.name, chunk] = regret
            if self.folder is not None:
                rows = _rows(outcome.rollout.trajectories, place, chunk)
                self.folder.save(full_label(task.agent), chunk, regret, rows)
        self._timing[task.name] = _add_timing(self._timing.get(task.name), task, outcome)

    def regrets(self) -> dict[str, AgentRegret]:
        """Of each agent, once nothing is missing."""
        return {name: combine([self._known[name, chunk] for chunk in self._chunks[name]]) for name in self._players}

    def finish(self) -> Result:
        """Sum up, and store the summary."""
        regrets = self.regrets()
        privileged = [name for name, agent in self._players.items() if isinstance(agent, Privileged)]
        result = Result(
            summarize(self.environment.config(), regrets, self._runs, self._seed, privileged),
            self._timing,
            {name: regret.final for name, regret in regrets.items()},
        )
        if self.folder is not None:
            self.folder.claim()
            write_json(self.folder.path / "summary.json", result.summary)
            self.keep_timing()
        return result

    def keep_timing(self) -> dict[str, Any]:
        """The latest timing of each agent; one that had nothing to compute keeps its earlier one."""
        if self.folder is None:
            return self._timing
        path = self.folder.path / "timing.json"
        try:
            earlier = read_json(path) if path.exists() else {}
        except InputError:  # a broken one says nothing, and nothing is computed from it
            earlier = {}
        timing = {**earlier, **self._timing}
        write_atomically(path, (json.dumps(timing, indent=1) + "\n").encode())  # no checksum: others read it
        return timing


def by_name(agents: Agents) -> dict[str, Agent]:
    """Agents under the names they were asked for by."""
    if not isinstance(agents, (list, tuple, Mapping)) or not agents:
        raise InputError(f"agents is {agents!r}; give a list with at least one, as `driftformer list` shows them")
    players: dict[str, Agent] = {}
    named = agents.items() if isinstance(agents, Mapping) else ((None, asked) for asked in agents)
    for given, asked in named:
        agent = make_agent(asked) if isinstance(asked, str) else check_agent(asked)
        name = given or (asked if isinstance(asked, str) else label(agent))
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
