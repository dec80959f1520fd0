"""How commands print tables."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from driftformer.evaluation.fitting import terminal


def new_table(title: str, columns: Iterable[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table without lines, whose first column holds names that are never broken."""
    table = Table(title=f"\n{title}", title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.min_width = min(len(title), terminal().width)  # so that no title is broken where it need not be
    for place, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=place == 0)
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def show(*tables: Table | str) -> None:
    """Print to the terminal, in its width."""
    terminal().print(*tables, sep="\n", crop=False)


def show_result(result: Any) -> None:
    """Print the table of an evaluation, and what to know about it."""
    from driftformer.evaluation.result import notes, render

    show(render(result.summary, result.timing), *notes(result.summary))
