"""`driftformer reproduce` and `rates`: the experiments, and how regret grows."""

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated

from rich.table import Table
from tyro.conf import Positional, arg

from driftformer.commands.options import Command, Crew, Device, LogJson, Seed, Workers, keywords
from driftformer.commands.report import Report
from driftformer.commands.tables import new_table, show, show_result
from driftformer.experiments import NAMES
from driftformer.experiments.base import ScaleName
from driftformer.experiments.paper import PAPER
from driftformer.experiments.readings import READINGS


@dataclass(frozen=True)
class Reproduce(Command):
    """Run the paper's experiments and write a report.

    For example:
        driftformer reproduce
        driftformer reproduce rivals frequency-sweep
        driftformer reproduce all --scale paper --workers 8 --out runs/paper

    The first one runs the paper's Section 5 and takes a few minutes. `driftformer list` shows all experiments.

    Results are kept in OUT, and OUT/report.html shows them. Run the command again to resume, to redraw, or to add
    further experiments: what is there is not computed again.
    """

    crew: Crew
    experiments: Positional[tuple[str, ...]] = tuple(experiment.name for experiment in PAPER)
    """Experiments to run, or all."""
    scale: ScaleName = "quick"
    """How many problems every agent plays: 64, or 512 (192 where there are more than 400 rounds)."""
    runs: Annotated[int | None, arg(metavar="INT", help_behavior_hint="(default: set by --scale)")] = None
    """Number of problems for every agent."""
    seed: Seed = 0
    pretrain: bool = False
    """Train the policies first instead of using the shipped ones. Takes hours on a GPU."""
    out: Path = Path("runs/reproduce")
    """Folder for results, figures and the report."""
    device: Device = "cpu"
    log_json: LogJson = False

    def run(self) -> None:
        from driftformer.experiments.reproduce import draw_experiments, reproduce

        names = NAMES if self.experiments == ("all",) else self.experiments
        reproduce(names, **keywords(self, "experiments"), on_result=show_result)
        draw_experiments(self.out)
        if READINGS.name in names:
            show(*_readings(self.out))
        Report(self.out).run()


def _readings(out: Path) -> list[Table]:
    """The paper's claims by reading: a table for each world."""
    from driftformer.experiments.read_claims import read_claims
    from driftformer.experiments.reproduce import read_experiments

    worlds = groupby(read_claims(read_experiments(out)[READINGS.name]), lambda reading: reading.world)
    columns = ("the transformer", "regret", "verdicts")
    return [
        new_table(world, columns, [(one.agent, one.regret, one.verdicts) for one in readings])
        for world, readings in worlds
    ]


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
        from driftformer.experiments.rates import measure_rates, sweeps

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
