"""Beyond the paper: strong rivals, a range of frequencies, and worlds that no policy was trained on."""

from __future__ import annotations

from dataclasses import replace

from driftformer.environments.presets import Bursts, Chirp, Flips, High, Jumps, Linear, Low, Outage, Rising, Walk, Wave
from driftformer.environments.table import Change, Table
from driftformer.experiments.base import Case, Experiment
from driftformer.experiments.paper import PRIORS

_TOLD_NOTHING = (
    "linucb",
    "thompson",
    "master-linucb",
    "master-thompson",
    "discounted-linucb@gamma=0.9",
    "sliding-window-linucb@window=20",
    "weighted-linucb",
    "detection-linucb",
)
_SLOWLY_FORGETTING = "discounted-linucb@gamma=0.99"
"""The best of the discounted ones where little changes."""
UNTOLD = (*_TOLD_NOTHING, _SLOWLY_FORGETTING, "discounted-linucb@gamma=0.97", "sliding-window-linucb")
"""Rivals of a policy that learn from rewards alone."""
_FOR_FIXED_ARMS = ("detection-linucb",)
_RIVALS = ("random", *_TOLD_NOTHING, *PRIORS, "oracle", "policy:drift")
_WITHOUT_ORACLE = tuple(agent for agent in _RIVALS if agent not in (*PRIORS, "oracle"))
"""Where w* moves in every round or arms change one by one, agents that know the prior cannot play."""
_SWEPT = ("random", "linucb", "thompson", "master-linucb", "discounted-linucb@gamma=0.9", *PRIORS, "oracle")


def _both_modes(name: str, title: str, preset: Linear, agents: tuple[str, ...]) -> tuple[Case, ...]:
    """With fixed arms, and with resampled ones and the agents that can play those."""
    others = tuple(agent for agent in agents if agent not in _FOR_FIXED_ARMS)
    return (
        Case(f"{name}-fixed", f"{title}, fixed arms", preset, agents),
        Case(f"{name}-resampled", f"{title}, resampled arms", replace(preset, arm_mode="resampled"), others),
    )


RIVALS = Experiment(
    name="rivals",
    title="The strongest rivals",
    question="Which agent tracks a changing world best, among all that are built here?",
    cases=(
        *_both_modes("high-0.018", "High, b = 0.018", High(b=0.018), (*_RIVALS, "policy:cosine")),
        *_both_modes("high-0.025", "High, b = 0.025", High(b=0.025), (*_RIVALS, "policy:cosine")),
        *_both_modes("low", "Low", Low(), (*_RIVALS, _SLOWLY_FORGETTING)),
    ),
)

FREQUENCY_SWEEP = Experiment(
    name="frequency-sweep",
    title="Regret against the frequency of the cosine",
    question="Where does each agent break down? `policy:high` was trained at .005, .01, .015 and .02 only.",
    cases=tuple(
        Case(f"b-{b:g}", f"b = {b:g}", High(b=b), (*_SWEPT, "policy:high", "policy:drift", "policy:cosine"), value=b)
        for b in (0.0, 0.0025, 0.005, 0.0075, 0.01, 0.0125, 0.015, 0.0175, 0.02, 0.025, 0.03, 0.035, 0.04)
    ),
    axis="frequency b",
)

OTHER_DRIFTS = Experiment(
    name="other-drifts",
    title="Other kinds of change",
    question="What if the world does not turn with a cosine?",
    cases=(
        Case("flips", "Four sudden changes of sign", Flips(changes=4), (*_RIVALS, "policy:cosine")),
        Case("rising", "One rising arm", Rising(), (*_WITHOUT_ORACLE, "policy:cosine")),
        Case("chirp", "A shrinking period", Chirp(), (*_RIVALS, "policy:cosine")),
        Case("heavy-tails", "High, b = 0.018, heavy tails", High(b=0.018, tails="heavy"), (*_RIVALS, "policy:cosine")),
        Case(
            "long",
            "High, b = 0.018, twice as long",
            High(b=0.018, horizon=400),
            (*_RIVALS, "restart@base=policy:cosine,every=200"),
        ),
    ),
)

UNSEEN_DRIFTS = Experiment(
    name="unseen-drifts",
    title="Worlds that no policy was trained on",
    question="How well does what a policy has learned generalise?",
    cases=(
        Case("sawtooth", "A sawtooth instead of a cosine", Wave(shape="sawtooth"), _RIVALS),
        Case("square", "The sign changes with a period", Wave(shape="square"), _RIVALS),
        Case("beats", "A product of two cosines", Wave(shape="beats"), _RIVALS),
        Case("rotation", "w* turns in a plane", Walk(horizon=200, budget=6.0, motion="rotate"), _WITHOUT_ORACLE),
        Case("outage", "The best arm fails for a while", Outage(), _WITHOUT_ORACLE),
        Case("bursts", "Noise that comes in bursts", Bursts(), _WITHOUT_ORACLE),
    ),
)

_FORGETTING = tuple(f"discounted-linucb@gamma={gamma}" for gamma in (0.9, 0.97, 0.99))
_ON_DATA = ("random", "linucb", "thompson", *_FORGETTING, "sliding-window-linucb", "weighted-linucb", "policy:drift")
_TABLES = {"iris": 0, "wine": 0, "breast-cancer": 500, "phishing": 500, "bananas": 500, "image-segments": 500}
_LABELS: dict[Change, str] = {
    "none": "",
    "permute": ", labels permuted twice",
    "handover": ", labels handed over twice",
}

REAL_DATA = Experiment(
    name="real-data",
    title="Real data",
    question="Which agent makes the fewest mistakes on tables of data whose labels change, or do not?",
    cases=tuple(
        Case(f"{data}-{change}", f"{data}{title}", Table(data=data, horizon=rounds, change=change, changes=2), _ON_DATA)
        for data, rounds in _TABLES.items()
        for change, title in _LABELS.items()
    ),
)

LONG_RUNS = Experiment(
    name="long-runs",
    title="Thousands of rounds",
    question="Does a policy trained on at most 1,000 rounds keep up in worlds that go on and on?",
    cases=tuple(
        Case(
            f"jumps-{horizon}",
            f"A jump every 200 rounds, T = {horizon:,}",
            Jumps(horizon=horizon, changes=horizon // 200 - 1, dim=8, arms=5),
            (
                *("random", "prior", "linucb", *_FORGETTING, "sliding-window-linucb@window=100", "weighted-linucb"),
                *("restart@base=linucb,every=200", "policy:drift"),
            ),
        )
        for horizon in (5_000, 20_000)
    ),
)

BEYOND = (RIVALS, FREQUENCY_SWEEP, OTHER_DRIFTS, UNSEEN_DRIFTS, REAL_DATA, LONG_RUNS)
