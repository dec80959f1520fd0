"""A progress line with rounds per second and the time left, on standard error."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.text import Text

from driftformer.storage.events import EventLog, are_json_lines, say

if TYPE_CHECKING:
    from driftformer.pretraining.run import Report
    from driftformer.simulation.engines import OnEvent


class _Speed(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f} {self._unit}/s" if speed else "")


class Progress:
    """Shown where a person looks: when `shown` is set, or by default when standard error is a terminal.

    Where JSON lines are wanted there is one of them every second instead.
    """

    def __init__(
        self, rounds: int, title: str, shown: bool | None = None, unit: str = "rounds", chunks: int | None = None
    ) -> None:
        visible = rounds > 0 and (sys.stderr.isatty() if shown is None else shown)
        self._title, self._unit, self._silent = title, unit, shown is False
        self._chunks, self._chunks_done, self._rounds, self._rounds_done = chunks, 0, rounds, 0
        self._began = self._said = time.monotonic()
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
        self._bar = RichProgress(
            *columns,
            TextColumn("{task.fields[told]}"),
            _Speed(unit),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=are_json_lines() or not visible,
            transient=True,
        )
        self._task = self._bar.add_task(title, total=rounds, told=self._told())

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.stop()
        self._say()

    def advance(self, rounds: int) -> None:
        self._rounds_done += rounds
        self._bar.advance(self._task, rounds)
        if time.monotonic() - self._said >= 1.0:
            self._say()

    def finish_chunks(self, chunks: int) -> None:
        self._chunks_done += chunks
        self._bar.update(self._task, told=self._told())

    def skip(self, rounds: int, chunks: int) -> None:
        """Part of the work turns out to be done already."""
        self._rounds -= rounds
        self._chunks = None if self._chunks is None else self._chunks - chunks
        self._bar.update(self._task, total=self._rounds, told=self._told())

    def tell(self, kind: str, **details: Any) -> None:
        """What an engine tells: a retry is a line that stays above the bar. JSON lines have events as they are."""
        if kind == "retry" and not self._silent and not are_json_lines():
            text = f"a worker was lost; try {details['attempt']} of {details['of']}: {details['job']}"
            self._bar.console.print(text, markup=False, highlight=False)

    def _told(self) -> str:
        return "" if self._chunks is None else f"{self._chunks_done:,}/{self._chunks:,} chunks"

    def _say(self) -> None:
        self._said = time.monotonic()
        seconds = self._said - self._began
        speed = self._rounds_done / seconds if seconds else 0.0
        counted = {} if self._chunks is None else {"chunks_done": self._chunks_done, "chunks": self._chunks}
        say(
            "progress",
            title=self._title,
            unit=self._unit,
            done=self._rounds_done,
            of=self._rounds,
            **counted,
            per_second=round(speed, 1),
            seconds_left=round((self._rounds - self._rounds_done) / speed, 1) if speed else None,
        )


def told_by(events: EventLog, bar: Progress) -> OnEvent:
    """What an engine tells goes into the log and, where it is news to a person, onto the terminal."""

    def told(kind: str, **details: Any) -> None:
        events.tell(kind, **details)
        bar.tell(kind, **details)

    return told


class TrainingProgress:
    """A training's progress line: loss, regret, tokens/s and TFLOP/s; where nobody looks, a plain line now and then."""

    def __init__(self, title: str, steps: int, tuning_steps: int) -> None:
        self._title, self._regret, self._last = title, "", 0.0
        self._totals = {"labels": steps, "regret": tuning_steps}
        self._visible = sys.stderr.isatty() and not are_json_lines()
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
        self._bar = RichProgress(
            *columns,
            TextColumn("{task.fields[told]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not self._visible,
        )
        self._tasks = {
            phase: self._bar.add_task(f"{title}: on {phase}", total=total, told="")
            for phase, total in self._totals.items()
            if total
        }

    def __enter__(self) -> TrainingProgress:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.stop()

    def show(self, report: Report) -> None:
        if report.regret is not None:
            self._regret = f", {report.regret:.3f} of uniform regret"
        told = f"loss {report.loss:.3f}{self._regret}, {_short(report.tokens_per_second)} tokens/s"
        told += f", {report.teraflops:.3g} TFLOP/s"
        if report.phase == "regret" and "labels" in self._tasks:
            self._bar.update(self._tasks["labels"], completed=self._totals["labels"])
        self._bar.update(self._tasks[report.phase], completed=report.step, told=told)
        now = time.monotonic()
        if are_json_lines():
            if now - self._last > 1 or report.step == report.steps:
                say("progress", title=self._title, **asdict(report))
                self._last = now
        elif not self._visible and (now - self._last > 30 or report.step == report.steps):
            print(f"{self._title}: on {report.phase}, step {report.step} of {report.steps}, {told}", flush=True)
            self._last = now


class TrainingsProgress:
    """One progress line after the other, for trainings that follow each other."""

    def __init__(self) -> None:
        self._line: TrainingProgress | None = None
        self._of = ("", "")

    def __enter__(self) -> TrainingsProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._line is not None:
            self._line.__exit__(kind, error, at)

    def show(self, label: str, report: Report) -> None:
        if (label, report.phase) != self._of:
            self.__exit__(None, None, None)
            steps = {"labels": 0, "regret": 0} | {report.phase: report.steps}
            self._line = TrainingProgress(label, steps["labels"], steps["regret"]).__enter__()
            self._of = (label, report.phase)
        assert self._line is not None
        self._line.show(report)


def _short(number: float) -> str:
    return f"{number / 1e6:.2f}M" if number >= 1e6 else f"{number / 1e3:.0f}k"
