"""`driftformer card`: a policy's measured properties."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from driftformer.commands.options import Command


@dataclass(frozen=True)
class Card(Command):
    """Measure a policy and write its model card.

    For example:
        driftformer card cosine --out cards/cosine
        driftformer card runs/tiny/best --runs 64 --out cards/tiny

    The card has tables of regret, shows how closely the policy follows its teacher, and says how it was trained. With
    the default options, the first example reproduces the card that comes with the policy.
    """

    policy: Positional[Annotated[str, arg(metavar="POLICY")]]
    """Name of a shipped policy, or a folder."""
    out: Path
    """Folder for card.md, card.json and the evaluations behind them."""
    runs: int = 200
    """Number of problems in each evaluation."""
    seed: int = 0
    """Random seed."""
    workers: int = 1
    """Number of processes."""

    def run(self) -> None:
        from driftformer.evaluation.card import write_card

        print(f"card: {write_card(self.policy, self.out, self.runs, self.seed, self.workers)}")
