"""The paper's own experiments (Section 5, Appendix B): one panel against LinUCB, one against TS.

The transformer is `policy:high` (`policy:low`), trained on optimal arms; beside it are those that imitate MASTER over
the panel's base algorithm. A third panel shows how much better one can do: our policies and the oracle; and how much
is known beforehand: `prior`, which never learns, and the Bayes imitator of the four frequencies.
"""

from __future__ import annotations

from driftformer.environments.presets import High, Low
from driftformer.experiments.base import Case, Experiment, Panel

PRIORS = ("prior", "prior@knows=drift")
"""How much of a number is the prior alone: agents that never learn."""
REFERENCES = (*PRIORS, "clock-posterior")
"""The same, and what training on the four frequencies teaches at best."""
_HIGH_PANELS = (
    Panel(
        "LinUCB and MASTER+LinUCB",
        ("random", "linucb", "master-linucb", "policy:high", "policy:high-master-linucb"),
    ),
    Panel("TS and MASTER+TS", ("random", "thompson", "master-thompson", "policy:high", "policy:high-master-thompson")),
    Panel("Beyond the paper", ("linucb", *REFERENCES, "policy:high", "policy:drift", "policy:cosine", "oracle")),
)
_LOW_PANELS = (
    Panel("LinUCB and MASTER+LinUCB", ("random", "linucb", "master-linucb", "policy:low")),
    Panel("TS and MASTER+TS", ("random", "thompson", "master-thompson", "policy:low")),
    Panel("Beyond the paper", ("linucb", "prior", "policy:low", "policy:drift", "oracle")),
)


def _agents(panels: tuple[Panel, ...]) -> tuple[str, ...]:
    """The agents of some panels, each once."""
    return tuple(dict.fromkeys(agent for panel in panels for agent in panel.agents))


def _high(b: float, paper: str, question: str) -> Experiment:
    case = Case(f"b-{b:g}", f"High, b = {b:g}", High(b=b), _agents(_HIGH_PANELS))
    return Experiment(
        name=f"high-{b:g}",
        title=f"High non-stationarity, b = {b:g}",
        question=question,
        paper=paper,
        cases=(case,),
        panels=_HIGH_PANELS,
    )


PAPER = (
    Experiment(
        name="low",
        title="Low non-stationarity",
        question="Rewards are raised in two windows. Does a transformer that has only seen stationary worlds keep up?",
        paper="Figure 3, top row, and Figure 4",
        cases=(Case("windows", "Low", Low(), _agents(_LOW_PANELS)),),
        panels=_LOW_PANELS,
    ),
    _high(
        0.018,
        "Figure 3, bottom row, and Figure 5",
        "A cosine turns the best arm into the worst and back, at a frequency between those seen in training.",
    ),
    _high(0.025, "Figures 6 and 7", "The same at a frequency beyond those seen in training."),
)
