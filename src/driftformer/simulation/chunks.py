"""The unit of work: which chunks a number of runs needs, how they are stacked, and the workers that compute them."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from multiprocessing.sharedctypes import Synchronized
from typing import Any

from driftformer.agents.base import Agent
from driftformer.environments.base import Environment
from driftformer.errors import InputError
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


def run(tasks: Sequence[Task], workers: int, on_rounds: Callable[[int], None]) -> Iterator[tuple[Task, Outcome]]:
    """Compute all tasks, here or on `workers` processes, and yield each as it is done."""
    if workers == 1 or len(tasks) <= 1:
        for task in tasks:
            yield task, compute(task, on_rounds)
        return
    for task in {id(task.agent): task for task in tasks}.values():
        _check_can_travel(task, workers)
    context = multiprocessing.get_context("spawn")
    played = context.Value("q", 0)
    reported = 0
    with ProcessPoolExecutor(min(workers, len(tasks)), context, _prepare_worker, (played,)) as pool:
        try:
            pending: dict[Future[Outcome], Task] = {pool.submit(_compute_in_worker, task): task for task in tasks}
            while pending:
                done, _ = wait(pending, timeout=0.1, return_when=FIRST_COMPLETED)
                on_rounds(played.value - reported)
                reported = played.value
                for future in done:
                    yield pending.pop(future), future.result()
        except BrokenProcessPool as error:
            raise InputError(
                f"workers is {workers}, and one of them died (killed, out of memory, or started from a script without "
                "an `if __name__ == '__main__'` guard); run again to compute what is missing, or use workers=1"
            ) from error
        except BaseException:  # who stops early does not wait; who is done does, or a worker still starting would crash
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _check_can_travel(task: Task, workers: int) -> None:
    """Refuse what another process could not be told, such as a drift that is a lambda."""
    try:
        ForkingPickler.dumps(task)
    except Exception as error:
        raise InputError(
            f"workers is {workers}, but '{task.environment.name}' or '{task.name}' cannot be sent to another process "
            f"({error}); use workers=1, or define drift functions and agents at the top level of a module"
        ) from error


_played: Synchronized[int] | None = None


def _prepare_worker(played: Synchronized[int]) -> None:
    global _played
    _played = played
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed parent cannot tell its workers to stop, so they watch for it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _compute_in_worker(task: Task) -> Outcome:
    return compute(task, _count)


def _count(rounds: int) -> None:
    assert _played is not None
    with _played.get_lock():
        _played.value += rounds
