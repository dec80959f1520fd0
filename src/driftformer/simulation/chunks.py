"""The unit of work: which chunks a number of runs needs, how they are stacked, and what computes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from driftformer.agents.base import Agent
from driftformer.environments.base import Environment
from driftformer.randomness import CHUNK
from driftformer.simulation.rollout import Rollout, rollout

STACK = 10
"""Chunks stacked into one batch on a CPU: about 640 problems are the fastest there; more leave its cache."""

DEVICE_STACK = 256
"""Chunks stacked into one batch on an accelerator."""


@dataclass(frozen=True, order=True)
class Chunk:
    """The first `count` problems of chunk number `index`."""

    index: int
    count: int = CHUNK


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


def chunks_for(runs: int) -> list[Chunk]:
    """The chunks that hold the first `runs` problems; of the last one perhaps only a part counts."""
    return [Chunk(index, min(CHUNK, runs - index * CHUNK)) for index in range(-(-runs // CHUNK))]


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
