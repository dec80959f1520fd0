"""Worlds with states: the combination lock of Mao et al., all named MDPs, and a drift that no policy was trained on."""

from __future__ import annotations

from driftformer.evaluation.mdp_worlds import ALL_KINDS, CYCLES, LOCKS, UNTOLD, World
from driftformer.experiments.base import Case, Experiment

_AGENTS = ("random", *UNTOLD, "restart-q-ucb", "optimal", "policy:mdp")
_TOLD_WHEN = "change-point-oracle@base=ucb-vi"
_STEADY = ("gradual", "ends", "walk")
"""Worlds that change in every episode: there is no change-point to be told of."""


def _cases(worlds: tuple[World, ...], *told: str) -> tuple[Case, ...]:
    return tuple(
        Case(name, title, preset, (*_AGENTS, *(() if name in _STEADY else told))) for name, title, preset in worlds
    )


MDP_LOCK = Experiment(
    name="mdp-lock",
    title="The combination lock",
    question="Who finds the way through the lock again after its ends, or its entrances, have changed?",
    cases=_cases(LOCKS, _TOLD_WHEN),
)

MDP_WORLDS = Experiment(
    name="mdp-worlds",
    title="Worlds with states",
    question="Which agent keeps up in MDPs that are redrawn, turn round, or hide their goal elsewhere?",
    cases=_cases(ALL_KINDS, _TOLD_WHEN),
)

MDP_UNSEEN = Experiment(
    name="mdp-unseen",
    title="A drift that the policy was not trained on",
    question="Does the policy for MDPs follow worlds that come and go in cycles?",
    cases=_cases(CYCLES),
)

MDPS = (MDP_LOCK, MDP_WORLDS, MDP_UNSEEN)
