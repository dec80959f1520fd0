"""`driftformer rates`: how regret grows."""

from dataclasses import dataclass
from pathlib import Path

from driftformer.commands.options import Command, Seed, Workers
from driftformer.commands.tables import new_table, show
from driftformer.experiments.rates import sweeps


@dataclass(frozen=True)
class Rates(Command):
    """Measure how regret grows with T, J and Δ.

    For example, in a few minutes and in about half an hour:
        driftformer rates
        driftformer rates --longest 100000

    Plays two-armed problems with long horizons, fits the exponents of T (rounds), J (changes) and Δ (amount of change),
    and compares them with the paper's table of rates. Results are kept in OUT: a second call only fits and redraws.
    """

    longest: int = 10_000
    """Longest horizon when T varies. When J or Δ varies, the horizon is a tenth of it."""
    runs: int = 64
    """Number of problems for each setting."""
    seed: Seed = 0
    out: Path = Path("runs/rates")
    """Folder for results, rates.json and rates.png."""
    workers: Workers = 1

    def run(self) -> None:
        from driftformer.experiments.rates import measure_rates

        found = measure_rates(**vars(self))
        rows = []
        for sweep in sweeps(self.longest):
            first = (f"{sweep.name} ({sweep.axis})", sweep.expected)
            for agent, fitted in found[sweep.name].items():
                rows.append((first[0], agent, f"{fitted.slope:.2f} [{fitted.low:.2f}, {fitted.high:.2f}]", first[1]))
                first = ("", "")
        columns = ("sweep", "agent", "exponent", "in the paper")
        show(new_table("Exponents of dynamic regret, with 95% intervals", columns, rows))
        print(f"\nfigure: {self.out / 'rates.png'} (and .svg); numbers: {self.out / 'rates.json'}")
