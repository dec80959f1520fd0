"""What the paper claims about its experiments, and what we claim beyond it, with verdicts computed from numbers.

A claim is a list of comparisons on the same problems. Its verdict follows from 95% intervals by fixed rules:

`ahead`      a comparison holds if the whole interval of agent − rival lies below zero
`not ahead`  it holds if the interval does not lie below zero
`not behind` it holds if the interval does not lie above zero
`near`       it holds if the interval of (rival − agent) / (rival − oracle) lies above the stated share
`throughout` it holds if in each eighth of the rounds the agent's mean suboptimality is at most a tenth of the rival's
`earns`      it holds if the interval of what the agent earns over what the rival earns, in an MDP, meets share ± 0.05

A claim holds if all of its comparisons do, in part if some do, and not at all if none does. A claim of our own that
holds is `beyond`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from driftformer.evaluation.mdp_worlds import UNTOLD as UNTOLD_OF_MDPS
from driftformer.evaluation.statistics import resampled_means
from driftformer.experiments.base import Experiment
from driftformer.experiments.beyond import OTHER_DRIFTS, REAL_DATA, RIVALS, UNSEEN_DRIFTS, UNTOLD
from driftformer.experiments.mdps import MDP_LOCK, MDP_UNSEEN, MDP_WORLDS, MDPS
from driftformer.randomness import Randomness, chunks_for
from driftformer.simulation.summary import Summary

Rule = Literal["ahead", "not ahead", "not behind", "near", "throughout", "earns"]
HOLDS, IN_PART, NOT, BEYOND, NOT_RUN = "holds", "holds in part", "does not hold", "beyond", "not run"
ORACLE = "oracle"
_CLOSE = 0.05
"""How far from the stated ratio what is earned may be."""
STRETCHES, _LOWEST = 8, 0.1
"""Parts of the rounds, and how much of chance's suboptimality is low."""


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
    """For `near`: the least share of the way from chance (the rival) to the oracle, or another reference; for `earns`:
    the ratio."""
    reference: str = ORACLE


_LOW, _HIGH_018, _HIGH_025 = ("low", "windows"), ("high-0.018", "b-0.018"), ("high-0.025", "b-0.025")
_FIGURE = "Section 5, Figure 3"
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
        if rival in (*UNTOLD, *UNTOLD_OF_MDPS)
    )


def _ours(text: str, comparisons: tuple[Comparison, ...], share: float = 0.0, rule: Rule = "ahead") -> Claim:
    return Claim(text, "", "near" if share else rule, comparisons, share)


_NEAR = "The transformer's regret is near-optimal {}: nine tenths of the way from chance to the oracle"


def _of_the_paper(policy: str, where: str, world: tuple[str, str]) -> tuple[Claim, ...]:
    """What the paper says of one of its two figures, in its words."""
    rivals, chance = _against(policy, (*_PLAIN, *_MASTERS), world), _against(policy, (_CHANCE,), world)
    return (
        Claim(
            f"The transformer is comparable to LinUCB, TS and MASTER over both {where}", _FIGURE, "not behind", rivals
        ),
        Claim(f"It sometimes surpasses them {where}", _FIGURE, "ahead", rivals),
        Claim(_NEAR.format(where), "Section 5", "near", chance, share=0.9),
        Claim(f"Its suboptimality is consistently low across rounds {where}", "Appendix B", "throughout", chance),
    )


