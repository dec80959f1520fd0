"""The tables of "Beyond the paper" in docs/reproduction.md, from the results of `driftformer reproduce`.

    driftformer reproduce rivals other-drifts unseen-drifts real-data --out runs/reproduce
    python -m benchmarks.beyond [--out runs/reproduce] [--write]

Beside the policy stand the best of the agents that are told nothing, those that are told something, and random play.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.compare import put
from driftformer.evaluation.comparison import compare
from driftformer.evaluation.result import load_result
from driftformer.experiments.beyond import OTHER_DRIFTS, REAL_DATA, RIVALS, UNSEEN_DRIFTS, UNTOLD
from driftformer.simulation.numbers import with_error
from driftformer.simulation.summary import Summary

PAGE = Path(__file__).parents[1] / "docs" / "reproduction.md"
POLICY = "policy:drift"
TOLD = {"policy:cosine": "`policy:cosine`", "prior@knows=drift": "`prior`, told the drift", "oracle": "the oracle"}
"""Other policies and privileged agents, which are no rivals."""
EXPERIMENTS = {
    experiment.name: (experiment, others)
    for experiment, others in (
        (RIVALS, [*TOLD]),
        (OTHER_DRIFTS, [*TOLD]),
        (UNSEEN_DRIFTS, ["prior@knows=drift", "oracle"]),
        (REAL_DATA, ["random"]),
    )
}
"""By name: what was played, and who has a column beside the policy and its best rival."""


def table(summaries: Sequence[Summary], titles: Sequence[str], others: Sequence[str]) -> list[str]:
    """A row for each world, then how many paired intervals speak for the policy and against it, as Markdown."""
    heads = ["", f"`{POLICY}`", "the best that is told nothing", *(TOLD.get(name, name) for name in others)]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    ahead, behind, pairs = 0, 0, 0
    for summary, title in zip(summaries, titles, strict=True):
        cells = {name: with_error(row.regret_mean, row.regret_stderr) for name, row in summary.agents.items()}
        rivals = [name for name in summary.agents if name in UNTOLD]
        best = min(rivals, key=lambda name: summary.agents[name].regret_mean)
        row = [title, cells[POLICY], f"`{best}`: {cells[best]}", *(cells.get(name, "–") for name in others)]
        lines.append(f"| {' | '.join(row)} |")
        differences = [compare(summary, POLICY, rival).difference for rival in rivals]
        ahead += sum(difference.high < 0 for difference in differences)
        behind += sum(difference.low > 0 for difference in differences)
        pairs += len(differences)
    verdict = f"Of {pairs} paired intervals {ahead} lie below zero, where the policy is ahead, and {behind} above."
    return [*lines, "", verdict]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/reproduce"))
    parser.add_argument("--write", action="store_true", help="also put the tables into docs/reproduction.md")
    options = parser.parse_args()
    for name, (experiment, others) in EXPERIMENTS.items():
        summaries = [load_result(options.out / name / case.name).summary for case in experiment.cases]
        lines = table(summaries, [case.title for case in experiment.cases], others)
        print("\n".join([f"\n{experiment.title}", "", *lines]))
        if options.write:
            put(name, lines, PAGE)


if __name__ == "__main__":
    main()
