"""`driftformer evaluate`: agents on one environment."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from driftformer.commands.options import Command, Crew, Device, Environment, LogJson, OptionalFolder, Seed
from driftformer.commands.report import Report
from driftformer.commands.tables import show_result
from driftformer.errors import InputError

_BANDIT, _MDP = ("random", "linucb", "thompson"), ("random", "q-ucb", "restart-q-ucb", "optimal")
"""Who plays where nobody is named."""
_USUAL = f"(default: {' '.join(_BANDIT)}; in MDPs {' '.join(_MDP)})"


@dataclass(frozen=True)
class Evaluate(Command):
    """Compare agents on one environment by dynamic regret.

    For example:
        driftformer evaluate high --agents linucb thompson oracle
        driftformer evaluate high --b 0.025 --runs 1000 --out runs/high --report
        driftformer evaluate jumps --agents linucb@alpha=0.5 linucb@alpha=2

    All agents play the same problems, with the same arms and noise, so their differences are paired.

    With --out, results are kept in a folder. Run the command again with more runs or agents, and only what is missing
    is computed; a run that was killed resumes where it stopped. Neither changes a single bit of the results.
    """

    crew: Crew
    environment: Environment
    """The environment to play; `driftformer evaluate high --help` shows the options of one."""
    agents: Annotated[tuple[str, ...], arg(help_behavior_hint=_USUAL)] = ()
    """Agents to compare (see `driftformer list`). Options follow an @, as in linucb@alpha=2,ridge=0.5."""
    runs: int = 200
    """Number of problems to play."""
    seed: Seed = 0
    out: OptionalFolder = None
    """Folder for results and figures. Without it, results are only printed."""
    device: Device = "cpu"
    trajectories: bool = False
    """Also store every arm, reward, suboptimality and auxiliary value. Needs --out."""
    report: bool = False
    """Also write report.html, and open it where there is a screen. Needs --out."""
    log_json: LogJson = False

    def run(self) -> None:
        from driftformer.evaluation.evaluate import evaluate
        from driftformer.problem import traits_of

        if self.report and self.out is None:
            raise InputError("report is set without out; name the folder that should hold it")
        environment = self.environment.build()
        result = evaluate(
            environment,
            self.agents or (_MDP if traits_of(environment).stages else _BANDIT),
            runs=self.runs,
            seed=self.seed,
            out=self.out,
            device=self.device,
            trajectories=self.trajectories,
            **vars(self.crew),
        )
        show_result(result)
        if self.out is not None:
            for ending in ("png", "svg"):
                result.plot(self.out / f"regret.{ending}", "regret")
                result.plot(self.out / f"suboptimality.{ending}", "suboptimality")
            print(f"\nresults, regret.png and suboptimality.png are in {self.out}")
            if self.report:
                Report(self.out, open=True).run()
