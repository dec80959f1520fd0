"""`driftformer bakeoff`: agents on real tables with and without drift."""

from dataclasses import dataclass, fields
from pathlib import Path

from driftformer.commands.options import Command, LogJson, Seed, Workers
from driftformer.commands.tables import new_table, show


@dataclass(frozen=True)
class Bakeoff(Command):
    """Compare agents on streams made of real tables, with and without drift.

    For example:
        driftformer bakeoff
        driftformer bakeoff --tables phishing --agents linucb adaptive-linucb --horizon 300 --out runs/small

    Tables come with scikit-learn and river (pip install 'driftformer[data]'). Vowpal Wabbit, river and MABWiser play
    too where they are installed (pip install 'driftformer[peers]').

    Results are kept in OUT: a second call only adds up. About ten minutes on one core.
    """

    agents: tuple[str, ...] = ()
    """Agents of ours; by default ten."""
    own: bool = False
    """Leave out other libraries' agents."""
    tables: tuple[str, ...] = ()
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
            cut = [(_short(agent, 38), *cells) for agent, *cells in rows]
            show(new_table(f"Scores, {title}: 0 = random, 100 = the best arm", HEADS, cut))
        numbers = [str(place) for place in range(1, len(found.agents) + 1)]
        title = f"On how many of {len(found.streams)} streams the row is significantly ahead of the column"
        cut = [(_short(agent, 22), *cells) for agent, *cells in win_rows(found)]
        matrix = new_table(title, ("ahead of", *numbers, "won", "lost"), cut)
        matrix.padding = (0, 1, 0, 0)
        show(matrix)
        if found.missing:
            print(f"\nnot installed, so not played: {', '.join(found.missing)}; pip install 'driftformer[peers]'")
        print(f"\nresults, bakeoff.md and bakeoff.png are in {self.out}")


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
