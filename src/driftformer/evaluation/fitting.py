"""Tables in the width of a terminal: where there is no room, columns are left out, and no name is ever broken."""

from __future__ import annotations

import copy
import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

WITHOUT_TERMINAL = 110
"""Columns where nobody says how many there are: in a file or a pipe."""
_ANY_WIDTH = 10_000


class FittingTable(Table):
    """Its cells stay on one line each, and columns that can be spared go until the others have room.

    `spared` are their headings, the first to go first. `notes` explain columns by their headings, in the caption; those
    of "" are always there. Where nothing is left to spare, the table is wider than the terminal.
    """

    def __init__(self, title: str, spared: Sequence[str] = (), notes: Mapping[str, str] | None = None) -> None:
        aligned: dict[str, Any] = {"title_justify": "left", "caption_justify": "left"}
        super().__init__(title=title, box=SIMPLE_HEAD, pad_edge=False, **aligned)
        self.spared, self.notes = tuple(spared), dict(notes or {})

    def add_column(self, *headings: Any, **options: Any) -> None:
        super().add_column(*headings, **options | {"no_wrap": True})

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table, spared = copy.copy(self), list(self.spared)
        while table._needs(console, options) > options.max_width and spared:
            table._leave_out(spared.pop(0))
        if self.notes:
            shown = {"", *(column.header for column in table.columns)}
            table.caption = "; ".join(note for heading, note in self.notes.items() if heading in shown)
        room = max(options.max_width, table._needs(console, options))
        yield from Table.__rich_console__(table, console, options.update_width(room))

    def _needs(self, console: Console, options: ConsoleOptions) -> int:
        return self.__rich_measure__(console, options.update_width(_ANY_WIDTH)).maximum

    def _leave_out(self, heading: str) -> None:
        kept = [column for column in self.columns if column.header != heading]
        self.columns = [dataclasses.replace(column, _index=place) for place, column in enumerate(kept)]


def terminal() -> Console:
    """Standard output, in the width of the terminal."""
    told = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if told else WITHOUT_TERMINAL)
