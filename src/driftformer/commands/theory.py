"""`driftformer theory`: the paper's constructions, checked."""

from dataclasses import dataclass
from typing import Annotated

from rich.box import SIMPLE_HEAD
from rich.console import Console
from tyro.conf import arg

from driftformer.commands.options import Command, OptionalFile
from driftformer.commands.tables import new_table, show
from driftformer.errors import InputError


@dataclass(frozen=True)
class Theory(Command):
    """Check the transformers that the paper's proofs construct.

    For example:
        driftformer theory
        driftformer theory --only sigma2 --n 6
        driftformer theory --only noncontinuous --n 6 --problems 100
        driftformer theory --only linucb --plot depth.png

    Builds each transformer with explicit weights and compares it with the exact algorithm, one row per statement of the
    paper. All of them take about a minute. docs/theory.md explains them one by one.
    """

    only: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="(default: all)")] = None
    """Run a single check."""
    n: int = 4
    """Order of the block, which has 2^n rounds."""
    problems: int = 12
    """Problems that whole networks play."""
    rounds: int | None = None
    """Rounds of these problems (default: 2^(n+1) - 1)."""
    dim: int = 3
    """Features of their arms."""
    arms: int = 4
    """Their arms."""
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
        rows = []
        for name, row in found.items():
            size, error = f"{row.size_claimed} / {row.size_built}", f"{row.error_claimed} / {row.error_measured}"
            rows.append((name, f"{row.statement}: {row.built}", size, error, row.verdict))
        columns = ("name", "statement: built", "size: claimed / built", "error: claimed / measured", "verdict")
        table = new_table(f"The proofs, run (blocks of {2**self.n} rounds)", columns, rows)
        table.box = SIMPLE_HEAD
        show(table)
        if self.plot is not None:
            draw(self.only, self.n, self.plot)
            print(f"figure: {self.plot}")
