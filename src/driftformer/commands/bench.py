"""`driftformer bench`: how fast this machine simulates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from driftformer.commands.options import Command
from driftformer.commands.tables import new_table


@dataclass(frozen=True)
class Bench(Command):
    """Measure how many rounds per second this machine simulates.

    For example:
        driftformer bench --agents linucb master-linucb --problems 64 512

    Problems have d=32 and 10 arms. On a CPU, time is the CPU time of one thread. To compare with other libraries, run
    `make bench` in the repository.
    """

    agents: tuple[str, ...] = ("random", "linucb", "thompson")
    """Agents to time. The time includes the environment's."""
    problems: tuple[int, ...] = (64, 256, 512, 1024)
    """Numbers of problems played at once; multiples of 64."""
    horizon: int = 1000
    """Rounds of each problem."""
    arm_mode: Literal["fixed", "resampled"] = "resampled"
    """Draw arms once per problem, or anew in every round."""
    device: str = "cpu"
    """cpu or cuda."""

    def run(self) -> None:
        from rich.console import Console

        from driftformer.simulation.throughput import measure

        measured = measure(self.agents, self.problems, self.horizon, self.arm_mode, self.device)
        unit = "CPU-second" if self.device == "cpu" else "second"
        sizes = [f"{size:,} problems" for size in self.problems]
        table = new_table(f"Rounds per {unit} on {self.device}, d=32, 10 {self.arm_mode} arms", "agent", *sizes)
        for column in table.columns[1:]:
            column.justify = "right"
        for agent, by_size in measured.items():
            table.add_row(agent, *(f"{speed:,.0f}" for speed in by_size.values()))
        Console().print(table)
