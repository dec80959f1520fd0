"""`driftformer theory`: the paper's constructions, checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from driftformer.commands.options import Command
from driftformer.errors import InputError, require_choice, require_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

    from driftformer.theory.checks import Row


@dataclass(frozen=True)
class Theory(Command):
    """Check the transformers that the paper's proofs construct.

    For example:
        driftformer theory
        driftformer theory --only sigma2 --n 6
        driftformer theory --only sigma2 --plot schedule.png
        driftformer theory --only linucb --plot depth.png

    Builds each transformer with explicit weights and compares it with the exact algorithm, one row per statement of the
    paper. All of them take about a minute. docs/theory.md explains them one by one.
    """

    only: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="(default: all)")] = None
    """Run a single check."""
    n: int = 4
    """Order of the block, which has 2^n rounds."""
    plot: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="(optional)")] = None
    """Figure to draw, .png or .svg: the scheduler, or for linucb, product and noncontinuous one of their own."""

    def run(self) -> None:
        from rich.console import Console

        from driftformer.theory.checks import CHECKS

        require_count("n", self.n, 1, most=6)
        if self.only is not None:
            require_choice("check", self.only, CHECKS)
        if self.plot is not None and self.plot.is_dir():
            raise InputError(f"plot is '{self.plot}', which is a folder; name a file, such as {self.plot}/schedule.png")
        rows = {}
        with Console(stderr=True).status("checking …") as status:
            for name in CHECKS if self.only is None else [self.only]:
                status.update(f"checking {name} …")
                rows[name] = CHECKS[name](self.n)
        Console().print(_table(rows, self.n))
        if self.plot is not None:
            from driftformer.theory.figures import draw

            draw(self.only, self.n, self.plot)
            print(f"figure: {self.plot}")


def _table(rows: Mapping[str, Row], n: int) -> Table:
    """What was claimed and what was measured, one row per statement."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape

    from driftformer.commands.tables import new_table

    columns = ("name", "statement: built", "size: claimed / built", "error: claimed / measured", "verdict")
    table = new_table(f"The proofs, run (blocks of {2**n} rounds)", *columns)
    table.box = SIMPLE_HEAD
    for name, row in rows.items():
        cells = (
            f"{row.statement}: {row.built}",
            f"{row.size_claimed} / {row.size_built}",
            f"{row.error_claimed} / {row.error_measured}",
            row.verdict,
        )
        table.add_row(name, *map(escape, cells))
    return table
