"""`driftformer rates`: how regret grows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from driftformer.commands.options import Command
from driftformer.commands.tables import new_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

    from driftformer.experiments.measure_rates import Exponent


@dataclass(frozen=True)
class Rates(Command):
    """Measure how regret grows with T, J and Δ.

    For example:
        driftformer rates
        driftformer rates --longest 100000 --workers 2

    Plays a family of two-armed problems with long horizons, fits the exponents of T (rounds), J (changes) and Δ (amount
    of change), and compares them with the paper's table of rates. The first example takes a few minutes on one core,
    the second about half an hour. Results are kept in OUT: a second call only fits and redraws.
    """

    longest: int = 10_000
    """Longest horizon when T varies. When J or Δ varies, the horizon is a tenth of it."""
    runs: int = 64
    """Number of problems for each setting."""
    seed: int = 0
    """Random seed."""
    out: Path = Path("runs/rates")
    """Folder for results, rates.json and rates.png."""
    workers: int = 1
    """Number of processes."""

    def run(self) -> None:
        from rich.console import Console

        from driftformer.experiments.measure_rates import measure_rates

        found = measure_rates(self.out, longest=self.longest, runs=self.runs, seed=self.seed, workers=self.workers)
        Console().print(_table(found, self.longest))
        print(f"\nfigure: {self.out / 'rates.png'} (and .svg); numbers: {self.out / 'rates.json'}")


def _table(found: Mapping[str, Mapping[str, Exponent]], longest: int) -> Table:
    """Fitted exponents beside those of the paper."""
    from driftformer.experiments.rates import sweeps

    table = new_table("Exponents of dynamic regret, with 95% intervals", "sweep", "agent", "exponent", "in the paper")
    for sweep in sweeps(longest):
        first = (f"{sweep.name} ({sweep.axis})", sweep.expected)
        for agent, fitted in found[sweep.name].items():
            table.add_row(first[0], agent, f"{fitted.slope:.2f} [{fitted.low:.2f}, {fitted.high:.2f}]", first[1])
            first = ("", "")
    return table
