"""One command of driftformer in a process of its own.

Most are forked from this process, so that nothing is imported again; one that starts workers begins as a user's would.
What it writes to the terminal is kept in files, as a user would have seen it.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

PATIENCE = 120.0
"""Seconds after which a command counts as hanging."""


_PROGRESS = re.compile(r"tiny: on (labels|regret), step \d+ of \d+, |[\w ]+: \d+% done, |$")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int  # its exit code, or minus the signal that ended it
    said: str  # on standard error, lines of progress left out

    @property
    def was_killed(self) -> bool:
        return self.code == -signal.SIGKILL


class Command:
    """A command at work."""

    def __init__(
        self, arguments: Sequence[str], prepare: Callable[[], None] | None = None, fresh: bool = False
    ) -> None:
        handle, name = tempfile.mkstemp(prefix="said-")
        self._said = Path(name)
        self._began = time.monotonic()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _be(arguments, handle, prepare, fresh)
        os.close(handle)

    def alive(self) -> bool:
        """Whether it still runs; it is not reaped here."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def workers(self, mark: str) -> list[int]:
        """Processes below it that have a mark in their command lines."""
        found = []
        with suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self.pid).children(recursive=True):
                with suppress(psutil.Error):
                    found += [process.pid] if mark in " ".join(process.cmdline()) else []
        return found

    def wait(self) -> Ended:
        """Until it has ended; one that hangs is killed, and that is no exit code of ours."""
        hangs = False
        while self.alive():
            if time.monotonic() - self._began > PATIENCE:
                hangs = True
                self.kill()
            time.sleep(0.005)
        _, status = os.waitpid(self.pid, 0)
        lines = self._said.read_text(errors="replace").splitlines(keepends=True)
        said = "".join(line for line in lines if not _PROGRESS.match(line))
        self._said.unlink()
        return Ended(1, f"{said}\nTraceback: it hung") if hangs else Ended(os.waitstatus_to_exitcode(status), said)


def _be(arguments: Sequence[str], stderr: int, prepare: Callable[[], None] | None, fresh: bool) -> None:
    """The whole life of the forked process: it never returns from here."""
    code = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for source, target in ((nothing, 0), (nothing, 1), (stderr, 2)):
            os.dup2(source, target)
        if prepare is not None:
            prepare()
        if fresh:
            os.execv(sys.executable, [sys.executable, "-m", "driftformer", *arguments])
        from driftformer.cli import main

        main(list(arguments))
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
