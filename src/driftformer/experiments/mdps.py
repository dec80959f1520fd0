"""Worlds with states: the combination lock of Mao et al., all named MDPs, and a drift that no policy was trained on."""

from __future__ import annotations

from driftformer.environments.mdp_presets import Darkroom, Lock, RandomMDP, RiverSwim
from driftformer.experiments.base import Case, Experiment

UNTOLD_OF_MDPS = (
    "q-learning",
    "q-ucb",
    "double-restart-q-ucb",
    "ucb-vi",
    "sliding-window-ucb-vi",
    "psrl",
    "master-ucb-vi",
    "master-q-ucb",
)
"""Rivals of a policy that learn from what happens alone."""
_AGENTS = ("random", *UNTOLD_OF_MDPS, "restart-q-ucb", "optimal", "policy:mdp")
_TOLD_WHEN = "change-point-oracle@base=ucb-vi"

MDP_LOCK = Experiment(
    name="mdp-lock",
    title="The combination lock",
    question="Who finds the way through the lock again after its ends, or its entrances, have changed?",
    cases=(
        Case("abrupt", "The ends' rewards are swapped four times", Lock(), (*_AGENTS, _TOLD_WHEN)),
        Case("gradual", "The first action's two ways are exchanged, steadily", Lock(variant="gradual"), _AGENTS),
        Case("ends", "The ends' rewards are exchanged, steadily", Lock(variant="ends"), _AGENTS),
    ),
)

MDP_WORLDS = Experiment(
    name="mdp-worlds",
    title="Worlds with states",
    question="Which agent keeps up in MDPs that are redrawn, turn round, or hide their goal elsewhere?",
    cases=(
        Case("riverswim", "A river that turns three times", RiverSwim(), (*_AGENTS, _TOLD_WHEN)),
        Case("darkroom", "A goal in the dark that moves four times", Darkroom(), (*_AGENTS, _TOLD_WHEN)),
        Case("random", "Random MDPs, redrawn four times", RandomMDP(), (*_AGENTS, _TOLD_WHEN)),
        Case(
            "sparse",
            "Random MDPs in which one action of one state pays, redrawn four times",
            RandomMDP(rewards="sparse", law="exact"),
            (*_AGENTS, _TOLD_WHEN),
        ),
        Case("walk", "Random MDPs that become one another", RandomMDP(change="walk"), _AGENTS),
        Case("rest", "Random MDPs at rest", RandomMDP(change="stationary"), (*_AGENTS, _TOLD_WHEN)),
    ),
)

MDP_UNSEEN = Experiment(
    name="mdp-unseen",
    title="A drift that the policy was not trained on",
    question="Does the policy for MDPs follow worlds that come and go in cycles?",
    cases=(
        Case("cycle", "Random MDPs in a cycle of 500 episodes", RandomMDP(change="cycle"), _AGENTS),
        Case(
            "fast-cycle",
            "Random MDPs in a cycle of 150 episodes",
            RandomMDP(change="cycle", period=150.0),
            _AGENTS,
        ),
        Case(
            "sparse-cycle",
            "One action of one state pays, in a cycle of 500 episodes",
            RandomMDP(change="cycle", rewards="sparse", law="exact"),
            _AGENTS,
        ),
    ),
)

MDPS = (MDP_LOCK, MDP_WORLDS, MDP_UNSEEN)
