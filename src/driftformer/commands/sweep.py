"""`driftformer sweep`: agents over a grid of settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import UseAppendAction, arg

from driftformer.commands.options import CREW, Command, Crew, LogJson


@dataclass(frozen=True)
class Sweep(Command):
    """Play agents over a grid of settings.

    For example:
        driftformer sweep --environment high --vary b=0,0.01,0.018
        driftformer sweep --environment jumps --vary changes=1,4,16 --vary agent.alpha=0.5,1,2
        driftformer sweep --grid grid.yaml --workers 8 --out runs/grid

    --vary takes an option of the environment (see `driftformer evaluate high --help`) or, after "agent.", an option of
    the agents (see `driftformer list`). Agents without that option are played once. With a single value, the option is
    set but not varied. The same in a file:
        environment: high
        agents: [linucb, thompson]
        vary: {b: [0, 0.01, 0.018], horizon: [500]}
        runs: 200

    OUT/table.parquet has one row per cell and agent: the settings, regret_mean, regret_stderr, a 95% interval, runs and
    rounds_per_cpu_second. OUT/regret.png shows it as lines or a heatmap. Run the command again with more values, and
    only the new cells are computed.
    """

    grid: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="(optional)")] = None
    """YAML file with the grid, instead of --environment, --vary and --agents."""
    environment: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="(required without --grid)")] = None
    """The environment to play."""
    vary: Annotated[tuple[str, ...], UseAppendAction, arg(metavar="NAME=VALUE,VALUE")] = ()
    """An option and its values."""
    agents: Annotated[tuple[str, ...], arg(help_behavior_hint="(default: linucb)")] = ()
    """Agents to play."""
    runs: Annotated[int | None, arg(metavar="INT", help_behavior_hint="(default: 200)")] = None
    """Number of problems in each cell."""
    seed: Annotated[int | None, arg(metavar="INT", help_behavior_hint="(default: 0)")] = None
    """Random seed, the same for all cells."""
    out: Path = Path("runs/sweep")
    """Folder for results, table and figure."""
    log_json: LogJson = False
    crew: Crew = CREW

    def run(self) -> None:
        from rich.console import Console

        from driftformer.plots.sweeps import draw
        from driftformer.sweeps.grid import asked_for
        from driftformer.sweeps.sweep import TABLE, render, sweep

        asked = asked_for(self.grid, self.environment, self.vary, self.agents, self.runs, self.seed)
        rows = sweep(asked.grid, self.out, runs=asked.runs, seed=asked.seed, **vars(self.crew))
        for ending in ("png", "svg"):
            draw(asked.grid, rows, self.out / f"regret.{ending}")
        Console().print(render(asked.grid, rows))
        print(f"\ntable: {self.out / TABLE} ({len(rows):,} rows); figure: {self.out / 'regret.png'} (and .svg)")
