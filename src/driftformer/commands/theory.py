"""`driftformer theory`: the paper's constructions, checked."""

import re
from dataclasses import dataclass
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table
from tyro.conf import arg

from driftformer.commands.options import Command, OptionalFile
from driftformer.commands.tables import new_table, show
from driftformer.errors import InputError
from driftformer.evaluation.fitting import terminal

NAMES = (
    *("indicator", "random", "hold", "bernoulli", "product", "sigma1", "sigma2", "restart", "tests", "sums"),
    *(
        "compression",
        "noncontinuous",
        "thompson",
        "coins",
        "linucb",
        "sizes",
        "bounds",
        "experiments",
        "covering",
        "lemma",
        "assumption",
    ),
)
"""The checks, for help that comes without torch; a test holds them to `theory.checks`."""
_ONLY = f"Run a single check: {', '.join(NAMES[:-1])} or {NAMES[-1]}."


@dataclass(frozen=True)
class Theory(Command):
    """Check the transformers that the paper's proofs construct.

    For example:
        driftformer theory
        driftformer theory --only sigma2 --n 6
        driftformer theory --only noncontinuous --n 6 --problems 100
        driftformer theory --only linucb --verbose --plot depth.png

    Builds each transformer with explicit weights and compares it with the exact algorithm, one row per statement of the
    paper. All of them take about a minute. docs/theory.md explains them one by one.
    """

    only: Annotated[str | None, arg(metavar="NAME", help=_ONLY, help_behavior_hint="(default: all)")] = None
    n: int = 4
    """Order of the block, which has 2^n rounds."""
    problems: int = 12
    """Problems that whole networks play."""
    rounds: Annotated[int | None, arg(metavar="INT", help_behavior_hint="(default: 2^(n+1) - 1)")] = None
    """Rounds of these problems."""
    dim: int = 3
    """Features of their arms."""
    arms: int = 4
    """Their arms."""
    verbose: bool = False
    """Also tell what was built, with sizes and errors as the paper claims them and as they are."""
    plot: OptionalFile = None
    """Figure to draw, .png or .svg: the scheduler, or for linucb, product and noncontinuous one of their own."""

    def run(self) -> None:
        from driftformer.theory.checks import CHECKS, Scale, run_checks
        from driftformer.theory.figures import draw

        if self.plot is not None and self.plot.is_dir():
            raise InputError(f"plot is '{self.plot}', which is a folder; name a file, such as {self.plot}/schedule.png")
        names = list(CHECKS) if self.only is None else [self.only]
        with Console(stderr=True).status("checking …") as status:
            scale = Scale(self.n, self.problems, self.rounds, self.dim, self.arms)
            found = run_checks(names, scale, on_check=lambda name: status.update(f"checking {name} …"))
        show(*(_details(name, row) for name, row in found.items()) if self.verbose else [_overview(found, self.n)])
        if not self.verbose:
            print("\nwhat was built, sizes and errors: --verbose")
        if self.plot is not None:
            draw(self.only, self.n, self.plot)
            print(f"figure: {self.plot}")


def _overview(found: dict[str, Any], n: int) -> Table:
    """A line for each check, cut off where the terminal ends."""
    rows = [(name, re.sub(r" \(.*?\)", "", row.statement), row.verdict) for name, row in found.items()]
    table = new_table(f"The proofs, run (blocks of {2**n} rounds)", ("check", "statement", "verdict"), rows)
    room = terminal().width - max(map(len, found)) - 4  # two blanks between columns
    for column, width in zip(table.columns[1:], (room * 2 // 5, room - room * 2 // 5), strict=True):
        column.no_wrap, column.overflow, column.max_width = True, "ellipsis", width
    return table


def _details(name: str, row: Any) -> Table:
    """All that a check says."""
    told = {
        "statement": row.statement,
        "built": row.built,
        "size": f"claimed {row.size_claimed}; built {row.size_built}",
        "error": f"claimed {row.error_claimed}; measured {row.error_measured}",
        "verdict": row.verdict,
    }
    table = new_table(name, ("", ""), [(f"  {heading}", text) for heading, text in told.items()])
    table.show_header = False
    return table
