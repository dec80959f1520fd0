"""`driftformer leaderboard`: all agents and all worlds of some folders on one board."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.markup import escape
from tyro.conf import Positional, arg

from driftformer.commands.options import Command, OptionalFolder
from driftformer.commands.tables import show
from driftformer.evaluation.fitting import FittingTable

_NOTES = {"agent": "* knows what no real agent can", "first better (95%)": "how likely the first agent does better"}


@dataclass(frozen=True)
class Leaderboard(Command):
    """Rank agents over many worlds.

    For example:
        driftformer leaderboard runs/high runs/jumps runs/mine
        driftformer leaderboard runs/reproduce --out runs/board
        driftformer leaderboard runs/high runs/low --against oracle

    Each FOLDER is that of `driftformer evaluate`, or holds such folders. Scores are 0 for random play and 100 for the
    best arm of every round in the same world, so that worlds can be compared; `random` must have played them all. The
    order is that of interquartile means over all problems, with stratified bootstrap intervals (Agarwal and others,
    2021). An agent that did not play every world has no place in it.
    """

    folders: Annotated[Positional[tuple[Path, ...]], arg(metavar="FOLDER", help_behavior_hint="(required)")] = ()
    """Folders with results."""
    against: Annotated[str, arg(metavar="AGENT", help_behavior_hint="(optional)")] = ""
    """An agent whose regret is 100 instead of zero regret, such as oracle."""
    out: OptionalFolder = None
    """Folder for leaderboard.png, .svg and .json. Without it, the board is only printed."""

    def run(self) -> None:
        from driftformer.evaluation import leaderboard as boards
        from driftformer.simulation.summary import CHANCE
        from driftformer.storage.files import write_json

        board = boards.leaderboard(boards.read_worlds(self.folders), self.against)
        heads = ("agent", "score (95%)", "first better (95%)", *map(str, range(1, len(board.worlds) + 1)))
        table = FittingTable(f"\nScores: 0 is {CHANCE}, 100 {board.top}", (*reversed(heads[3:]), heads[2]), _NOTES)
        for place, head in enumerate(heads):
            table.add_column(head, justify="right" if place > 1 else "left")
        for row in boards.rows(board):
            table.add_row(*map(escape, row))
        show(table)
        for place, world in enumerate(board.worlds, 1):
            print(f"{place}: {world.title} ({world.description}; {world.runs:,} problems)")
        print(f"\n{boards.verdict(board)} {boards.evidence(board)}".replace("`", ""))
        if self.out is not None:
            for ending in ("png", "svg"):
                boards.draw(board, self.out / f"leaderboard.{ending}")
            write_json(self.out / "leaderboard.json", boards.to_json(board))
            print(f"\nleaderboard.png, .svg and .json are in {self.out}")
