"""Jobs on a Ray cluster: one that is joined by its address, or one of this machine that lives as long as the engine.

Ray only carries jobs out and results back. What must hold is decided here: few jobs are under way at once, each one's
result is taken once, and a job whose worker is lost is sent again, `TRIES` times in all, each time with a report. Ray's
own silent retries are off. A worker is an actor that is given jobs once it is ready: where workers die faster than
torch is imported, that must not count against the jobs. Since a job's result depends on the job alone, a repeated one
brings the same bits.

What travels is small (`python -m benchmarks.ray_engine` measures it): a task is 0.5 to 0.7 kB whatever the agent, since
a policy goes by its name and checksum and is read from its folder where it plays; an outcome of one chunk has four
numbers for each round and one for each problem, 7.5 kB at 200 rounds and 33 kB at 1,000.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, Generic

from driftformer import __version__
from driftformer.errors import InputError
from driftformer.simulation.engines import AHEAD, J, OnEvent, OnRounds, R

TRIES = 5
"""How often a job may be sent out before its loss is an error."""

STILLBORN = 20
"""How many workers may die one after the other before they are ready."""

_PATIENCE = 60.0
"""Seconds to wait for a cluster that has no core left."""

_SETTINGS = {
    "RAY_worker_niceness": "0",  # 15 by default: beside any other program, workers would hardly run
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # what Ray says about a lost worker; we say it ourselves
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # or it warns of its own future
}


def _import_ray() -> Any:
    """Ray, with its voice lowered; our settings only count where it was not imported before."""
    if find_spec("ray") is None:
        raise InputError("engine is 'ray', but Ray is not installed; pip install 'driftformer[ray]', or use local")
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    import ray

    logging.getLogger("ray").setLevel(logging.ERROR)
    return ray


class RayEngine:
    """Connects when it is first needed."""

    name = "ray"

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        self._ray = _import_ray()
        self._asked, self._address = workers, address
        self._connected = self._ours = False
        self._crew: _Crew | None = None

    @property
    def workers(self) -> int:
        self._connect()
        cores = int(self._ray.cluster_resources().get("CPU", 0))
        return max(1, cores if self._asked is None else min(cores, self._asked))

    def _connect(self) -> None:
        if self._connected:
            return
        if not self._ray.is_initialized():  # else the caller has a cluster, and keeps it
            self._start()
            self._ours = True
        self._connected = True

    def _start(self) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if self._address is None:
            self._ray.init(address="local", num_cpus=self._asked, include_dashboard=False, **quiet)
            return
        try:
            _knock(self._address)
            self._ray.init(address=self._address, **quiet)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise InputError(
                f"address is '{self._address}', where no Ray cluster of this version can be joined "
                f"({_brief(error)}); give the host:port of its head, or auto on one of its machines"
            ) from error

    def close(self) -> None:
        if self._crew is not None:
            self._crew.dismiss_all()
        if self._ours and self._ray.is_initialized():
            self._ray.shutdown()
        self._connected = self._ours = False
        self._crew = None

    def run(
        self,
        work: Callable[[J, OnRounds], R],
        jobs: Iterable[J],
        on_rounds: Callable[[J, int], None],
        on_event: OnEvent,
    ) -> Iterator[tuple[J, R]]:
        workers = self.workers
        self._crew = self._crew or _Crew(self._ray)
        for job, result in _Errand(self._ray, self._crew, work, workers, on_event).run(iter(jobs)):
            on_rounds(job, job.rounds)
            yield job, result


def _knock(address: str) -> None:
    """See whether anyone answers at host:port: Ray itself would try for many minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


class _Worker:
    """A process of the cluster. It says when it is ready, so a death while it starts is no job's loss."""

    def ready(self, folder: str, versions: dict[str, str]) -> None:
        """The same bits need the same versions, and relative names of policies the same folder."""
        if versions != _versions():
            raise InputError(
                f"a machine of the Ray cluster has {_versions()}, but this one has {versions}; install the same "
                "versions, or the same seed would give other numbers there"
            )
        if Path(folder).is_dir():
            os.chdir(folder)
        import driftformer.simulation.rollout  # noqa: F401  torch takes its time

    def work(self, work: Callable[[J, OnRounds], R], job: J) -> R:
        return work(job, _nobody)


