"""A table of the paper's claims by reading: see `readings.py`.

*Comparable*: behind none of the four experts; no paired interval lies above zero. *Surpassing*: ahead of at least one.
*Near-optimal*: nine tenths of the way from chance to the oracle, with its whole interval. *Low throughout*: in each
eighth of the rounds at most a tenth of chance's suboptimality.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from driftformer.experiments.base import Case
from driftformer.experiments.claims import ORACLE, STRETCHES, Claim, Comparison, judge, low_stretches
from driftformer.experiments.readings import AROUND, BEST, EXPERTS, READINGS
from driftformer.simulation.numbers import with_error
from driftformer.simulation.summary import Summary

_NEAR = 0.9


@dataclass(frozen=True)
class Reading:
    """How the paper's claims fare where one agent stands for the transformer in one world."""

    world: str
    agent: str
    regret: str
    ahead: tuple[str, ...]  # experts that it is ahead of: the whole paired interval lies below zero
    behind: tuple[str, ...]
    way: tuple[float, float, float]  # from chance to the oracle, with its interval
    low: int  # eighths of the rounds in which its suboptimality is low

    @property
    def cells(self) -> tuple[str, ...]:
        """As text, in the order of `COLUMNS`."""
        level = len(EXPERTS) - len(self.ahead) - len(self.behind)
        mean, low, high = (round(share, 2) + 0.0 for share in self.way)  # a rounded −0 is 0
        return (
            self.world,
            self.agent,
            self.regret,
            f"{len(self.ahead)} / {level} / {len(self.behind)}",
            "no" if self.behind else "yes",
            "yes" if self.ahead else "no",
            f"{'yes' if self.way[1] > _NEAR else 'no'}: {mean:.0%} [{low:.0%}, {high:.0%}]",
            f"{'yes' if self.low == STRETCHES else 'no'}: {self.low} of {STRETCHES}",
        )

    @property
    def verdicts(self) -> str:
        """In a sentence, for narrow tables."""
        return "; ".join(f"{heading.lower()} {cell}" for heading, cell in zip(COLUMNS[3:], self.cells[3:], strict=True))


COLUMNS = (
    "World",
    "The transformer",
    "Regret",
    "Experts: ahead / level / behind",
    "Comparable",
    "Surpassing",
    "Near-optimal",
    "Low throughout",
)


def read_claims(summaries: Mapping[str, Summary]) -> list[Reading]:
    """All readings of the cases that were run, in their order."""
    return [
        _read(case, agent, summaries[case.name])
        for case in READINGS.cases
        for agent in case.agents
        if agent not in (*AROUND, BEST)
    ]


def _read(case: Case, agent: str, summary: Summary) -> Reading:
    pairs = {expert: summary.difference(agent, expert) for expert in EXPERTS}
    comparison = Comparison(READINGS.name, case.name, agent, "random")
    reference = ORACLE if ORACLE in case.agents else BEST
    near = Claim("near-optimal", "Section 5", "near", (comparison,), _NEAR, reference)
    (found,) = judge(near, {READINGS.name: {case.name: summary}}).findings
    row = summary.agents[agent]
    return Reading(
        case.title,
        agent,
        with_error(row.regret_mean, row.regret_stderr),
        tuple(expert for expert, pair in pairs.items() if pair.high < 0),
        tuple(expert for expert, pair in pairs.items() if pair.low > 0),
        (found.value, found.low, found.high),
        low_stretches(summary, agent, "random"),
    )
