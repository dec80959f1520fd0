"""Jobs on a Ray cluster: one that is joined by its address, or one of this machine that lives as long as the engine.

Ray only carries jobs out and results back. What must hold is decided here: few jobs are under way at once, each one's
result is taken once, and a job whose worker is lost is sent again, `TRIES` times in all, each time with a report. Ray's
own silent retries are off. Since a job's result depends on the job alone, a repeated one brings the same bits.

What travels is small (`python -m benchmarks.ray_engine` measures it): a task is about 1 kB, whatever the agent, since a
policy goes by its name and checksum and is read from its folder where it plays; an outcome has four numbers for each
round and one for each problem of a chunk, 32 kB at 1,000 rounds.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator
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

_PATIENCE = 60.0
"""Seconds to wait for a cluster that has no core left."""

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # what Ray says about a lost worker; we say it ourselves
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # or it warns of its own future
}


def _import_ray() -> Any:
    """Ray, with its voice lowered; the settings only count where it was not imported before."""
    if find_spec("ray") is None:
        raise InputError("engine is 'ray', but Ray is not installed; pip install 'driftformer[ray]', or use local")
    for name, value in _QUIET.items():
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
        if self._ours and self._ray.is_initialized():
            self._ray.shutdown()
        self._connected = self._ours = False

    def run(
        self, work: Callable[[J, OnRounds], R], jobs: Iterable[J], on_rounds: OnRounds, on_event: OnEvent
    ) -> Iterator[tuple[J, R]]:
        # On a shared cluster no more than was asked for; otherwise one job more lies ready for each worker.
        ahead = 1 if self._asked is not None and self._address is not None else AHEAD
        errand = _Errand(self._ray, work, self.workers * ahead, on_event)
        for job, result in errand.run(iter(jobs)):
            on_rounds(job.rounds)
            yield job, result


def _knock(address: str) -> None:
    """See whether anyone answers at host:port: Ray itself would try for many minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


@dataclass
class _Sent(Generic[J]):
    job: J
    tries: int = 1


class _Errand(Generic[J, R]):
    """One call of `run`: what is under way, and what is to be done when something of it is lost."""

    def __init__(self, ray: Any, work: Callable[[J, OnRounds], R], room: int, on_event: OnEvent) -> None:
        self._ray, self._work, self._room, self._on_event = ray, work, room, on_event
        self._remote = ray.remote(num_cpus=1, max_retries=0)(_work_there)
        self._pending: dict[Any, _Sent[J]] = {}
        self._heard = time.monotonic()

    def run(self, waiting: Iterator[J]) -> Iterator[tuple[J, R]]:
        try:
            while True:
                for job in islice(waiting, self._room - len(self._pending)):
                    self._send(_Sent(job))
                if not self._pending:
                    return
                done, _ = self._ray.wait(list(self._pending), num_returns=1, timeout=5.0)
                self._listen(bool(done))
                for reference in done:
                    sent = self._pending.pop(reference)
                    for result in self._result(reference, sent):
                        yield sent.job, result
        finally:
            for reference in self._pending:
                self._ray.cancel(reference, force=True)

    def _send(self, sent: _Sent[J]) -> None:
        try:
            reference = self._remote.remote(self._work, sent.job, str(Path.cwd()), _versions())
        except Exception as error:  # whatever pickling comes to
            raise InputError(
                f"engine is 'ray', but {sent.job.label} cannot be sent to another process ({_brief(error)}); use the "
                "engine local, or define drift functions and agents at the top level of a module"
            ) from error
        self._pending[reference] = sent

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

    def _result(self, reference: Any, sent: _Sent[J]) -> Iterator[R]:
        """The result, or nothing if the job had to be sent again."""
        exceptions = self._ray.exceptions
        lost = (
            exceptions.WorkerCrashedError,
            exceptions.NodeDiedError,
            exceptions.ObjectLostError,
            exceptions.OutOfMemoryError,
            exceptions.LocalRayletDiedError,
        )
        try:
            result: R = self._ray.get(reference)
        except lost as error:
            self._send_again(sent, error)
        except exceptions.RayTaskError as error:
            raise _own_error(error) from None
        except exceptions.RayError as error:
            raise InputError(
                f"the Ray cluster failed ({_brief(error)}); run the same command again: what was finished is kept"
            ) from error
        else:
            yield result

    def _send_again(self, sent: _Sent[J], error: Exception) -> None:
        why = type(error).__name__
        self._on_event("worker-lost", job=sent.job.label, why=why)
        if sent.tries >= TRIES:
            raise InputError(
                f"{sent.job.label} was lost {sent.tries} times together with its worker ({why}: killed, out of memory, "
                "or its machine gone); run the same command again: what was finished is kept"
            ) from error
        sent.tries += 1
        self._on_event("retry", job=sent.job.label, attempt=sent.tries, of=TRIES)
        self._send(sent)


def _work_there(work: Callable[[J, OnRounds], R], job: J, folder: str, versions: dict[str, str]) -> R:
    """On a worker: the same bits need the same versions, and relative names of policies the same folder."""
    if versions != _versions():
        raise InputError(
            f"a machine of the Ray cluster has {_versions()}, but this one has {versions}; install the same versions, "
            "or the same seed would give other numbers there"
        )
    if Path(folder).is_dir():
        os.chdir(folder)
    return work(job, _nobody)


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


def _brief(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:197] + "…"
