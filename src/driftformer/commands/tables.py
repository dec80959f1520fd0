"""How commands print tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from driftformer.evaluation.result import Result


def new_table(title: str, *columns: str) -> Table:
    """A table without lines, whose first column holds names that are never broken."""
    table = Table(title=f"\n{title}", title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=place == 0)
    return table


def print_result(result: Result) -> None:
    """An evaluation's table, and what a reader of it should know."""
    from driftformer.evaluation.result import notes, render

    Console().print(render(result.summary, result.timing), *notes(result.summary), sep="\n")
