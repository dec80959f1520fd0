"""What the paper says of its experiments, and what we say beyond it, as statements that numbers can decide.

A statement is a list of comparisons on the same problems. Which verdict follows from their 95% intervals is fixed in
`evaluation/verdicts.py`; nothing is typed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from driftformer.experiments.beyond import SLOWLY_FORGETTING, TOLD_NOTHING, UNSEEN_DRIFTS

Rule = Literal["ahead", "not ahead", "near"]


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
    """Where the paper says so; empty where it is ours."""
    rule: Rule
    comparisons: tuple[Comparison, ...]
    share: float = 0.0
    """For `near`: how much of the way from chance (the rival) to the oracle must be gone at least."""


_LOW, _HIGH_018, _HIGH_025 = ("low", "windows"), ("high-0.018", "b-0.018"), ("high-0.025", "b-0.025")
_CHANCE = "random"


def _against(agent: str, rivals: tuple[str, ...], *worlds: tuple[str, str]) -> tuple[Comparison, ...]:
    return tuple(Comparison(*world, agent, rival) for world in worlds for rival in rivals)


def _rival_cases(*worlds: str) -> tuple[tuple[str, str], ...]:
    return tuple(("rivals", f"{world}-{mode}") for world in worlds for mode in ("fixed", "resampled"))


_UNSEEN = tuple(("unseen-drifts", case.name) for case in UNSEEN_DRIFTS.cases)

CLAIMS = (
    Claim(
        "The transformer does better than MASTER over LinUCB and over TS on Low",
        "Section 5, fig:regret",
        "ahead",
        _against("policy:low", ("master-linucb", "master-thompson"), _LOW),
    ),
    Claim(
        "The transformer does better than LinUCB and TS on Low",
        "Section 5, fig:regret",
        "ahead",
        _against("policy:low", ("linucb", "thompson"), _LOW),
    ),
    Claim(
        "The transformer does better than MASTER over LinUCB and over TS at b = 0.018",
        "Section 5, fig:regret",
        "ahead",
        _against("policy:high", ("master-linucb", "master-thompson"), _HIGH_018),
    ),
    Claim(
        "The transformer does better than LinUCB and TS at b = 0.018",
        "Section 5, fig:regret",
        "ahead",
        _against("policy:high", ("linucb", "thompson"), _HIGH_018),
    ),
    Claim(
        "The transformer is no longer ahead of LinUCB and TS at b = 0.025",
        "appx-exp, fig:linucb-large0.025 and fig:ts-large0.025",
        "not ahead",
        _against("policy:high", ("linucb", "thompson"), _HIGH_025),
    ),
    Claim(
        "The transformer's regret is near-optimal at b = 0.018: nine tenths of the way from chance to the oracle",
        "Section 5",
        "near",
        _against("policy:high", (_CHANCE,), _HIGH_018),
        share=0.9,
    ),
    Claim(
        "Trained on a range of frequencies, a policy is ahead of LinUCB, TS and MASTER at both",
        "",
        "ahead",
        _against("policy:cosine", ("linucb", "thompson", "master-linucb", "master-thompson"), _HIGH_018, _HIGH_025),
    ),
    Claim(
        "That policy is near-optimal at both frequencies: nine tenths of the way from chance to the oracle",
        "",
        "near",
        _against("policy:cosine", (_CHANCE,), _HIGH_018, _HIGH_025),
        share=0.9,
    ),
    Claim(
        "It is ahead of every rival that is told nothing, in both arm modes",
        "",
        "ahead",
        _against("policy:cosine", TOLD_NOTHING, *_rival_cases("high-0.018", "high-0.025")),
    ),
    Claim(
        "The generalist `drift` is ahead of every rival that is told nothing: both frequencies and Low, both arm modes",
        "",
        "ahead",
        (
            *_against("policy:drift", TOLD_NOTHING, *_rival_cases("high-0.018", "high-0.025", "low")),
            *_against("policy:drift", (SLOWLY_FORGETTING,), *_rival_cases("low")),
        ),
    ),
    Claim(
        "`drift` is ahead of every rival that is told nothing also in worlds like none it was trained on",
        "",
        "ahead",
        _against("policy:drift", TOLD_NOTHING, *_UNSEEN),
    ),
)
