"""Jobs for tests of engines, in a module that workers import at once."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from driftformer.errors import InputError
from driftformer.simulation.engines import ReportRounds


@dataclass(frozen=True)
class Number:
    """A job for tests."""

    value: int

    @property
    def label(self) -> str:
        return f"number {self.value}"

    @property
    def rounds(self) -> int:
        return 10


def squared(job: Number, report: ReportRounds) -> int:
    report(3)
    report(7)
    return job.value**2


def killed_once(marker: Path) -> None:
    """Kill this process the first time that anyone comes here."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Doomed(Number):
    folder: str = ""


def dies_at_three(job: Doomed, report: ReportRounds) -> int:
    report(4)
    if job.value == 3:
        killed_once(Path(job.folder) / "killed")
    report(6)
    return job.value**2


def always_dies(job: Number, report: ReportRounds) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def stumbles(job: Number, report: ReportRounds) -> int:
    raise InputError(f"{job.value} is no number; give four")


def waits_for_word(job: Doomed, report: ReportRounds) -> int:
    """Plays some rounds, then goes on when the file `go` appears."""
    report(job.value)
    while not (Path(job.folder) / "go").exists():
        time.sleep(0.01)
    return job.value**2
