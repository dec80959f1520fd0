"""`driftformer reproduce`: the paper's experiments, and more."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from driftformer.commands.options import CREW, Command, Crew, LogJson
from driftformer.commands.report import Report
from driftformer.commands.tables import print_result
from driftformer.experiments import NAMES
from driftformer.experiments.base import ScaleName
from driftformer.experiments.paper import PAPER


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

    experiments: Positional[Annotated[tuple[str, ...], arg(metavar="EXPERIMENT")]] = tuple(
        experiment.name for experiment in PAPER
    )
    """Experiments to run, or all."""
    scale: ScaleName = "quick"
    """How many problems to play: a few hundred, or as many as the paper."""
    runs: Annotated[int | None, arg(metavar="INT", help_behavior_hint="(default: set by --scale)")] = None
    """Number of problems for every agent."""
    seed: int = 0
    """Random seed."""
    pretrain: bool = False
    """Train the policies first instead of using the shipped ones. Needs a GPU to finish in hours."""
    out: Path = Path("runs/reproduce")
    """Folder for results, figures and the report."""
    device: str = "cpu"
    """cpu or cuda."""
    log_json: LogJson = False
    crew: Crew = CREW

    def run(self) -> None:
        from driftformer.experiments.reproduce import draw_experiments, reproduce

        reproduce(
            NAMES if self.experiments == ("all",) else self.experiments,
            self.out,
            scale=self.scale,
            runs=self.runs,
            seed=self.seed,
            **vars(self.crew),
            device=self.device,
            pretrain=self.pretrain,
            on_result=lambda case, result: print_result(result),
        )
        draw_experiments(self.out)
        Report(self.out).run()
