"""`driftformer show`: pictures of what happens inside an agent."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driftformer.commands.options import Command, Environment, Figure, Seed, one_of
from driftformer.errors import require_count


@dataclass(frozen=True)
class Schedule(Command):
    """The schedule of one MALG block (Section 4.1 and Algorithm 1)."""

    n: int = 4
    """Order of the block. It has 2^n rounds and instances of orders 0 to n."""
    seed: Seed = 0
    c1: float = 1.0
    """First constant of ρ(t) = c1/√t + c2/t."""
    c2: float = 0.0
    """Second constant of ρ(t)."""
    out: Figure = Path("schedule.png")

    def run(self) -> None:
        from driftformer.agents.master import Master
        from driftformer.agents.schedule import malg, run
        from driftformer.plots.schedule import draw_schedule
        from driftformer.randomness import Randomness

        require_count("n", self.n, 0, most=10)
        require_count("seed", self.seed, 0, most=2**63)
        scheduler = malg(self.n, Master(c1=self.c1, c2=self.c2).rho)
        rounds = run(scheduler, 2**self.n, Randomness(self.seed, size=1).stream("coins"))
        draw_schedule(scheduler, rounds, self.out)


@dataclass(frozen=True)
class Run(Command):
    """One run of one agent, the first of `driftformer evaluate`: rewards, regret, instances, restarts and changes."""

    environment: Environment
    """The environment to play."""
    agent: str = "master-linucb"
    """The agent to watch."""
    seed: Seed = 0
    out: Figure = Path("run.png")

    def run(self) -> None:
        from driftformer.agents.incontext import InContext
        from driftformer.agents.registry import make_agent
        from driftformer.plots.schedule import draw_run
        from driftformer.simulation.changes import change_points
        from driftformer.simulation.rollout import rollout

        environment, agent = self.environment.build(), make_agent(self.agent)
        seen = rollout(environment, agent, seed=self.seed, trajectories=True).trajectories
        assert seen is not None
        arrays = {name: value.numpy() for name, value in seen.tensors().items()}
        draw_run(
            arrays,
            f"{self.agent} on {environment.name}, seed {self.seed}, problem 1",
            self.out,
            changes=change_points(environment, seen.arms, seed=self.seed),
            probabilities=isinstance(innermost(agent), InContext),
        )


def innermost(agent: Any) -> Any:
    """The agent that others wrap: its auxiliary value is theirs."""
    while hasattr(agent, "base"):
        agent = agent.base
    return agent


@dataclass(frozen=True)
class Equivalence(Command):
    """Why the window scheduler cannot imitate a sliding window (fig:equivalence)."""

    rounds: int = 8
    """Number of rounds."""
    window: int = 2
    """Length of the sliding window."""
    out: Figure = Path("equivalence.png")

    def run(self) -> None:
        from driftformer.plots.schedule import draw_equivalence

        require_count("rounds", self.rounds, 2, most=40)
        require_count("window", self.window, 1, most=self.rounds)
        draw_equivalence(self.rounds, self.window, self.out)


if TYPE_CHECKING:
    Picture = Schedule | Run | Equivalence
else:
    Picture = one_of({"schedule": Schedule, "run": Run, "equivalence": Equivalence})


@dataclass(frozen=True)
class Show(Command):
    """Draw what happens inside an agent.

    For example:
        driftformer show schedule --n 4 --seed 3
        driftformer show run jumps --agent master-linucb --out run.svg
    """

    picture: Picture
    """The figure to draw."""

    def run(self) -> None:
        self.picture.run()
        print(f"figure: {self.picture.out}")
