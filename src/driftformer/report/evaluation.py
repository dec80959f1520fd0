"""The page of an evaluation: one world, whoever made it, from its summary alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from driftformer.evaluation.leaderboard import SUMMARY
from driftformer.evaluation.result import notes
from driftformer.evaluation.verdict import evidence, verdict
from driftformer.report.agents import agents_section
from driftformer.report.markup import escaped, figure, prose, table
from driftformer.report.page import Page, Section
from driftformer.report.worlds import about, curves, privileged_in, rounded, table_of
from driftformer.simulation.summary import Summary, read_summary

REGRET = """<b>Dynamic regret</b> is the total reward lost relative to the best arm of each round: zero is perfect. All
agents play the same problems, with the same arms and noise, so that their differences are paired."""


_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Of the problems."""


def evaluation_page(folder: Path) -> tuple[Page, str]:
    """The page, and its sentence."""
    summary = read_summary(folder / SUMMARY)
    first = f"""<p class="quiet">{escaped(about(summary))}</p>
<h1>{prose(verdict(summary))}</h1>
<p>{prose(evidence(summary))}</p>
{figure("world", "hero")}
<p class="quiet">{REGRET}</p>"""
    sections = [_numbers(summary), _problems(summary), *_reported(summary)]
    sections.append(agents_section(summary.ranking, privileged_in([summary])))
    title = summary.description.partition(":")[0]
    figures = {"world": curves([("", summary)]), "problems": _spread(summary)}
    return Page(f"{title}: who wins, and by how much", first, sections, figures, summary.ranking), verdict(summary)


def _numbers(summary: Summary) -> Section:
    caption = escaped(about(summary)) + " Mean ± standard error; std between problems; lower is better."
    return Section("numbers", "The numbers", table_of(summary, caption), "Numbers")


def _spread(summary: Summary) -> dict[str, Any]:
    """The regret of single problems: who is reliable."""
    rows = [
        {"agent": name, "shares": [rounded(one) for one in np.quantile(summary.agents[name].regret_runs, _SHARES)]}
        for name in summary.ranking
    ]
    return {"kind": "spread", "rows": rows}


def _problems(summary: Summary) -> Section:
    text = f"""<p>The regret of the {summary.runs:,} single problems: the dot is the median, the thick line holds the
middle half of the problems, the thin one nine in ten. A short line is reliable.</p>{figure("problems")}"""
    return Section("problems", "Problem by problem", text, "Problems")


def _reported(summary: Summary) -> list[Section]:
    """What agents tell of themselves, such as restarts."""
    told = notes(summary)
    if not told:
        return []
    rows = [tuple(map(escaped, line.split(": ", 1))) for line in told]
    return [Section("reported", "What agents report of themselves", table(("Agent", "Reported"), rows), "Reported")]