class _Crew:
    """The workers of an engine, which stay from one call to the next."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._kind = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_Worker)
        self.starting: dict[Any, Any] = {}  # by what tells that it is ready
        self.load: dict[Any, int] = {}  # jobs that each ready one has

    def __len__(self) -> int:
        return len(self.starting) + len(self.load)

    def hire(self) -> None:
        worker = self._kind.remote()
        self.starting[worker.ready.remote(str(Path.cwd()), _versions())] = worker

    def dismiss(self, worker: Any) -> None:
        self.load.pop(worker, None)
        self._ray.kill(worker)

    def dismiss_all(self) -> None:
        if not self._ray.is_initialized():
            return
        for worker in [*self.starting.values(), *self.load]:
            self.dismiss(worker)
        self.starting.clear()


@dataclass
class _Sent(Generic[J]):
    job: J
    tries: int = 0
    worker: Any = None


class _Errand(Generic[J, R]):
    """One call of `run`: what waits, what is under way, and what is to be done when something of it is lost."""

    def __init__(
        self, ray: Any, crew: _Crew, work: Callable[[J, OnRounds], R], workers: int, on_event: OnEvent
    ) -> None:
        self._ray, self._crew, self._work, self._workers, self._on_event = ray, crew, work, workers, on_event
        self._queue: deque[_Sent[J]] = deque()
        self._busy: dict[Any, _Sent[J]] = {}
        self._heard, self._stillborn = time.monotonic(), 0

    def run(self, waiting: Iterator[J]) -> Iterator[tuple[J, R]]:
        try:
            while True:
                room = self._workers * AHEAD - len(self._queue) - len(self._busy)
                self._queue.extend(_Sent(job) for job in islice(waiting, room))
                if not self._queue and not self._busy:
                    return
                while len(self._crew) < min(self._workers, len(self._queue) + len(self._busy)):
                    self._crew.hire()
                self._share_out()
                events = [*self._busy, *self._crew.starting]
                done, _ = self._ray.wait(events, num_returns=1, timeout=5.0)
                self._listen(bool(done))
                for reference in done:
                    if reference in self._busy:
                        yield from self._take(reference)
                    else:
                        self._welcome(reference)
        except BaseException:
            self._abandon()
            raise

    def _abandon(self) -> None:
        """Nobody waits any more for what is under way."""
        if self._ray.is_initialized():
            for worker in {*(sent.worker for sent in self._busy.values()), *self._crew.starting.values()}:
                self._crew.dismiss(worker)
            self._crew.starting.clear()

    def _share_out(self) -> None:
        """A job for every worker that is ready; another one each only while there are plenty."""
        while self._queue and self._crew.load:
            worker = min(self._crew.load, key=self._crew.load.__getitem__)
            if self._crew.load[worker] >= (AHEAD if len(self._queue) >= self._workers else 1):
                return
            self._send(self._queue.popleft(), worker)

    def _send(self, sent: _Sent[J], worker: Any) -> None:
        sent.tries, sent.worker = sent.tries + 1, worker
        try:
            reference = worker.work.remote(self._work, sent.job)
        except Exception as error:  # whatever pickling comes to
            raise InputError(
                f"engine is 'ray', but {sent.job.label} cannot be sent to another process ({_brief(error)}); use the "
                "engine local, or define drift functions and agents at the top level of a module"
            ) from error
        self._busy[reference] = sent
        self._crew.load[worker] += 1

    def _listen(self, heard: bool) -> None:
        """Give up on a cluster that has lost all of its workers' machines."""
        now = time.monotonic()
        if heard or self._ray.cluster_resources().get("CPU", 0) >= 1:
            self._heard = now
        elif now - self._heard > _PATIENCE:
            raise InputError(
                f"the Ray cluster has had no core for {_PATIENCE:.0f} seconds; start machines, then run the same "
                "command again: what was finished is kept"
            )

    def _welcome(self, reference: Any) -> None:
        """A worker is ready, or died before it was."""
        worker = self._crew.starting.pop(reference)
        try:
            with _as_own_errors(self._ray):
                self._ray.get(reference)
        except _Lost as loss:
            self._stillborn += 1
            self._on_event("worker-lost", job=None, why=str(loss))
            if self._stillborn >= STILLBORN:
                raise InputError(
                    f"{STILLBORN} workers in a row died before they were ready ({_brief(loss.__cause__)}); see that "
                    "driftformer is installed on all machines of the Ray cluster, with enough memory"
                ) from loss
        else:
            self._stillborn = 0
            self._crew.load[worker] = 0

    def _take(self, reference: Any) -> Iterator[tuple[J, R]]:
        """A job's result, or nothing if the job has to be done again."""
        sent = self._busy.pop(reference)
        if sent.worker in self._crew.load:
            self._crew.load[sent.worker] -= 1
        try:
            with _as_own_errors(self._ray):
                result: R = self._ray.get(reference)
        except _Lost as loss:
            self._crew.dismiss(sent.worker)
            self._do_again(sent, loss)
        else:
            yield sent.job, result

    def _do_again(self, sent: _Sent[J], loss: _Lost) -> None:
        self._on_event("worker-lost", job=sent.job.label, why=str(loss))
        if sent.tries >= TRIES:
            raise InputError(
                f"{sent.job.label} was lost {sent.tries} times together with its worker ({loss}: killed, out of "
                "memory, or its machine gone); run the same command again: what was finished is kept"
            ) from loss
        self._on_event("retry", job=sent.job.label, attempt=sent.tries + 1, of=TRIES)
        self._queue.appendleft(sent)


class _Lost(Exception):
    """A worker died; named by Ray's word for it."""


@contextmanager
def _as_own_errors(ray: Any) -> Iterator[None]:
    """What the work itself raised, as if it had been done here; what befell its worker, as a loss."""
    exceptions = ray.exceptions
    lost = (
        exceptions.RayActorError,
        exceptions.WorkerCrashedError,
        exceptions.NodeDiedError,
        exceptions.ObjectLostError,
        exceptions.OutOfMemoryError,
        exceptions.LocalRayletDiedError,
    )
    try:
        yield
    except lost as error:
        raise _Lost(type(error).__name__) from error
    except exceptions.RayTaskError as error:
        raise _own_error(error) from None
    except exceptions.RayError as error:
        raise InputError(
            f"the Ray cluster failed ({_brief(error)}); run the same command again: what was finished is kept"
        ) from error


def _nobody(rounds: int) -> None:
    """Rounds are reported where results arrive."""


@cache
def _versions() -> dict[str, str]:
    return {"driftformer": __version__, "torch": version("torch"), "numpy": version("numpy")}


def _own_error(error: Any) -> Exception:
    """What the work itself raised, as if it had been done here."""
    cause = error.cause if isinstance(error.cause, Exception) else None
    if cause is None or "failed to import" in str(cause) or isinstance(cause, ModuleNotFoundError):
        return InputError(
            f"a worker of the Ray cluster cannot do the work ({_brief(cause or error)}); install driftformer and your "
            "own modules on all of its machines"
        )
    return cause


def _brief(error: BaseException | None) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:197] + "…"
