"""Where jobs are computed: in this process, in several processes of this machine, or on a Ray cluster.

A job holds all that a worker needs, and its result depends on the job alone, so every engine gives the same bits.
Results come back to the process that called, which alone writes them. Processes and Ray's workers are two kinds of
`Pool`, driven by one loop, `run_jobs`: it takes jobs as there is room for them, so a hundred thousand need no more
memory than a few; it sends a job again when its worker is lost, `TRIES` times in all; and it takes each result once.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing.reduction import ForkingPickler
from queue import Empty, SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

from driftformer.errors import InputError, require_choice, require_count

ENGINES = ("local", "ray")

AHEAD = 2
"""Jobs under way for each worker: the one it computes and the next, so that no worker waits for us."""

TRIES = 5
"""How often a job may be sent out before its loss is an error."""

_POLL = 0.1
"""Seconds between two looks at the rounds that workers have played."""

ReportRounds = Callable[[int], None]
"""Called by the work with the number of rounds, summed over problems, played since the last call."""


class OnEvent(Protocol):
    """Receives what happened: the kind of event and its details."""

    def __call__(self, kind: str, **details: Any) -> None: ...


class Job(Protocol):
    """What can be sent to a worker."""

    @property
    def label(self) -> str:
        """A name for people."""

    @property
    def rounds(self) -> int:
        """How many rounds there are to play."""


J = TypeVar("J", bound=Job)
R = TypeVar("R")
Done = Iterator[tuple[J, R]]
Work = Callable[[J, ReportRounds], R]
OnRounds = Callable[[J, int], None]
"""Receives a job and how many more of its rounds have been played; over a whole job they sum to `job.rounds`."""


class Engine(Protocol):
    """Computes jobs."""

    @property
    def name(self) -> str:
        """One of `ENGINES`."""

    @property
    def workers(self) -> int:
        """How many jobs it computes at once."""

    def run(self, work: Work[J, R], jobs: Iterable[J], on_rounds: OnRounds[J], on_event: OnEvent) -> Done[J, R]:
        """Compute all jobs and yield each of them once, when it is done; `work` must be a function of a module."""

    def close(self) -> None:
        """Stop all workers."""


def make_engine(name: str, workers: int | None = None, address: str | None = None) -> Engine:
    """An engine by name; without `workers`, this process alone, or every core of a cluster."""
    require_choice("engine", name, ENGINES)
    if workers is not None:
        require_count("workers", workers)
    if name == "local":
        if address is not None:
            raise InputError(f"address is '{address}', but only the engine ray takes an address; add --engine ray")
        return LocalEngine(workers or 1)
    from driftformer.simulation.ray_engine import RayEngine

    return RayEngine(workers, address)


@contextmanager
def opened(engine: str | Engine, workers: int | None = None, address: str | None = None) -> Iterator[Engine]:
    """An engine for a while: one made here is closed at the end, one passed in stays open."""
    if not isinstance(engine, str):
        yield engine
        return
    made = make_engine(engine, workers, address)
    try:
        yield made
    finally:
        made.close()


class Lost(Exception):
    """A worker died; the message says how."""


class Pool(Protocol):
    """Workers that compute jobs side by side."""

    stillborn: int
    """How many workers in a row may die before they are ready."""
    remedy: str
    """What to do when they do."""
    done: SimpleQueue[Future[Any]]
    """Receives every future once it is done, be it of a job or of a worker that was starting."""

    @property
    def starting(self) -> Container[Future[Any]]:
        """Each is done when a worker is ready, or has died before it was."""

    def hire(self, workers: int) -> None:
        """Replace lost workers and start missing ones, up to this number; raise if there is no hope for any."""

    def has_room(self, queued: int) -> bool:
        """Whether a ready worker should be given one of so many queued jobs."""

    def submit(self, work: Work[J, R], job: J) -> Future[R]:
        """Give a job to a worker."""

    def result(self, future: Future[R]) -> R:
        """What a job, or a worker that was starting, came to: its result, what it raised, or `Lost`."""

    def played(self) -> Iterable[tuple[Future[Any], int]]:
        """How many rounds of the jobs under way have been played, where that is known."""

    def close(self, wait: bool = True) -> None:
        """Stop all workers; without `wait`, whatever they are doing."""


@dataclass
class _Sent(Generic[J]):
    """A job on its way."""

    job: J
    on_rounds: OnRounds[J]
    tries: int = 0
    told: int = 0

    def tell(self, played: int) -> None:
        """Report rounds once, even if a lost worker had played them before."""
        if played > self.told:
            self.on_rounds(self.job, played - self.told)
            self.told = played

    def advance(self, rounds: int) -> None:
        self.tell(self.told + rounds)


def run_jobs(
    pool: Pool, workers: int, work: Work[J, R], jobs: Iterable[J], on_rounds: OnRounds[J], on_event: OnEvent
) -> Done[J, R]:
    """Compute jobs on a pool's workers, whatever happens to those; see `Engine.run`."""
    waiting, queue, stillborn = iter(jobs), deque[_Sent[J]](), 0
    busy: dict[Future[R], _Sent[J]] = {}
    try:
        while True:
            room = AHEAD * workers - len(queue) - len(busy)
            queue.extend(_Sent(job, on_rounds) for job in islice(waiting, room))
            if not queue and not busy:
                return
            pool.hire(min(workers, len(queue) + len(busy)))
            while queue and pool.has_room(len(queue)):
                sent = queue.popleft()
                sent.tries += 1
                busy[pool.submit(work, sent.job)] = sent
            for future, rounds in pool.played():
                busy[future].tell(rounds)
            try:
                future = pool.done.get(timeout=_POLL)
            except Empty:
                continue
            done = busy.pop(future, None)
            if done is None and future not in pool.starting:
                continue  # from workers that were given up
            try:
                result = pool.result(future)
            except Lost as loss:
                on_event("worker-lost", job=done and done.job.label, why=str(loss))
                if done is not None:
                    if done.tries >= TRIES:
                        raise InputError(
                            f"{done.job.label} was lost {TRIES} times with its worker ({loss}: killed, out of memory, "
                            "or its machine gone); run the same command again: finished work is kept"
                        ) from loss
                    on_event("retry", job=done.job.label, attempt=done.tries + 1, of=TRIES)
                    queue.appendleft(done)
                elif (stillborn := stillborn + 1) >= pool.stillborn:
                    raise InputError(f"workers died before they were ready ({loss}); {pool.remedy}") from loss
                continue
            stillborn = 0
            if done is not None:
                done.tell(done.job.rounds)
                yield done.job, result
    except BaseException:
        pool.close(wait=False)
        raise


