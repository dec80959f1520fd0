"""Where jobs are computed: in this process, on processes of this machine, or on a Ray cluster.

A job is a value that holds all a worker must know, and the work is a function of nothing else, so every engine gives
the same bits. Results come back to the one process that called, which alone writes them. Jobs are taken one by one as
there is room for them, so a hundred thousand need no more memory than a few.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from multiprocessing.reduction import ForkingPickler
from typing import Any, Protocol, TypeVar

from driftformer.errors import InputError, require_choice, require_count

ENGINES = ("local", "ray")

AHEAD = 2
"""Jobs that wait or run for each worker: one more than it computes, so that none of them ever waits for us."""

OnRounds = Callable[[int], None]
"""Is told how many rounds, summed over problems, have been played since it was last called."""


class OnEvent(Protocol):
    """Is told what happened: its kind, and its details."""

    def __call__(self, kind: str, **details: Any) -> None: ...


class Job(Protocol):
    """What can be sent to a worker."""

    @property
    def label(self) -> str:
        """For people."""

    @property
    def rounds(self) -> int:
        """How much there is to do."""


J = TypeVar("J", bound=Job)
R = TypeVar("R")


class Engine(Protocol):
    """Computes jobs."""

    @property
    def name(self) -> str:
        """One of `ENGINES`."""

    @property
    def workers(self) -> int:
        """How many jobs it computes at once."""

    def run(
        self,
        work: Callable[[J, OnRounds], R],
        jobs: Iterable[J],
        on_rounds: Callable[[J, int], None],
        on_event: OnEvent,
    ) -> Iterator[tuple[J, R]]:
        """Compute all jobs and yield each, once, as it is done; `work` must be a function of a module."""

    def close(self) -> None:
        """Stop what it started."""


def make_engine(name: str, workers: int | None = None, address: str | None = None) -> Engine:
    """An engine by its name; without `workers`, one process here, or every core of a cluster."""
    require_choice("engine", name, ENGINES)
    if workers is not None:
        require_count("workers", workers)
    if name == "local":
        if address is not None:
            raise InputError(f"address is '{address}', which only the engine ray has a use for; add --engine ray")
        return LocalEngine(workers or 1)
    from driftformer.simulation.ray_engine import RayEngine

    return RayEngine(workers, address)


@contextmanager
def opened(engine: str | Engine, workers: int | None = None, address: str | None = None) -> Iterator[Engine]:
    """An engine for a while: one that is made here is closed here, one that is handed in stays open."""
    if not isinstance(engine, str):
        yield engine
        return
    made = make_engine(engine, workers, address)
    try:
        yield made
    finally:
        made.close()


class LocalEngine:
    """This process, or several of this machine."""

    name = "local"

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def close(self) -> None: ...

    def run(
        self,
        work: Callable[[J, OnRounds], R],
        jobs: Iterable[J],
        on_rounds: Callable[[J, int], None],
        on_event: OnEvent,
    ) -> Iterator[tuple[J, R]]:
        waiting = iter(jobs)
        first = list(islice(waiting, self.workers))
        waiting = chain(first, waiting)
        if len(first) <= 1:  # one worker, or nothing to share out
            for job in waiting:
                yield job, work(job, partial(on_rounds, job))
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(len(first), context, _prepare_worker) as pool:
            pending: dict[Future[R], J] = {}
            try:
                while True:
                    for job in islice(waiting, AHEAD * len(first) - len(pending)):
                        self._check_can_travel(job)
                        pending[pool.submit(_work_in_worker, work, job)] = job
                    if not pending:
                        return
                    done, _ = wait(pending, timeout=0.1, return_when=FIRST_COMPLETED)
                    for future in done:
                        job = pending.pop(future)
                        on_rounds(job, job.rounds)
                        yield job, future.result()
            except BrokenProcessPool as error:
                raise InputError(
                    f"workers is {self.workers}, and one of them died (killed, out of memory, or started from a script "
                    "without an `if __name__ == '__main__'` guard); run again to compute what is missing, or use "
                    "workers=1"
                ) from error
            except BaseException:  # who stops early does not wait; who is done does, or one still starting would crash
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _check_can_travel(self, job: Job) -> None:
        """Refuse what another process could not be told, such as a drift that is a lambda."""
        try:
            ForkingPickler.dumps(job)
        except Exception as error:
            raise InputError(
                f"workers is {self.workers}, but {job.label} cannot be sent to another process ({error}); use "
                "workers=1, or define drift functions and agents at the top level of a module"
            ) from error


def _prepare_worker() -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed parent cannot tell its workers to stop, so they watch for it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work_in_worker(work: Callable[[J, OnRounds], R], job: J) -> R:
    return work(job, _nobody)


def _nobody(rounds: int) -> None: ...
