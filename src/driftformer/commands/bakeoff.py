"""`driftformer bakeoff`: agents on real tables with and without drift."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from driftformer.commands.options import Command, LogJson, Seed, Several, Workers
from driftformer.commands.tables import show
from driftformer.evaluation.fitting import FittingTable


@dataclass(frozen=True)
class Bakeoff(Command):
    """Compare agents on real tables, with and without drift.

    For example:
        driftformer bakeoff
        driftformer bakeoff --tables phishing --agents linucb greedy --horizon 300

    Tables come with scikit-learn and river (pip install 'driftformer[data]'). Vowpal Wabbit, river and MABWiser play
    too where they are installed (pip install 'driftformer[peers]').

    Results are kept in OUT: a second call only adds up. About ten minutes on one core.
    """

    agents: Several = ()
    """Agents of ours; by default ten."""
    own: bool = False
    """Leave out other libraries' agents."""
    tables: Several = ()
    """Only streams made of these tables; all by default."""
    horizon: int = 1000
    """Rounds of each stream; twice as many where a table is played in its own order."""
    problems: int = 10
    """Problems of each stream."""
    changes: int = 2
    """How often what is wanted changes, in random rounds."""
    seed: Seed = 0
    out: Path = Path("runs/bakeoff")
    """Folder for results, bakeoff.md and bakeoff.png."""
    workers: Workers = 1
    log_json: LogJson = False

    def run(self) -> None:
        from driftformer.experiments.bakeoff import HEADS, BakeOff, bakeoff, draw, score_tables, win_rows

        known = {field.name for field in fields(BakeOff)} - {"peers"}
        asked = {name: value for name, value in vars(self).items() if name in known and value != ()}
        settings = BakeOff(**asked) if not self.own else BakeOff(**asked, peers=())
        found = bakeoff(settings, self.out, workers=self.workers)
        draw(found, self.out)
        for title, rows in score_tables(found).items():
            show(_table(f"Scores, {title}: 0 = random, 100 = the best arm", HEADS, rows, spared=HEADS[-2:0:-1]))
        numbers = [str(place) for place in range(1, len(found.agents) + 1)]
        title = f"On how many of {len(found.streams)} streams the row is significantly ahead of the column"
        show(_table(title, ("ahead of", *numbers, "won", "lost"), win_rows(found), spared=numbers[::-1]))
        if found.missing:
            print(f"\nnot installed, so not played: {', '.join(found.missing)}; pip install 'driftformer[peers]'")
        print(f"\nresults, bakeoff.md and bakeoff.png are in {self.out}")


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], spared: Sequence[str]) -> FittingTable:
    """Agents and their numbers."""
    table = FittingTable(f"\n{title}", spared)
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if place else "left")
    for row in rows:
        table.add_row(*row)
    return table
