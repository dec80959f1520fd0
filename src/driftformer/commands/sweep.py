"""`driftformer sweep`: agents over a grid of settings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import UseAppendAction, arg

from driftformer.commands.options import Command, Crew, LogJson, OptionalFile
from driftformer.commands.tables import show


@dataclass(frozen=True)
class Sweep(Command):
    """Play agents over a grid of settings.

    For example:
        driftformer sweep --environment high --vary b=0,0.01,0.018
        driftformer sweep --environment jumps --vary agent.alpha=0.5,1,2
        driftformer sweep --grid grid.yaml --workers 8 --out runs/grid

    Options that vary are those of the environment (see `driftformer evaluate high --help`) or, after "agent.", those of
    agents (see `driftformer list`). Agents without such an option are played once. An option with a single value is
    set, not varied. A file has the same words:
        {environment: high, agents: [linucb], vary: {b: [0, 0.01]}, runs: 200}

    OUT/table.parquet has one row per cell and agent: the settings, regret_mean, regret_stderr, a 95% interval, runs and
    rounds_per_cpu_second. Run the command again with more values, and only the new cells are computed.
    """

    crew: Crew
    grid: OptionalFile = None
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

    def run(self) -> None:
        from driftformer.sweeps.grid import asked_for
        from driftformer.sweeps.sweep import TABLE, draw, render, sweep

        grid = asked_for(self.grid, self.environment, self.vary, self.agents, self.runs, self.seed)
        rows = sweep(grid, self.out, **vars(self.crew))
        for ending in ("png", "svg"):
            draw(grid, rows, self.out / f"regret.{ending}")
        show(render(grid, rows))
        print(f"\n{len(rows):,} rows are in {self.out / TABLE}; figure: {self.out / 'regret.png'} (and .svg)")
