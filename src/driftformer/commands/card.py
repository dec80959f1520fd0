"""`driftformer card`: a policy's measured properties."""

from dataclasses import dataclass
from pathlib import Path

from driftformer.commands.options import Command, Name, Seed, Workers


@dataclass(frozen=True)
class Card(Command):
    """Measure a policy and write its model card.

    For example, for a policy that comes with the package and for one of your own:
        driftformer card cosine --out cards/cosine
        driftformer card runs/tiny/best --out cards/tiny

    The card has tables of regret, shows how closely the policy follows its teacher, and says how it was trained.
    """

    policy: Name
    """Name of a shipped policy, or a folder."""
    out: Path
    """Folder for card.md, card.json and the evaluations behind them."""
    runs: int = 200
    """Number of problems in each evaluation."""
    seed: Seed = 0
    workers: Workers = 1

    def run(self) -> None:
        from driftformer.evaluation.card import write_card

        print(f"card: {write_card(self.policy, self.out, self.runs, self.seed, self.workers)}")
