"""Claims are about what experiments play, and verdicts follow from intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import driftformer as df
from driftformer import experiments
from driftformer.evaluation.statistics import AgentRegret, Curve, summarize
from driftformer.experiments.claims import CLAIMS, Claim, Comparison, judge
from driftformer.simulation.summary import Summary

EXPERIMENTS = dict(experiments.EXPERIMENTS)  # other tests shorten them


def summary(**finals: np.ndarray) -> Summary:
    """A summary of agents whose regrets after the last round are given."""
    curve = Curve(np.ones(2), np.ones(2), np.ones(2))
    regrets = {name: AgentRegret(final, curve, curve, {}) for name, final in finals.items()}
    return summarize(df.make_env("high", horizon=2), regrets, 0, [])


RNG = np.random.default_rng(0)
HARD = RNG.normal(100.0, 30.0, 200)  # problems differ much; agents on the same problem little
MEASURED = {
    "e": {
        "c": summary(
            random=HARD + 100,
            good=HARD + RNG.normal(-5, 1, 200),
            same=HARD + RNG.normal(0, 5, 200),
            plain=HARD,
            oracle=HARD - 10,
        )
    }
}


def verdict(rule: Any, agent: str, *rivals: str, where: str = "Section 5", share: float = 0.0) -> str:
    comparisons = tuple(Comparison("e", "c", agent, rival) for rival in rivals)
    return judge(Claim("text", where, rule, comparisons, share), MEASURED).verdict


def test_ahead_holds_where_the_interval_of_the_difference_lies_below_zero() -> None:
    assert verdict("ahead", "good", "plain") == "holds"
    assert verdict("ahead", "plain", "good") == "does not hold"
    assert verdict("ahead", "same", "plain") == "does not hold", "it cannot be told apart"
    assert verdict("ahead", "same", "plain", "random") == "holds in part"
    assert verdict("not ahead", "same", "plain") == "holds"
    assert verdict("not ahead", "good", "plain") == "does not hold"
    assert verdict("not behind", "same", "plain") == "holds"
    assert verdict("not behind", "plain", "good") == "does not hold"


def test_what_the_paper_does_not_say_is_beyond_it() -> None:
    assert verdict("ahead", "good", "plain", where="") == "beyond"
    assert verdict("ahead", "plain", "good", where="") == "does not hold"


def test_near_measures_the_way_from_chance_to_the_oracle() -> None:
    assert verdict("near", "plain", "random", share=0.9) == "holds"  # 100 of 110
    assert verdict("near", "plain", "random", share=0.95) == "does not hold"
    assert verdict("near", "good", "random", share=0.94) == "holds"


def test_a_finding_says_how_much_less_regret_there_is_and_on_how_many_problems() -> None:
    for agent, rival, sign in (("random", "plain", 1), ("plain", "random", -1)):  # stored one way round only
        (found,) = judge(Claim("", "x", "ahead", (Comparison("e", "c", agent, rival),)), MEASURED).findings
        assert (found.runs, found.low, found.high) == (200, pytest.approx(sign * 100), pytest.approx(sign * 100))


def test_what_was_not_run_has_no_verdict() -> None:
    found = judge(Claim("", "x", "ahead", (Comparison("other", "c", "a", "b"),)), MEASURED)
    assert (found.verdict, found.missing) == ("not run", ("other",))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.text[:40])
def test_every_claim_compares_agents_that_its_experiments_play(claim: Claim) -> None:
    for one in claim.comparisons:
        (case,) = (case for case in EXPERIMENTS[one.experiment].cases if case.name == one.case)
        assert {one.agent, one.rival} <= set(case.agents)
        assert claim.rule != "near" or claim.reference in case.agents


def test_no_claim_or_case_asks_detection_to_play_resampled_arms() -> None:
    cases = {(name, case.name): case for name, one in EXPERIMENTS.items() for case in one.cases}
    for case in cases.values():
        mode = getattr(case.preset, "arm_mode", "")
        assert mode == "fixed" or "detection-linucb" not in case.agents
    rivals = {(one.case, one.rival) for claim in CLAIMS for one in claim.comparisons if one.experiment == "rivals"}
    assert ("low-fixed", "detection-linucb") in rivals
    assert ("low-resampled", "detection-linucb") not in rivals
    assert ("low-resampled", "discounted-linucb@gamma=0.99") in rivals
