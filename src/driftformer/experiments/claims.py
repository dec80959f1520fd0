"""What the paper claims about its experiments, and what we claim beyond it, with verdicts computed from numbers.

A claim is a list of comparisons on the same problems. Its verdict follows from 95% intervals by fixed rules:

`ahead`      a comparison holds if the whole interval of agent − rival lies below zero
`not ahead`  it holds if the interval does not lie below zero
`not behind` it holds if the interval does not lie above zero
`near`       it holds if the interval of (rival − agent) / (rival − oracle) lies above the stated share

A claim holds if all of its comparisons do, in part if some do, and not at all if none does. A claim of our own that
holds is `beyond`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from driftformer.evaluation.statistics import resampled_means
from driftformer.experiments.base import Experiment
from driftformer.experiments.beyond import OTHER_DRIFTS, REAL_DATA, RIVALS, UNSEEN_DRIFTS, UNTOLD
from driftformer.simulation.summary import Summary

Rule = Literal["ahead", "not ahead", "not behind", "near"]
HOLDS, IN_PART, NOT, BEYOND, NOT_RUN = "holds", "holds in part", "does not hold", "beyond", "not run"
ORACLE = "oracle"


@dataclass(frozen=True)
class Comparison:
    """One agent against another on one case of an experiment."""

    experiment: str
    case: str
    agent: str
    rival: str


@dataclass(frozen=True)
class Claim:
    """One line of the table."""

    text: str
    where: str
    """Where the paper says so; empty where the claim is ours."""
    rule: Rule
    comparisons: tuple[Comparison, ...]
    share: float = 0.0
    """For `near`: the least share of the way from chance (the rival) to the oracle."""


_LOW, _HIGH_018, _HIGH_025 = ("low", "windows"), ("high-0.018", "b-0.018"), ("high-0.025", "b-0.025")
_PLAIN, _MASTERS, _CHANCE = ("linucb", "thompson"), ("master-linucb", "master-thompson"), "random"


def _against(agent: str, rivals: tuple[str, ...], *worlds: tuple[str, str]) -> tuple[Comparison, ...]:
    return tuple(Comparison(*world, agent, rival) for world in worlds for rival in rivals)


def _against_untold(agent: str, experiment: Experiment, *worlds: str) -> tuple[Comparison, ...]:
    """An agent against every rival that is told nothing, in the cases of some worlds."""
    return tuple(
        Comparison(experiment.name, case.name, agent, rival)
        for case in experiment.cases
        if case.name.startswith(worlds)
        for rival in case.agents
        if rival in UNTOLD
    )


def _ours(text: str, comparisons: tuple[Comparison, ...], share: float = 0.0, rule: Rule = "ahead") -> Claim:
    return Claim(text, "", "near" if share else rule, comparisons, share)


CLAIMS = (
    *(
        Claim(
            f"The transformer does better than {rivals} {where}",
            "Section 5, Figure 3",
            "ahead",
            _against(policy, names, world),
        )
        for policy, where, world in (("policy:low", "on Low", _LOW), ("policy:high", "at b = 0.018", _HIGH_018))
        for rivals, names in (("MASTER over LinUCB and over TS", _MASTERS), ("LinUCB and TS", _PLAIN))
    ),
    Claim(
        "The transformer is no longer ahead of LinUCB and TS at b = 0.025",
        "Appendix B, Figures 6 and 7",
        "not ahead",
        _against("policy:high", _PLAIN, _HIGH_025),
    ),
    Claim(
        "The transformer's regret is near-optimal at b = 0.018: nine tenths of the way from chance to the oracle",
        "Section 5",
        "near",
        _against("policy:high", (_CHANCE,), _HIGH_018),
        share=0.9,
    ),
    _ours(
        "Trained on a range of frequencies, a policy is ahead of LinUCB, TS and MASTER at both",
        _against("policy:cosine", (*_PLAIN, *_MASTERS), _HIGH_018, _HIGH_025),
    ),
    _ours(
        "That policy is near-optimal at both frequencies: nine tenths of the way from chance to the oracle",
        _against("policy:cosine", (_CHANCE,), _HIGH_018, _HIGH_025),
        share=0.9,
    ),
    _ours(
        "It is ahead of every rival that is told nothing, in both arm modes",
        _against_untold("policy:cosine", RIVALS, "high-"),
    ),
    _ours(
        "The generalist `drift` is ahead of every rival that is told nothing: both frequencies and Low, both arm modes",
        _against_untold("policy:drift", RIVALS, "high-", "low-"),
    ),
    _ours(
        "`drift` is ahead of every rival that is told nothing in other kinds of change",
        _against_untold("policy:drift", OTHER_DRIFTS, ""),
    ),
    _ours(
        "`drift` is also ahead of every rival that is told nothing in worlds unlike any it was trained on",
        _against_untold("policy:drift", UNSEEN_DRIFTS, ""),
    ),
    _ours(
        "On real data `drift` is nowhere behind any rival that is told nothing",
        _against_untold("policy:drift", REAL_DATA, ""),
        rule="not behind",
    ),
)


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
    """A claim and how it fared."""

    claim: Claim
    verdict: str
    findings: tuple[Finding, ...]
    missing: tuple[str, ...]  # experiments that were not run


def judge(claim: Claim, summaries: Mapping[str, Mapping[str, Summary]]) -> Verdict:
    """Decide one claim from summaries by experiment and case."""
    experiments = dict.fromkeys(comparison.experiment for comparison in claim.comparisons)
    missing = tuple(name for name in experiments if name not in summaries)
    if missing:
        return Verdict(claim, NOT_RUN, (), missing)
    findings = tuple(_find(claim, one, summaries[one.experiment][one.case]) for one in claim.comparisons)
    hold = [finding.holds for finding in findings]
    verdict = (HOLDS if claim.where else BEYOND) if all(hold) else IN_PART if any(hold) else NOT
    return Verdict(claim, verdict, findings, ())


def _find(claim: Claim, comparison: Comparison, summary: Summary) -> Finding:
    if claim.rule != "near":
        pair = summary.difference(comparison.agent, comparison.rival)
        holds = {"ahead": pair.high < 0, "not ahead": pair.high >= 0, "not behind": pair.low <= 0}[claim.rule]
        return Finding(comparison, pair.mean, pair.low, pair.high, pair.runs, holds)
    finals = {name: np.array(summary.agents[name].regret_runs) for name in (comparison.rival, comparison.agent, ORACLE)}
    resampled = resampled_means(finals, summary.seed)
    rival, agent, oracle = (np.array([final.mean(), *resampled[name]]) for name, final in finals.items())
    shares = (rival - agent) / (rival - oracle)  # of all problems, then of each resample
    low, high = np.quantile(shares[1:], [0.025, 0.975])
    return Finding(comparison, float(shares[0]), float(low), float(high), summary.runs, bool(low > claim.share))