@contextmanager
def travels(failure: str) -> Iterator[None]:
    """Refuse what cannot go from process to process, for example a job with a drift that is a lambda."""
    try:
        yield
    except Exception as error:  # whatever pickling may raise
        remedy = "use workers=1, or define drift functions and agents at the top level of a module"
        raise InputError(f"{failure} ({brief(error)}); {remedy}") from error


def brief(error: BaseException | None) -> str:
    """An error's message on one line of at most 200 characters."""
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:197] + "…"


class LocalEngine:
    """This process, or several of this machine, which stay from one call to the next."""

    name = "local"

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = _Processes(workers)

    def close(self) -> None:
        self._pool.close()

    def run(self, work: Work[J, R], jobs: Iterable[J], on_rounds: OnRounds[J], on_event: OnEvent) -> Done[J, R]:
        waiting = iter(jobs)
        first = list(islice(waiting, 2))
        if self.workers > 1 and len(first) > 1:
            yield from run_jobs(self._pool, self.workers, work, chain(first, waiting), on_rounds, on_event)
            return
        for job in chain(first, waiting):
            sent = _Sent(job, on_rounds)
            result = work(job, sent.advance)
            sent.tell(job.rounds)
            yield job, result


class _Processes:
    """Processes of this machine. When one of them dies, the executor ends the others too, and all start again."""

    stillborn = 2
    remedy = (
        "they were killed, ran out of memory, or were started from a script without an `if __name__ == '__main__'` "
        "guard; add the guard, or use workers=1"
    )

    def __init__(self, workers: int) -> None:
        self.done: SimpleQueue[Future[Any]] = SimpleQueue()
        self._workers, self._hired, self._ready = workers, 0, False
        self._executor: ProcessPoolExecutor | None = None
        self.starting: set[Future[Any]] = set()
        self._slots: dict[Future[Any], int] = {}  # each job under way counts its rounds in a slot of its own

    def hire(self, workers: int) -> None:
        if self._executor is None:
            if self._slots:  # lost with the last executor, and still to be taken note of
                return
            context = multiprocessing.get_context("spawn")
            self._hired, self._ready, self._free = 0, False, list(range(AHEAD * self._workers))
            self._played = context.RawArray("q", len(self._free))
            self._executor = ProcessPoolExecutor(self._workers, context, _prepare_worker, (self._played,))
        for _ in range(self._hired, workers):
            self.starting.add(self._submit(_be_ready))
            self._hired += 1

    def has_room(self, queued: int) -> bool:
        return self._executor is not None and self._ready and bool(self._free)

    def submit(self, work: Work[J, R], job: J) -> Future[R]:
        with travels(f"{job.label} cannot be sent to another process"):
            content = bytes(ForkingPickler.dumps(job))
        slot = self._free.pop()
        self._played[slot] = 0
        future: Future[R] = self._submit(_compute, work, content, slot)
        self._slots[future] = slot
        return future

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        assert self._executor is not None
        future: Future[Any] = Future()
        try:
            future = self._executor.submit(function, *arguments)
        except BrokenProcessPool as error:
            future.set_exception(error)
        future.add_done_callback(self.done.put)
        return future

    def result(self, future: Future[R]) -> R:
        starting = future in self.starting
        self.starting.discard(future)
        if not starting:
            self._free.append(self._slots.pop(future))
        try:
            result = future.result()
        except BrokenProcessPool as error:
            self._executor = None
            self.starting.clear()
            raise Lost("a process ended while it was starting" if starting else "a process ended") from error
        self._ready |= starting
        return result

    def played(self) -> list[tuple[Future[Any], int]]:
        return [(future, self._played[slot]) for future, slot in self._slots.items()]

    def close(self, wait: bool = True) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait, cancel_futures=True)
        self._executor = None
        self.starting.clear()
        self._slots.clear()


_played: Any = None
"""In a worker: the rounds of each job under way, shared with the process that called."""


def _prepare_worker(played: Any) -> None:
    global _played
    _played = played
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import driftformer.simulation.rollout  # noqa: F401  torch takes its time


def _end_with_parent() -> None:
    """A killed parent cannot tell its workers to stop, so they watch for it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _be_ready() -> None: ...


def _compute(work: Work[J, R], content: bytes, slot: int) -> R:
    with travels("a worker process cannot load its job"):
        job = ForkingPickler.loads(content)

    def report(rounds: int) -> None:
        _played[slot] += rounds

    return work(job, report)
