"""The paper's claims on its experiments under every reading that its text leaves open.

Who stands for the transformer, how it plays, what arms and weights are drawn from: the text does not settle it, and the
claims do not hold or fail alike under all of them. In each reading its agent is measured against the paper's four
expert algorithms on the same problems. The Bayes imitator `clock-posterior` is what training on the four frequencies
would give if it made no error, so it also stands where no policy was trained.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar

from driftformer.environments.presets import High, Linear, Low
from driftformer.experiments.base import Case, Experiment
from driftformer.experiments.paper import PRIORS

if TYPE_CHECKING:
    from driftformer.environments.drift import Drift
    from driftformer.environments.linear import LinearBandit

EXPERTS = ("linucb", "thompson", "master-linucb", "master-thompson")
AROUND = ("random", *EXPERTS, *PRIORS, "oracle")
"""Agents of every reading; the others of a case stand for the transformer, one after the other."""
BEST = "optimal"
"""What `oracle` is in the other readings where that agent has no meaning: the best that can be done."""
_HIGH = ("policy:high", "policy:high@mode=greedy")
_IMITATORS = tuple(
    f"policy:high-master-{base}{mode}" for base in ("linucb", "thompson") for mode in ("", "@mode=greedy")
)
_LOW = ("policy:low", "policy:low@mode=greedy")
_CLOCKS = "clock-posterior"


@dataclass(frozen=True, kw_only=True)
class _HighOfStaticWorth(High):
    """High, where the cosine multiplies rewards and regret is measured against argmax ⟨a, w*⟩."""

    name: ClassVar[str] = "high-static-optimum"

    def build(self, drift: Drift | None = None) -> LinearBandit:
        from driftformer.environments.static_optimum import StaticOptimum

        plain = super().build(drift)
        return StaticOptimum(**{field.name: getattr(plain, field.name) for field in fields(plain)})


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
            "High, b = 0.018, arms drawn in every round",
            High(b=0.018, arm_mode="resampled"),
            (_CLOCKS,),
        ),
        _case(
            "high-0.018-signs",
            "High, b = 0.018, weights of both signs",
            High(b=0.018, prior="normal"),
            (*_HIGH, _CLOCKS),
        ),
        Case(
            "high-0.018-static",
            "High, b = 0.018, regret against argmax ⟨a, w*⟩",
            _HighOfStaticWorth(b=0.018),
            (f"{_CLOCKS}@optimum=static", "random", *EXPERTS, "prior", BEST),
        ),
        _case("high-0.025", "High, b = 0.025", High(b=0.025), (*_HIGH, *_IMITATORS, _CLOCKS)),
        _case(
            "high-0.025-resampled",
            "High, b = 0.025, arms drawn in every round",
            High(b=0.025, arm_mode="resampled"),
            (_CLOCKS,),
        ),
        _case(
            "high-0.025-signs",
            "High, b = 0.025, weights of both signs",
            High(b=0.025, prior="normal"),
            (*_HIGH, _CLOCKS),
        ),
        _case("high-0.02", "High, b = 0.02, a frequency of the training data", High(b=0.02), (*_HIGH, _CLOCKS)),
    ),
)
