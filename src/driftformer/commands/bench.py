"""`driftformer bench`: how fast this machine simulates."""

from dataclasses import dataclass
from typing import Literal

from driftformer.commands.options import Command, Device
from driftformer.commands.tables import new_table, show


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
    device: Device = "cpu"

    def run(self) -> None:
        from driftformer.simulation.throughput import measure

        measured = measure(self.agents, self.problems, self.horizon, self.arm_mode, self.device)
        unit = "CPU-second" if self.device == "cpu" else "second"
        title = f"Rounds per {unit} on {self.device}, d=32, 10 {self.arm_mode} arms"
        rows = ((agent, *(f"{speed:,.0f}" for speed in speeds.values())) for agent, speeds in measured.items())
        table = new_table(title, ("agent", *(f"{size:,} problems" for size in self.problems)), rows)
        for column in table.columns[1:]:
            column.justify = "right"
        show(table)
