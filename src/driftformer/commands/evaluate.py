"""`driftformer evaluate`: agents on one environment."""

from __future__ import annotations

from dataclasses import dataclass

from driftformer.commands.options import CREW, Command, Crew, Environment, Folder, LogJson
from driftformer.commands.tables import print_result


@dataclass(frozen=True)
class Evaluate(Command):
    """Compare agents on one environment by dynamic regret.

    For example:
        driftformer evaluate high --agents linucb thompson oracle
        driftformer evaluate high --b 0.025 --runs 1000 --out runs/high
        driftformer evaluate jumps --changes 8 --agents linucb@alpha=0.5 linucb@alpha=2

    All agents play the same problems, with the same arms and noise, so their differences are paired.

    With --out, results are kept in a folder. Run the command again with more runs or agents, and only what is missing
    is computed; a run that was killed resumes where it stopped. Neither changes a single bit of the results.

    `driftformer list` shows all environments and agents, `driftformer evaluate high --help` the options of one
    environment.
    """

    environment: Environment
    """The environment to play."""
    agents: tuple[str, ...] = ("random", "linucb", "thompson")
    """Agents to compare. Options follow an @, as in linucb@alpha=2,ridge=0.5."""
    runs: int = 200
    """Number of problems to play."""
    seed: int = 0
    """Random seed. The same seed gives the same results."""
    out: Folder = None
    """Folder for results and figures. Without it, results are only printed."""
    device: str = "cpu"
    """cpu or cuda. The two draw different random numbers, so their results are kept apart."""
    trajectories: bool = False
    """Also store every arm, reward, suboptimality and auxiliary value. Needs --out."""
    log_json: LogJson = False
    crew: Crew = CREW

    def run(self) -> None:
        from driftformer.environments.presets import build
        from driftformer.evaluation.evaluate import evaluate

        result = evaluate(
            build(self.environment),
            self.agents,
            runs=self.runs,
            seed=self.seed,
            out=self.out,
            **vars(self.crew),
            device=self.device,
            trajectories=self.trajectories,
        )
        print_result(result)
        if self.out is not None:
            for ending in ("png", "svg"):
                result.plot(self.out / f"regret.{ending}", "regret")
                result.plot(self.out / f"suboptimality.{ending}", "suboptimality")
            print(f"\nresults, regret.png and suboptimality.png are in {self.out}")
