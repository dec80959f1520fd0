"""Verdicts on claims, from 95% intervals of differences on the same problems, by rules that are fixed here.

`ahead`      a comparison holds if the whole interval of agent − rival lies below zero
`not ahead`  it holds if the interval does not lie below zero
`near`       it holds if the interval of (rival − agent) / (rival − oracle) lies above the stated share

A claim holds if all of its comparisons do, in part if some do, and not at all if none does. A claim of ours that holds
is `beyond`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftformer.evaluation.statistics import RESAMPLES
from driftformer.experiments.claims import Claim, Comparison

HOLDS, IN_PART, NOT, BEYOND, NOT_RUN = "holds", "holds in part", "does not hold", "beyond", "not run"
ORACLE = "oracle"

Summaries = Mapping[str, Mapping[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class Finding:
    """What was measured for one comparison."""

    comparison: Comparison
    value: float  # a difference of regrets, or a share
    low: float
    high: float
    runs: int
    holds: bool


@dataclass(frozen=True)
class Verdict:
    """A claim and what became of it."""

    claim: Claim
    verdict: str
    findings: tuple[Finding, ...]
    missing: tuple[str, ...]  # experiments that were not run


def judge(claim: Claim, summaries: Summaries) -> Verdict:
    """Decide one claim."""
    experiments = dict.fromkeys(comparison.experiment for comparison in claim.comparisons)
    missing = tuple(name for name in experiments if name not in summaries)
    if missing:
        return Verdict(claim, NOT_RUN, (), missing)
    findings = tuple(
        _find(claim, comparison, summaries[comparison.experiment][comparison.case]) for comparison in claim.comparisons
    )
    return Verdict(claim, _verdict(claim, [finding.holds for finding in findings]), findings, ())


def _verdict(claim: Claim, hold: list[bool]) -> str:
    if all(hold):
        return HOLDS if claim.where else BEYOND
    return IN_PART if any(hold) else NOT


def _find(claim: Claim, comparison: Comparison, summary: Mapping[str, Any]) -> Finding:
    if claim.rule == "near":
        return _near(claim.share, comparison, summary)
    for pair in summary["paired_differences"]:
        if {pair["agent"], pair["reference"]} == {comparison.agent, comparison.rival}:
            sign = 1 if pair["agent"] == comparison.agent else -1
            low, high = sorted((sign * pair["low"], sign * pair["high"]))
            ahead = high < 0
            holds = ahead if claim.rule == "ahead" else not ahead
            return Finding(comparison, sign * pair["mean"], low, high, pair["runs"], holds)
    raise KeyError(f"{comparison.agent} and {comparison.rival} were not compared on {comparison.case}")


def _near(share: float, comparison: Comparison, summary: Mapping[str, Any]) -> Finding:
    """How much of the way from the rival to the oracle is gone, with a bootstrap over problems."""
    names = (comparison.rival, comparison.agent, ORACLE)
    finals = [np.array(summary["agents"][name]["regret_runs"]) for name in names]
    runs = min(map(len, finals))
    rival, agent, oracle = (final[:runs] for final in finals)
    rows = np.random.default_rng(summary["seed"]).integers(0, runs, size=(RESAMPLES, runs))
    means = [final[rows].mean(axis=1) for final in (rival, agent, oracle)]
    low, high = np.quantile((means[0] - means[1]) / (means[0] - means[2]), [0.025, 0.975])
    value = (rival.mean() - agent.mean()) / (rival.mean() - oracle.mean())
    return Finding(comparison, float(value), float(low), float(high), runs, bool(low > share))
