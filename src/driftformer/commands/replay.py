"""`driftformer replay`: what agents would have earned, from the log of a system that somebody else was running."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from driftformer.commands.options import Command, LogJson, Seed
from driftformer.commands.tables import show


@dataclass(frozen=True)
class Replay(Command):
    """Judge agents by a log of decisions.

    For example:
        driftformer replay log.parquet
        driftformer replay log.parquet --agents linucb@alpha=0.25 policy:drift
        driftformer replay clicks.csv --uniform --scale

    It estimates what agents would have earned. A log has a row for each round, and these columns: round, in ascending
    order; arm, the one that was played, numbered from 0; reward; propensity, the probability with which that arm was
    drawn; and either features (a list of numbers for each arm), context (one list of numbers), or neither. The column
    offered, which may be left out, lists the arms that could be played. In CSV, lists are written as JSON.

    Each agent is judged by replay, which asks how it would do in service and needs a log that drew its arms uniformly;
    and by ips, snips and dr, which weigh the choices it would make after learning from the log so far. Where the log
    cannot tell, the table says why. docs/logs.md explains what each estimate means.
    """

    log: Annotated[Positional[str], arg(metavar="FILE")]
    """The log, .parquet or .csv."""
    agents: tuple[str, ...] = ("random", "linucb", "discounted-linucb")
    """Agents to judge (see `driftformer list`). Options follow an @, as in linucb@alpha=2,ridge=0.5."""
    uniform: bool = False
    """All arms on offer were equally likely in every round: a log without propensities will do."""
    scale: bool = False
    """Features and contexts are raw columns, perhaps with missing numbers: standardise them by what was seen so far."""
    seed: Seed = 0
    log_json: LogJson = False

    def run(self) -> None:
        from driftformer.logs.replay import replay
        from driftformer.logs.result import notes, render

        found = replay(self.log, self.agents, uniform=self.uniform, scale=self.scale, seed=self.seed)
        show(render(found), *notes(found))
