"""The paper's claims by reading follow from intervals and curves, by the rules that the table states."""

from __future__ import annotations

import numpy as np

import driftformer as df
from driftformer.evaluation.statistics import AgentRegret, Curve, summarize
from driftformer.experiments.claims import Claim, Comparison, judge
from driftformer.experiments.read_claims import COLUMNS, Reading, read_claims
from driftformer.experiments.readings import AROUND, READINGS
from driftformer.simulation.summary import Summary

RNG = np.random.default_rng(0)
HARD = RNG.normal(300.0, 30.0, 200)  # problems differ much; agents on the same problem little
HORIZON = 80


def summary(players: dict[str, tuple[np.ndarray, np.ndarray]]) -> Summary:
    """Of agents whose final regrets and suboptimality curves are given."""
    regrets = {
        name: AgentRegret(final, Curve(curve, curve, curve), Curve(curve, curve, curve), {})
        for name, (final, curve) in players.items()
    }
    return summarize(df.make_env("high", horizon=HORIZON), regrets, 0, [])


def read(finals: np.ndarray, curve: np.ndarray) -> dict[str, str]:
    """The cells of one agent that stands for the transformer in the first case."""
    flat = np.full(HORIZON, 5.0)
    players = dict.fromkeys(AROUND, (HARD, flat))
    players |= {"random": (HARD + 200, np.full(HORIZON, 10.0)), "oracle": (HARD - 200, flat)}
    players |= {"master-thompson": (HARD + 100, flat)}
    case = READINGS.cases[0]
    players |= {agent: (finals, curve) for agent in case.agents if agent not in AROUND}
    found = read_claims(
        {one.name: summary({a: players.get(a, (HARD, flat)) for a in one.agents}) for one in READINGS.cases}
    )
    return dict(zip(COLUMNS, found[0].cells, strict=True))


def test_an_agent_behind_one_expert_is_not_comparable_though_it_surpasses_another() -> None:
    cells = read(HARD + RNG.normal(20, 5, 200), np.full(HORIZON, 5.0))
    assert cells["Experts: ahead / level / behind"] == "1 / 0 / 3"
    assert (cells["Comparable"], cells["Surpassing"]) == ("no", "yes")


def test_what_cannot_be_told_apart_is_comparable() -> None:
    cells = read(HARD + RNG.normal(0, 20, 200), np.full(HORIZON, 5.0))
    assert cells["Experts: ahead / level / behind"] == "1 / 3 / 0"
    assert (cells["Comparable"], cells["Surpassing"]) == ("yes", "yes")


def test_near_optimal_is_nine_tenths_of_the_way_to_the_oracle() -> None:
    assert read(HARD - 100, np.ones(HORIZON))["Near-optimal"] == "no: 75% [75%, 75%]"
    assert read(HARD - 180, np.ones(HORIZON))["Near-optimal"] == "yes: 95% [95%, 95%]"
    assert read(HARD + 201, np.ones(HORIZON))["Near-optimal"] == "no: 0% [0%, 0%]", "not -0%"


def test_a_policy_that_falls_out_of_step_is_not_low_throughout() -> None:
    late = np.where(np.arange(HORIZON) < HORIZON - 20, 0.9, 5.0)  # the last two eighths
    assert read(HARD, late)["Low throughout"] == "no: 6 of 8"
    assert read(HARD, np.full(HORIZON, 0.9))["Low throughout"] == "yes: 8 of 8"


def test_the_same_rule_decides_the_papers_claim() -> None:
    curves = {"random": np.full(HORIZON, 10.0), "low": np.full(HORIZON, 0.9), "late": np.linspace(0.1, 1.5, HORIZON)}
    measured = {"e": {"c": summary({agent: (HARD, curve) for agent, curve in curves.items()})}}
    for agent, verdict, stretches in (("low", "holds", 8), ("late", "does not hold", 5)):
        claim = Claim("", "Appendix B", "throughout", (Comparison("e", "c", agent, "random"),))
        found = judge(claim, measured)
        assert (found.verdict, found.findings[0].value) == (verdict, stretches)


def test_a_reading_tells_its_verdicts_in_a_sentence() -> None:
    found = Reading("High", "policy:high", "273.0 ± 8.6", ("linucb",), (), (0.5, 0.4, 0.6), 3)
    assert found.verdicts == (
        "experts: ahead / level / behind 1 / 3 / 0; comparable yes; surpassing yes; "
        "near-optimal no: 50% [40%, 60%]; low throughout no: 3 of 8"
    )
