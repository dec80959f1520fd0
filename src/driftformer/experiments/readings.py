"""The paper's claims on its experiments under every reading that its text leaves open.

Who stands for the transformer, how it plays, what arms and weights are drawn from: the text does not settle it, and the
claims do not hold or fail alike under all of them. In each reading its agent is measured against the paper's four
expert algorithms on the same problems. The Bayes imitator `clock-posterior` is what training on the four frequencies
would give if it made no error, so it also stands where no policy was trained.
"""

from __future__ import annotations

from driftformer.environments.presets import High, Linear, Low
from driftformer.experiments.base import Case, Experiment

EXPERTS = ("linucb", "thompson", "master-linucb", "master-thompson")
AROUND = ("random", *EXPERTS, "prior", "prior@knows=drift", "oracle")
"""Agents of every reading; the others of a case stand for the transformer, one after the other."""
_HIGH = ("policy:high", "policy:high@mode=greedy")
_IMITATORS = tuple(
    f"policy:high-master-{base}{mode}" for base in ("linucb", "thompson") for mode in ("", "@mode=greedy")
)
_LOW = ("policy:low", "policy:low@mode=greedy")
_CLOCKS = "clock-posterior"


def _case(name: str, title: str, preset: Linear, players: tuple[str, ...]) -> Case:
    return Case(name, title, preset, (*players, *AROUND))


READINGS = Experiment(
    name="readings",
    title="The paper's claims under every reading",
    question="Which of the paper's claims hold, whoever stands for the transformer and whatever arms and weights are "
    "drawn from? And how much of each figure is the prior alone?",
    cases=(
        _case("low", "Low", Low(), _LOW),
        _case("low-signs", "Low, weights of both signs", Low(prior="normal"), _LOW),
        _case("high-0.018", "High, b = 0.018", High(b=0.018), (*_HIGH, *_IMITATORS, _CLOCKS)),
        _case(
            "high-0.018-resampled",
            "The same, arms drawn in every round",
            High(b=0.018, arm_mode="resampled"),
            (_CLOCKS,),
        ),
        _case(
            "high-0.018-signs",
            "The same, fixed arms, weights of both signs",
            High(b=0.018, prior="normal"),
            (*_HIGH, _CLOCKS),
        ),
        _case("high-0.025", "High, b = 0.025", High(b=0.025), (*_HIGH, *_IMITATORS, _CLOCKS)),
        _case(
            "high-0.025-resampled",
            "The same, arms drawn in every round",
            High(b=0.025, arm_mode="resampled"),
            (_CLOCKS,),
        ),
        _case("high-0.02", "High, b = 0.02, a frequency of the training data", High(b=0.02), (*_HIGH, _CLOCKS)),
    ),
)
