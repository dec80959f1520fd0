"""`driftformer choose`: which agent to take for one's own data."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from driftformer.commands.options import Command, LogJson, OptionalFolder, Seed, Several
from driftformer.commands.tables import show


@dataclass(frozen=True)
class Choose(Command):
    """Find the agent to take for your own data.

    For example:
        driftformer choose --data clicks.parquet --target bought
        driftformer choose --data prices.csv --rewards low middle high
        driftformer choose --data phishing --horizon 500

    All sensible agents play. Each row is a round, in the order of the file: the drift that is in the data is part of
    the test. An agent sees only the reward of the arm it chose. Intervals are over 20 consecutive stretches of rounds.
    """

    data: Annotated[str, arg(metavar="FILE")]
    """A .csv or .parquet file, or a built-in table (see `driftformer evaluate table --help`)."""
    target: Annotated[str, arg(help_behavior_hint="")] = ""
    """The file's column of classes, which become the arms; the last one by default."""
    rewards: Several = ()
    """Columns of the file with the reward of each arm, instead of classes."""
    drop: Several = ()
    """Columns of the file to leave out, such as ids and dates."""
    fill: bool = False
    """Missing features count as the mean of their column; another column says where they were."""
    agents: Several = ()
    """Agents to try; by default a dozen sensible ones."""
    horizon: int = 0
    """Rounds: only the first rows; 0 plays all."""
    seed: Seed = 0
    out: OptionalFolder = None
    """Folder for results. Without it, they are only printed."""
    log_json: LogJson = False

    def run(self) -> None:
        from driftformer.evaluation.choose import SENSIBLE, choose

        options = {name: value for name, value in vars(self).items() if name != "log_json"}
        choice = choose(**options | {"agents": self.agents or SENSIBLE})
        show(choice.render(), *choice.advice())
        if choice.code:
            print(choice.code)  # not broken into lines, so that it can be copied
