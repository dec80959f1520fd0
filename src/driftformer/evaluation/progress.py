"""A progress line with rounds per second and the time left, on standard error."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.text import Text


class _Speed(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f} rounds/s" if speed else "")


class Progress:
    """Shown where a person looks: when `shown` is set, or by default when standard error is a terminal."""

    def __init__(self, rounds: int, title: str, shown: bool | None = None) -> None:
        visible = rounds > 0 and (sys.stderr.isatty() if shown is None else shown)
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), _Speed())
        self._bar = RichProgress(
            *columns, TimeRemainingColumn(), console=Console(stderr=True), disable=not visible, transient=True
        )
        self._task = self._bar.add_task(title, total=rounds)

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.stop()

    def advance(self, rounds: int) -> None:
        self._bar.advance(self._task, rounds)
