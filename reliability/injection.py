"""The faults themselves. Each strikes a command while it runs, or its files before it runs again.

A fault that came too late to strike, because the command had ended, does not count and is tried again.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from reliability.command import Command, Ended

DURING = ("kill", "kill at a write", "kill before an update", "kill a worker", "full disk", "no permission")
DAMAGE = ("truncate", "flip a bit")
KINDS = (*DURING, *DAMAGE)
SOON = 1.5
"""Most seconds from a worker's first sign to its death: in a short command it does not live much longer."""


@dataclass(frozen=True)
class Lab:
    """Where faults can be injected, and by what means."""

    plain: Path  # an ordinary folder
    disk: Path | None  # a small file system of its own, where mounting is allowed
    can_lock: bool  # whether folders can be made read-only for this user

    @property
    def means(self) -> str:
        full = "a tmpfs of 8 MiB that is filled up" if self.disk else "RLIMIT_FSIZE (no mounting here)"
        lock = (
            ("chattr +i on its folders" if os.geteuid() == 0 else "chmod a-w on its folders") if self.can_lock else ""
        )
        return f"full disk: {full}; no permission: {lock or 'not possible here, left out'}"


@contextlib.contextmanager
def laboratory(folder: Path) -> Iterator[Lab]:
    """Prepare a folder, and a small disk in it if the system allows that."""
    plain, disk = folder / "plain", folder / "disk"
    plain.mkdir()
    disk.mkdir()
    mounted = _quietly("mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk))
    try:
        probe = plain / "probe"
        probe.mkdir()
        can_lock = _locked(plain, True) and not _writable(probe)
        _locked(plain, False)
        yield Lab(plain, disk if mounted else None, can_lock)
    finally:
        _locked(plain, False)
        if mounted:
            subprocess.run(["umount", "--lazy", str(disk)], check=False)


def _quietly(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _writable(folder: Path) -> bool:
    try:
        (folder / "try").touch()
    except OSError:
        return False
    return True


def _locked(folder: Path, locked: bool) -> bool:
    """Take or give back the permission to write in all folders under one; root needs more than permission bits."""
    if os.geteuid() == 0:
        folders = [str(path) for path in (folder, *folder.rglob("*")) if path.is_dir()]
        return _quietly("chattr", "+i" if locked else "-i", *folders)
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            path.chmod(0o555 if locked else 0o755)
    return True


@dataclass
class Strike:
    """One command under one fault."""

    ended: Ended
    struck: bool  # whether the fault came in time
    victim: Path | None = field(default=None)


def strike(
    kind: str,
    arguments: list[str],
    folder: Path,
    lab: Lab,
    seconds: float,
    room: int,
    workers: str,
    rng: np.random.Generator,
) -> Strike:
    """Run a command that takes about so many seconds and bytes, and let a fault happen at a random point of it."""
    delay, fresh = float(rng.uniform(0, seconds)), bool(workers)
    if kind == "kill":
        command = Command(arguments, fresh=fresh)
        _sleep(command, delay)
        command.kill()
        ended = command.wait()
        return Strike(ended, ended.was_killed)
    if kind == "kill at a write":
        ended = Command(arguments, _die_at(int(rng.integers(1, 60)))).wait()
        return Strike(ended, ended.was_killed)
    if kind == "kill before an update":
        ended = Command(arguments, _die_before_update(int(rng.integers(1, 70)))).wait()
        return Strike(ended, ended.was_killed)
    if kind == "kill a worker":
        return _kill_worker(Command(arguments, fresh=fresh), workers, float(rng.uniform(0, SOON)))
    if kind == "full disk" and lab.disk is not None:
        with _filled(lab.disk, int(rng.integers(0, room))):
            ended = Command(arguments, fresh=fresh).wait()
        return Strike(ended, ended.code != 0)
    if kind == "full disk":
        ended = Command(arguments, _limit(int(rng.integers(100, 20_000))), fresh).wait()
        return Strike(ended, ended.code != 0)
    command = Command(arguments, fresh=fresh)
    _sleep(command, delay)
    _locked(folder, True)
    ended = command.wait()
    _locked(folder, False)
    return Strike(ended, ended.code != 0)


def _sleep(command: Command, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and command.alive():
        time.sleep(0.002)


def _die_at(count: int) -> Callable[[], None]:
    """Let the process be killed at one of its steps towards a written file: before or after a flush or a rename."""

    def prepare() -> None:
        left = [count]

        def wrap(step: Callable[..., object]) -> Callable[..., object]:
            def stepped(*inputs: object, **options: object) -> object:
                _count_down(left)
                done = step(*inputs, **options)
                _count_down(left)
                return done

            return stepped

        os.fsync = wrap(os.fsync)  # type: ignore[assignment]
        os.replace = wrap(os.replace)  # type: ignore[assignment]

    return prepare


def _die_before_update(count: int) -> Callable[[], None]:
    """Let a service be killed when it is about to hear of a reward: between `act` and `update`."""

    def prepare() -> None:
        from driftformer.agents.services.online import OnlineMany

        left, update = [count], OnlineMany.update

        def counted(self: OnlineMany, *inputs: Any, **options: Any) -> list[bool]:
            _count_down(left)
            return update(self, *inputs, **options)

        OnlineMany.update = counted  # type: ignore[method-assign]

    return prepare


def _count_down(left: list[int]) -> None:
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)


def _limit(size: int) -> Callable[[], None]:
    """No file may become larger than that: a write fails in the middle, as on a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _kill_worker(command: Command, mark: str, delay: float) -> Strike:
    """Kill a worker of a command, once there is one and some time has passed."""
    while command.alive() and not command.workers(mark):
        time.sleep(0.01)
    _sleep(command, delay)
    killed = False
    for pid in command.workers(mark)[:1]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            killed = True
    ended = command.wait()
    return Strike(ended, killed)


@contextlib.contextmanager
def _filled(disk: Path, left: int) -> Iterator[None]:
    """Fill a disk up to some bytes."""
    filler = disk / "filler"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    with filler.open("wb") as file:
        if free > left:
            os.posix_fallocate(file.fileno(), 0, free - left)
    try:
        yield
    finally:
        filler.unlink()


def damage(kind: str, path: Path, rng: np.random.Generator) -> None:
    """Cut a file off, or flip one of its bits."""
    content = bytearray(path.read_bytes())
    place = int(rng.integers(0, max(1, len(content))))
    if kind == "truncate":
        del content[place:]
    else:
        content[place] ^= 1 << int(rng.integers(0, 8))
    path.write_bytes(bytes(content))
