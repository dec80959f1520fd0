"""The worlds with states that agents are compared in, and the agents that are told nothing there."""

from __future__ import annotations

from driftformer.environments.mdp_presets import Darkroom, Lock, RandomMDP, RiverSwim
from driftformer.environments.presets import Preset

UNTOLD = (
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

World = tuple[str, str, Preset]
"""A name, a title and the environment."""

LOCKS: tuple[World, ...] = (
    ("abrupt", "A lock whose ends' rewards are swapped four times", Lock()),
    ("gradual", "A lock whose first action's two ways are exchanged, steadily", Lock(variant="gradual")),
    ("ends", "A lock whose ends' rewards are exchanged, steadily", Lock(variant="ends")),
)
ALL_KINDS: tuple[World, ...] = (
    ("riverswim", "A river that turns round three times", RiverSwim()),
    ("darkroom", "A goal in the dark that moves four times", Darkroom()),
    ("random", "Random MDPs, redrawn four times", RandomMDP()),
    ("sparse", "The same; one action of one state pays", RandomMDP(rewards="sparse", law="exact")),
    ("walk", "Random MDPs that become one another", RandomMDP(change="walk")),
    ("rest", "Random MDPs at rest", RandomMDP(change="stationary")),
)
CYCLES: tuple[World, ...] = (
    ("cycle", "Random MDPs in a cycle of 500 episodes", RandomMDP(change="cycle")),
    ("fast-cycle", "Random MDPs in a cycle of 150 episodes", RandomMDP(change="cycle", period=150.0)),
    (
        "sparse-cycle",
        "The cycle of 500; one pair pays",
        RandomMDP(change="cycle", rewards="sparse", law="exact"),
    ),
)
"""A drift that no policy was trained on."""
ON_CARD: tuple[World, ...] = (LOCKS[0], *(world for world in ALL_KINDS if world[0] != "darkroom"), *CYCLES)
"""What the card of a policy shows: not all locks, nor the dark room, where agents that plan take many minutes."""
