"""`driftformer leaderboard`: all agents and all worlds of some folders on one board."""

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from driftformer.commands.options import Command, OptionalFolder
from driftformer.commands.tables import new_table, show

_WORLDS = 3
"""Columns of single worlds; with more, 80 columns would break names."""


@dataclass(frozen=True)
class Leaderboard(Command):
    """Rank agents over many worlds.

    For example:
        driftformer leaderboard runs/high runs/jumps runs/mine
        driftformer leaderboard runs/reproduce --out runs/board
        driftformer leaderboard runs/high runs/low --against oracle

    FOLDERS are those of `driftformer evaluate`, or hold such folders. Each score is 0 for random play and 100 for the
    best arm of every round in the same world, so that worlds can be compared; `random` must have played them all.
    The order is that of interquartile means over all problems, with stratified bootstrap intervals (Agarwal et al.
    2021). An agent that did not play every world has no place in it.
    """

    folders: Positional[tuple[Path, ...]]
    """Folders with results."""
    against: str = ""
    """An agent whose regret is 100 instead of zero regret, such as oracle."""
    out: OptionalFolder = None
    """Folder for leaderboard.png, .svg and .json. Without it, the board is only printed."""

    def run(self) -> None:
        from driftformer.evaluation import leaderboard as boards
        from driftformer.simulation.summary import CHANCE
        from driftformer.storage.files import write_json

        board = boards.leaderboard(boards.read_worlds(self.folders), self.against)
        worlds = len(board.worlds) if len(board.worlds) <= _WORLDS else 0
        heads = ("agent", "score (95%)", "first better", *map(str, range(1, worlds + 1)))
        table = new_table(f"Scores: 0 is {CHANCE}, 100 {board.top}", heads, boards.rows(board, worlds))
        for column in table.columns:
            column.no_wrap = True
        show(table)
        print("\n* knows what no real agent can; first better: the probability that the first agent does better")
        for place, world in enumerate(board.worlds, 1):
            print(f"{place}: {world.title} ({world.description}; {world.runs:,} problems)")
        print(f"\n{boards.verdict(board)} {boards.evidence(board)}".replace("`", ""))
        if self.out is not None:
            for ending in ("png", "svg"):
                boards.draw(board, self.out / f"leaderboard.{ending}")
            write_json(self.out / "leaderboard.json", boards.to_json(board))
            print(f"\nleaderboard.png, .svg and .json are in {self.out}")
