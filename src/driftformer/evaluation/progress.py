"""Progress on standard error: a bar on a terminal, a plain line now and then elsewhere, or JSON lines where wanted.

Agents differ 300-fold in speed, so the time left is estimated agent by agent: the rounds that each still has to play,
divided by its speed. The speed is at first what is known of agents of its kind, then what is measured.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as RichProgress

from driftformer.agents.registry import POLICY, label
from driftformer.storage.events import JSON_LINES, EventLog, say

if TYPE_CHECKING:
    from driftformer.evaluation.evaluate import Task
    from driftformer.pretraining.run import Report

FIRST_LINE, LATER_LINES = 10.0, 30.0
"""Seconds until the first plain line, and between later ones."""

_SPEEDS = {
    "random": 1_300_000,
    "optimal": 1_000_000,
    "linucb": 450_000,
    "thompson": 300_000,
    "oracle": 200_000,
    "change-point-oracle": 250_000,
    "restart": 200_000,
    "master": 100_000,
    "discounted-linucb": 70_000,
    "discounted-thompson": 70_000,
    POLICY: 1_000,
}
"""Rounds per CPU-second with 64 problems or more, 32 dimensions and 10 arms: see docs/benchmarks.md."""
_TRUST, _LITTLE_TRUST = 2.0, 1e-6
"""Seconds of measurement that weigh as much as what is known beforehand, of these kinds and of others."""
_USUAL_SPEED = 100_000


def rounds_by_agent(tasks: Iterable[Task]) -> dict[str, int]:
    """How many rounds there are to play, by agent."""
    rounds: Counter[str] = Counter()
    for task in tasks:
        rounds[label(task.agent)] += task.rounds
    return rounds


class TimeLeft:
    """Estimates how long the rest of some work takes."""

    def __init__(self, work: Mapping[str, int], workers: int = 1) -> None:
        self._left, self._workers = dict(work), workers
        kinds = {agent: POLICY if POLICY in agent else agent.partition("@")[0] for agent in work}  # also if wrapped
        self._known = {agent: _SPEEDS.get(kind, _USUAL_SPEED) for agent, kind in kinds.items()}
        self._trust = {agent: _TRUST if kind in _SPEEDS else _LITTLE_TRUST for agent, kind in kinds.items()}
        self._rounds = dict.fromkeys(work, 0)  # those whose time was measured
        self._seconds = dict.fromkeys(work, 0.0)  # of one worker

    def add(self, agent: str, rounds: int, seconds: float | None) -> None:
        """Some rounds were played; `seconds` is the time of the worker, if it is known."""
        self._left[agent] -= rounds
        if seconds is not None:
            self._rounds[agent] += rounds
            self._seconds[agent] += seconds

    def seconds(self) -> float:
        return sum(max(left, 0) / self._speed(agent) for agent, left in self._left.items()) / self._workers

    def _speed(self, agent: str) -> float:
        """What is measured of an agent, and with little of that also what is known, at the pace of this machine."""
        expected = sum(rounds / self._known[name] for name, rounds in self._rounds.items())
        pace = (expected + _TRUST) / (sum(self._seconds.values()) + _TRUST)
        trust = self._trust[agent]
        return (self._known[agent] * pace * trust + self._rounds[agent]) / (trust + self._seconds[agent])


def _rich(*columns: str, visible: bool, transient: bool) -> RichProgress:
    return RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        *map(TextColumn, columns),
        console=Console(stderr=True),
        disable=not visible,
        transient=transient,
    )


class Progress:
    """The progress of some work, which is a number of rounds, or of each agent a number.

    With `shown` unset, standard error decides whether it is a bar or plain lines; True is a bar, False is silence.
    """

    def __init__(
        self,
        work: int | Mapping[str, int],
        title: str,
        shown: bool | None = None,
        workers: int = 1,
        unit: str = "rounds",
        chunks: int | None = None,
        events: EventLog | None = None,
    ) -> None:
        work = {"": work} if isinstance(work, int) else work
        self._title, self._unit, self._silent, self._events = title, unit, shown is False, events
        self._total, self._done, self._chunks, self._chunks_done = sum(work.values()), 0, chunks, 0
        self._left = TimeLeft(work, workers)
        self._began = self._said = time.monotonic()
        self._interval = FIRST_LINE
        self._heard: dict[int, float] = {}  # when each task under way was last heard of
        self._free = [self._began] if workers == 1 else []  # since when workers wait; others take time to start
        self._visible = bool(work) and not JSON_LINES.get() and (sys.stderr.isatty() if shown is None else shown)
        self._bar = _rich("{task.fields[status]}", visible=self._visible, transient=True)
        self._line = self._bar.add_task(title, total=None, status="")

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
        if JSON_LINES.get():
            self._say()

    def played(self, task: Task, rounds: int) -> None:
        """Some rounds of a task were played since it was last heard of."""
        now, since = time.monotonic(), self._heard.get(id(task))
        if since is None and self._free:
            since = self._free.pop()
        self._heard[id(task)] = now
        self._add(label(task.agent), rounds, None if since is None else now - since)

    def finished(self, task: Task) -> None:
        """A task is done, and its worker free."""
        self._heard.pop(id(task), None)
        self._free.append(time.monotonic())
        self._chunks_done += len(task.chunks)

    def advance(self, amount: int) -> None:
        """Some of a work without agents was done."""
        since, self._free[0] = self._free[0], time.monotonic()
        self._add("", amount, self._free[0] - since)

    def tell(self, kind: str, **details: Any) -> None:
        """What an engine reports goes into the log, and a retry is a line that stays. JSON lines have both already."""
        if self._events is not None:
            self._events.tell(kind, **details)
        if kind == "retry" and not self._silent and not JSON_LINES.get():
            text = f"a worker was lost; attempt {details['attempt']} of {details['of']}: {details['job']}"
            self._bar.console.print(text, markup=False, highlight=False)

    def _add(self, agent: str, amount: int, seconds: float | None) -> None:
        self._done += amount
        self._left.add(agent, amount, seconds)
        now = time.monotonic()
        elapsed, left = now - self._began, self._left.seconds()
        status = f"{self._done:,} of {self._total:,} {self._unit}"
        if self._chunks is not None:
            status = f"{self._chunks_done:,} of {self._chunks:,} chunks"
        status += f", {in_words(left)} left"
        self._bar.update(self._line, completed=elapsed, total=elapsed + left, status=status)
        if JSON_LINES.get():
            if now - self._said >= 1.0:
                self._say()
        elif not self._visible and not self._silent and now - self._said >= self._interval:
            print(f"{self._title}: {elapsed / (elapsed + left):.0%} done, {status}", file=sys.stderr, flush=True)
            self._said, self._interval = now, LATER_LINES

    def _say(self) -> None:
        self._said = time.monotonic()
        seconds = self._said - self._began
        counted = {} if self._chunks is None else {"chunks_done": self._chunks_done, "chunks": self._chunks}
        pace = round(self._done / seconds, 1) if seconds else 0.0
        speed = {"per_second": pace, "seconds_left": round(self._left.seconds(), 1)}
        say("progress", title=self._title, unit=self._unit, done=self._done, of=self._total, **counted, **speed)


def in_words(seconds: float) -> str:
    """A time that is not known exactly."""
    if seconds < 100:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 6000 else f"about {seconds / 3600:.1f} h"


class TrainingProgress:
    """Trainings that follow one another: a bar for each phase with loss, regret and speed, or a plain line."""

    def __init__(self, title: str = "") -> None:
        self._title, self._said = title, 0.0
        self._visible = sys.stderr.isatty() and not JSON_LINES.get()
        self._bar = _rich("{task.fields[status]}", "{task.fields[left]}", visible=self._visible, transient=False)
        self._lines: dict[str, Any] = {}
        self._regrets: dict[str, str] = {}  # the latest of each training

    def __enter__(self) -> TrainingProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, report: Report, title: str | None = None) -> None:
        title = self._title if title is None else title
        where = f"{title}: on {report.phase}"
        if where not in self._lines:
            self._lines[where] = self._bar.add_task(where, total=report.steps, status="", left="")
        if report.regret is not None:
            self._regrets[title] = f", {report.regret:.3f} of the uniform policy's regret"
        tokens = report.tokens_per_second
        speed = f"{tokens / 1e6:.2f}M" if tokens >= 1e6 else f"{tokens / 1e3:.0f}k"
        status = f"loss {report.loss:.3f}{self._regrets.get(title, '')}, {speed} tokens/s"
        status += f", {report.teraflops:.3g} TFLOP/s"
        line = self._lines[where]
        remaining = self._bar.tasks[line].time_remaining
        left = "" if remaining is None else f"{in_words(remaining)} left"
        self._bar.update(line, completed=report.step, status=status, left=left)
        now = time.monotonic()
        if now - self._said <= (1 if JSON_LINES.get() else LATER_LINES) and report.step < report.steps:
            return
        self._said = now
        say("progress", title=title, **asdict(report))
        if not self._visible and not JSON_LINES.get():
            print(f"{where}, step {report.step} of {report.steps}, {status}", file=sys.stderr, flush=True)