CLAIMS = (
    *_of_the_paper("policy:low", "on Low", _LOW),
    *_of_the_paper("policy:high", "at b = 0.018", _HIGH_018),
    Claim(
        "The transformer is no longer ahead of LinUCB and TS at b = 0.025",
        "Appendix B, Figures 6 and 7",
        "not ahead",
        _against("policy:high", _PLAIN, _HIGH_025),
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
    Claim(
        "On the abrupt lock RestartQ-UCB earns 1.36 times as much as Q-UCB",
        "Mao et al., Appendix J",
        "earns",
        (Comparison(MDP_LOCK.name, "abrupt", "restart-q-ucb", "q-ucb"),),
        share=1.36,
    ),
    _ours(
        "Nobody earns more than the optimum on the lock",
        tuple(
            Comparison(MDP_LOCK.name, case.name, agent, "optimal")
            for case in MDP_LOCK.cases
            for agent in case.agents
            if agent != "optimal"
        ),
        rule="not ahead",
    ),
    _ours(
        "MASTER is ahead of its base agents on the abrupt lock",
        tuple(Comparison(MDP_LOCK.name, "abrupt", f"master-{base}", base) for base in ("ucb-vi", "q-ucb")),
    ),
    _ours(
        "`policy:mdp` is ahead of every agent that is told nothing on the lock, which it was not trained on",
        _against_untold("policy:mdp", MDP_LOCK, ""),
    ),
    _ours(
        "It is ahead of every agent that is told nothing on rivers, in dark rooms and in random MDPs",
        _against_untold("policy:mdp", MDP_WORLDS, ""),
    ),
    Claim(
        "On rivers and in dark rooms it goes at least 80% of the way from chance to the optimum",
        "",
        "near",
        tuple(Comparison(MDP_WORLDS.name, world, "policy:mdp", _CHANCE) for world in ("riverswim", "darkroom")),
        share=0.8,
        reference="optimal",
    ),
    _ours(
        "It is ahead of every agent that is told nothing where MDPs come and go in cycles, which it was not trained on",
        _against_untold("policy:mdp", MDP_UNSEEN, ""),
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
    if claim.rule == "earns":
        return _earned(claim, comparison, summary)
    if claim.rule == "throughout":
        low = low_stretches(summary, comparison.agent, comparison.rival)
        return Finding(comparison, low, low, low, summary.runs, low == STRETCHES)
    if claim.rule != "near":
        pair = summary.difference(comparison.agent, comparison.rival)
        holds = {"ahead": pair.high < 0, "not ahead": pair.high >= 0, "not behind": pair.low <= 0}[claim.rule]
        return Finding(comparison, pair.mean, pair.low, pair.high, pair.runs, holds)
    names = (comparison.rival, comparison.agent, claim.reference)
    finals = {name: np.array(summary.agents[name].regret_runs) for name in names}
    resampled = resampled_means(finals, summary.seed)
    rival, agent, oracle = (np.array([final.mean(), *resampled[name]]) for name, final in finals.items())
    shares = (rival - agent) / (rival - oracle)  # of all problems, then of each resample
    low, high = np.quantile(shares[1:], [0.025, 0.975])
    return Finding(comparison, float(shares[0]), float(low), float(high), summary.runs, bool(low > claim.share))


def low_stretches(summary: Summary, agent: str, chance: str) -> int:
    """In how many eighths of the rounds an agent's mean suboptimality is at most a tenth of chance's."""
    own, other = (
        np.array([part.mean() for part in np.array_split(summary.agents[name].suboptimality_curve, STRETCHES)])
        for name in (agent, chance)
    )
    return int((own <= _LOWEST * other).sum())


def _earned(claim: Claim, comparison: Comparison, summary: Summary) -> Finding:
    """What the agent earns as a multiple of what the rival earns: the optimum less their regret."""
    names = (comparison.agent, comparison.rival)
    best = _optimum(comparison.experiment, comparison.case, summary)
    earned = {name: best - np.array(summary.agents[name].regret_runs) for name in names}
    resampled = resampled_means(earned, summary.seed)
    ratio = float(np.divide(*(earned[name].mean() for name in names)))
    low, high = np.quantile(np.divide(*(resampled[name] for name in names)), [0.025, 0.975])
    holds = bool(high > claim.share - _CLOSE and low < claim.share + _CLOSE)
    return Finding(comparison, ratio, float(low), float(high), summary.runs, holds)


def _optimum(experiment: str, case: str, summary: Summary) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The optimum of each problem of a case of an experiment with MDPs."""
    cases = {(one.name, each.name): each for one in MDPS for each in one.cases}
    environment: Any = cases[experiment, case].preset.build()
    chunks = [chunk.index for chunk in chunks_for(summary.runs)]
    found: np.ndarray[tuple[int], np.dtype[np.float64]]
    found = environment.optimum(Randomness(summary.seed, chunks)).numpy()[: summary.runs]
    return found
