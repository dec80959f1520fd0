"""Jobs on a Ray cluster: one that is joined by its address, or one of this machine that lives as long as the engine.

Ray carries jobs out and results back; which job is sent where, and what happens when it is lost, is decided by
`engines.run_jobs`, so Ray's own silent retries are off. A worker is an actor that is given jobs once it is ready: where
workers die faster than torch is imported, that must not count against the jobs.

What travels is small (`python -m benchmarks.ray_engine` measures it): a task has 0.5 to 0.7 kB for every agent, since
a policy goes by its name and checksum and is read from its folder where it plays; an outcome of one chunk has four
numbers for each round and one for each problem, 7.5 kB at 200 rounds and 33 kB at 1,000.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Iterable
from concurrent.futures import Future
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from driftformer import __version__
from driftformer.errors import InputError
from driftformer.simulation.engines import AHEAD, Done, J, Lost, OnEvent, OnRounds, R, Work, brief, run_jobs, travels

_PATIENCE = 60.0
"""Seconds to wait for a cluster that has no core left."""
_BETWEEN_CHECKS = 5.0

_LOSSES = (
    "RayActorError",
    "WorkerCrashedError",
    "NodeDiedError",
    "ObjectLostError",
    "OutOfMemoryError",
    "LocalRayletDiedError",
)
"""Ray's errors that befall a worker, not the work."""

_SETTINGS = {
    "RAY_worker_niceness": "0",  # 15 by default: beside any other program, workers would hardly run
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # what Ray says about a lost worker; we say it ourselves
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # or Ray warns of a future change
}


class RayEngine:
    """Connects when it is first needed."""

    name = "ray"

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        self._ray = _import_ray()
        self._asked, self._address = workers, address
        self._pool: _Actors | None = None
        self._ours = False

    @property
    def workers(self) -> int:
        self._connect()
        cores = int(self._ray.cluster_resources().get("CPU", 0))
        return max(1, cores if self._asked is None else min(cores, self._asked))

    def _connect(self) -> _Actors:
        if self._pool is None:
            if not self._ray.is_initialized():  # otherwise the caller has a cluster, and keeps it
                self._start()
                self._ours = True
            self._pool = _Actors(self._ray)
        return self._pool

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
                f"({brief(error)}); give the host:port of its head, or auto on one of its machines"
            ) from error

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
        if self._ours and self._ray.is_initialized():
            self._ray.shutdown()
        self._pool, self._ours = None, False

    def run(self, work: Work[J, R], jobs: Iterable[J], on_rounds: OnRounds[J], on_event: OnEvent) -> Done[J, R]:
        return run_jobs(self._connect(), self.workers, work, jobs, on_rounds, on_event)


def _import_ray() -> Any:
    """Ray, with little to say; our settings count only where it was not imported before."""
    if find_spec("ray") is None:
        raise InputError("engine is 'ray', but Ray is not installed; pip install 'driftformer[ray]', or use local")
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    import ray

    logging.getLogger("ray").setLevel(logging.ERROR)
    return ray


def _knock(address: str) -> None:
    """See whether anyone answers at host:port: Ray itself would try for many minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


class _Worker:
    """A process of the cluster."""

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

    def work(self, work: Work[J, R], job: J) -> R:
        return work(job, lambda rounds: None)


class _Actors:
    """The workers of a cluster, which stay from one call to the next."""

    stillborn = 20
    remedy = "check that driftformer is installed on all machines of the Ray cluster, with enough memory"

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._kind = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_Worker)
        self._load: dict[Any, int] = {}  # jobs that each ready worker has
        self._sent: dict[Future[Any], Any] = {}  # the worker of each job under way
        self._checked = self._alive = time.monotonic()
        self.starting: dict[Future[Any], Any] = {}
        self.done: SimpleQueue[Future[Any]] = SimpleQueue()

    def hire(self, workers: int) -> None:
        while len(self.starting) + len(self._load) < workers:
            worker = self._kind.remote()
            self.starting[self._future(worker.ready.remote(str(Path.cwd()), _versions()))] = worker
        self._check()

    def _check(self) -> None:
        """Give up on a cluster that has lost all machines for its workers."""
        now = time.monotonic()
        if now - self._checked < _BETWEEN_CHECKS:
            return
        self._checked = now
        if self._ray.cluster_resources().get("CPU", 0) >= 1:
            self._alive = now
        elif now - self._alive > _PATIENCE:
            raise InputError(
                f"the Ray cluster has had no core for {_PATIENCE:.0f} seconds; start machines, then run the same "
                "command again: finished work is kept"
            )

    def _future(self, reference: Any) -> Future[Any]:
        future: Future[Any] = reference.future()
        future.add_done_callback(self.done.put)
        return future

    def has_room(self, queued: int) -> bool:
        """A job for every ready worker; a second one only while there are plenty."""
        most = AHEAD if queued >= len(self._load) + len(self.starting) else 1
        return bool(self._load) and min(self._load.values()) < most

    def submit(self, work: Work[J, R], job: J) -> Future[R]:
        worker = min(self._load, key=self._load.__getitem__)
        with travels(f"{job.label} cannot be sent to another process"):
            future: Future[R] = self._future(worker.work.remote(work, job))
        self._sent[future] = worker
        self._load[worker] += 1
        return future

    def result(self, future: Future[R]) -> R:
        starting = future in self.starting
        worker = self.starting.pop(future) if starting else self._sent.pop(future)
        if worker in self._load:
            self._load[worker] -= 1
        try:
            result = future.result()
        except Exception as error:
            raise self._own_error(error, worker) from None
        if starting:
            self._load[worker] = 0
        return result

    def _own_error(self, error: Exception, worker: Any) -> Exception:
        """What the work itself raised, as if it had been done here; what befell its worker, as a loss."""
        exceptions = self._ray.exceptions
        if isinstance(error, tuple(getattr(exceptions, name) for name in _LOSSES)):
            self._dismiss(worker)
            return Lost(type(error).__name__)
        if not isinstance(error, exceptions.RayTaskError):
            return InputError(
                f"the Ray cluster failed ({brief(error)}); run the same command again: finished work is kept"
            )
        cause = error.cause if isinstance(error.cause, Exception) else None
        if cause is None or "failed to import" in str(cause) or isinstance(cause, ModuleNotFoundError):
            return InputError(
                f"a worker of the Ray cluster cannot do the work ({brief(cause or error)}); install driftformer and "
                "your own modules on all of its machines"
            )
        return cause

    def played(self) -> tuple[tuple[Future[Any], int], ...]:
        return ()  # known when results arrive

    def _dismiss(self, worker: Any) -> None:
        self._load.pop(worker, None)
        self._ray.kill(worker)

    def close(self, wait: bool = True) -> None:
        if self._ray.is_initialized():
            for worker in [*self.starting.values(), *self._load]:
                self._dismiss(worker)
        self.starting.clear()
        self._sent.clear()


@cache
def _versions() -> dict[str, str]:
    return {"driftformer": __version__, "torch": version("torch"), "numpy": version("numpy")}
