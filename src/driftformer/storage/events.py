"""What happened in a run, for those who ask afterwards: `events.jsonl` beside its results.

    {"time": "2025-06-01T12:00:00.123Z", "pid": 4711, "kind": "retry", "job": "'linucb' on 'high', chunk 3", …}

| kind | what happened |
|---|---|
| start, resume, restart | a command began here; after one that ended; after one that was killed |
| worker-lost, retry | a worker died; its job was sent again |
| saved | a training's state was saved for the last time in this sitting, at this step |
| stop, finish | the command ended with an error or an interrupt; or with all it was asked for |

Lines are only ever appended, each in one write, so several processes may write, and a kill can tear no line but the
last, which readers pass over. Nothing is computed from events, and a run goes on where they cannot be written. Under
`as_json_lines` the same lines, and those of progress, also go to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

EVENTS = "events.jsonl"

_TAIL = 1 << 16
"""Bytes at the end of the file that are read to see how the last command ended."""

JSON_LINES: ContextVar[bool] = ContextVar("json_lines", default=False)
"""Whether progress and messages are JSON lines on standard error."""


@contextmanager
def as_json_lines() -> Iterator[None]:
    """Within: progress and messages are JSON lines on standard error."""
    before = JSON_LINES.set(True)
    try:
        yield
    finally:
        JSON_LINES.reset(before)


def say(kind: str, **details: Any) -> None:
    """A JSON line on standard error, if they are wanted there."""
    _show(_line(kind, details))


class EventLog:
    """The events of one command in one folder; without a folder they are only said."""

    def __init__(self, folder: Path | None, mark: str | None = None) -> None:
        """Nothing is written before the file `mark` is there: a command that fails at the door leaves nothing."""
        self._folder, self._mark = folder, mark
        self._waiting: list[str] = []

    def begin(self, **details: Any) -> None:
        """Say that a command begins, and how the one before it ended."""
        earlier = [] if self._folder is None else _read(self._folder / EVENTS, _TAIL)
        ends = [event["kind"] for event in earlier if event.get("kind") in ("start", "resume", "restart", *_ENDS)]
        kind = "start" if not earlier else "resume" if ends and ends[-1] in _ENDS else "restart"
        self.tell(kind, **details)

    def tell(self, kind: str, **details: Any) -> None:
        line = _line(kind, details)
        _show(line)
        if self._folder is not None:
            self._waiting.append(line)
            self.settle()

    def settle(self) -> None:
        """Write what waits, if the folder is ours by now."""
        if not self._waiting or self._folder is None:
            return
        if self._mark is not None and not (self._folder / self._mark).exists():
            return
        with suppress(OSError):  # a full disk is an error of the results, which say so themselves
            _append(self._folder / EVENTS, "".join(f"{line}\n" for line in self._waiting))
        self._waiting.clear()


_ENDS = ("stop", "finish")


@contextmanager
def sitting(folder: Path | None, mark: str | None = None, **details: Any) -> Iterator[EventLog]:
    """One command's events, from its beginning to whatever end it comes to."""
    log = EventLog(folder, mark)
    log.begin(**details)
    try:
        yield log
    except BaseException as error:
        log.tell("stop", why=str(error) or type(error).__name__)
        raise
    log.tell("finish")


def read_events(folder: Path | str) -> list[dict[str, Any]]:
    """All events of a folder, in order; torn lines are passed over."""
    return _read(Path(folder) / EVENTS)


def _line(kind: str, details: dict[str, Any]) -> str:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"time": now, "pid": os.getpid(), "kind": kind, **details}, default=str)


def _show(line: str) -> None:
    if JSON_LINES.get():
        print(line, file=sys.stderr, flush=True)


def _append(path: Path, text: str) -> None:
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        size = os.fstat(handle).st_size
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"  # by a kill: begin on a line of our own
        os.write(handle, ("\n" * torn + text).encode())
    finally:
        os.close(handle)


def _read(path: Path, last: int | None = None) -> list[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            if last is not None:
                file.seek(max(0, path.stat().st_size - last))
            content = file.read()
    except OSError:  # none yet
        return []
    events = []
    for line in content.splitlines():
        with suppress(ValueError, RecursionError):
            event = json.loads(line)
            if isinstance(event, dict):
                events.append(event)
    return events
