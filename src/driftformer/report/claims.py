"""The table of claims: the paper's and ours, each with what was measured and a verdict."""

from __future__ import annotations

from driftformer.experiments import EXPERIMENTS
from driftformer.experiments.claims import STRETCHES, Finding, Verdict
from driftformer.report.content import Content
from driftformer.report.markup import escaped, prose, table
from driftformer.report.page import Section
from driftformer.simulation.numbers import signed

_MOST = 4
"""Comparisons that are shown at once; more are folded."""


def claims_section(content: Content) -> Section:
    text = f"""<p>What the paper claims about its experiments, and what we claim beyond it. Verdicts follow from 95%
intervals of differences on the same problems: an agent is <i>ahead</i> if the whole interval lies below zero.</p>
{table(("Claim", "Source", "Measured", "Verdict"), map(_claim, content.verdicts))}"""
    return Section("claims", "What is claimed, and whether it holds", text, "Claims")


def _claim(found: Verdict) -> tuple[str, ...]:
    command = escaped(f"driftformer reproduce {' '.join(found.missing)}")
    lines = "".join(f"<li>{escaped(_finding(found.claim.rule, one))}</li>" for one in found.findings)
    measured = f"not run: <code>{command}</code>" if found.missing else f'<ul class="findings">{lines}</ul>'
    if len(found.findings) > _MOST:
        held = f"{sum(one.holds for one in found.findings)} of {len(found.findings)} comparisons hold"
        measured = f"<details><summary>{held}</summary>{measured}</details>"
    verdict = f'<span class="verdict {found.verdict.replace(" ", "-")}">{escaped(found.verdict)}</span>'
    return prose(found.claim.text), escaped(found.claim.where) or "ours", measured, verdict


def _finding(rule: str, found: Finding) -> str:
    one = found.comparison
    if rule == "earns":
        text = f"{one.agent} earns {found.value:.2f} [{found.low:.2f}, {found.high:.2f}] × {one.rival}"
    elif rule == "near":
        text = f"{found.value:.0%} [{found.low:.0%}, {found.high:.0%}] of the way"
    elif rule == "throughout":
        text = f"at most a tenth of chance's in {found.value:.0f} of {STRETCHES} stretches"
    else:
        text = f"{one.agent} − {one.rival}: {signed(found.value)} [{signed(found.low)}, {signed(found.high)}]"
    return f"{'✓' if found.holds else '✗'} {_place(one.experiment, one.case)}: {text}, {found.runs} problems"


def _place(experiment: str, case: str) -> str:
    """A world in words."""
    held = EXPERIMENTS[experiment]
    return held.title if len(held.cases) == 1 else next(one.title for one in held.cases if one.name == case)
