"""Record the runs that the playground plays: a few problems of every world and drift, by every agent that fits.

    python docs/_site/record.py runs/playground.js

Nothing is simulated in the browser, so it shows the package's own agents, the transformer among them, and the very
numbers of `driftformer evaluate` with seed 0: the first problems of its first chunk. The file is a script, since a page
that is opened from disk may load scripts, but no data.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import driftformer as df
from driftformer.randomness import Randomness, one_thread
from driftformer.simulation.tape import lay_out
from driftformer.storage.files import write_atomically

PROBLEMS = 4
SEED = 0


@dataclass(frozen=True)
class World:
    """One kind of arms under several kinds of change."""

    title: str
    drifts: Mapping[str, tuple[str, dict[str, Any]]]  # by its title, an environment and its options
    agents: Sequence[str]


_ITEMS: dict[str, Any] = {"horizon": 200, "arms": 5, "dim": 8, "noise": 0.5}
_CLICKS: dict[str, Any] = {"horizon": 200, "arms": 5}

WORLDS = (
    World(
        "five items with eight features; rewards with noise",
        {
            "the best turns into the worst and back": ("high", {**_ITEMS, "b": 0.018}),
            "four jumps": ("jumps", {**_ITEMS, "changes": 4}),
            "four changes of sign": ("flips", {**_ITEMS, "changes": 4}),
            "a slow walk": ("walk", {**_ITEMS, "budget": 12.0}),
            "one item rises unnoticed": ("rising", {**_ITEMS, "height": 4.0}),
            "nothing changes": ("stationary", _ITEMS),
        },
        (
            "linucb",
            "policy:drift",
            "discounted-linucb",
            "sliding-window-linucb",
            "adaptive-linucb",
            "thompson",
            "master-linucb",
            "random",
        ),
    ),
    World(
        "five buttons; a click or none",
        {
            "four jumps": ("bernoulli", {**_CLICKS, "change": "jumps"}),
            "a slow wave": ("bernoulli", {**_CLICKS, "change": "cosine", "b": 0.01}),
            "a slow walk": ("bernoulli", {**_CLICKS, "change": "walk", "budget": 8.0}),
            "nothing changes": ("bernoulli", {**_CLICKS, "change": "stationary"}),
        },
        (
            "ucb",
            "policy:drift",
            "kl-ucb",
            "discounted-ucb",
            "sliding-window-ucb",
            "glr-kl-ucb",
            "beta-thompson",
            "random",
        ),
    ),
)


def recorded(worlds: Sequence[World] = WORLDS) -> dict[str, Any]:
    """What the page needs: what every arm is worth in each round, and what each agent chose and earned."""
    return {
        "worlds": [
            {
                "title": world.title,
                "agents": list(world.agents),
                "drifts": [
                    {"title": title, "command": _command(name, options), "problems": _problems(name, options, world)}
                    for title, (name, options) in world.drifts.items()
                ],
            }
            for world in worlds
        ]
    }


def _command(name: str, options: Mapping[str, Any]) -> str:
    return " ".join([f"driftformer evaluate {name}", *(f"--{key} {value}" for key, value in options.items())])


def _problems(name: str, options: dict[str, Any], world: World) -> list[dict[str, Any]]:
    environment = df.make_env(name, **options)
    with one_thread():
        values = lay_out(environment, Randomness(SEED)).values.numpy()  # [B, T, A]
    runs: dict[str, tuple[Any, Any]] = {}
    for agent in world.agents:
        played = df.rollout(environment, agent, seed=SEED, trajectories=True).trajectories
        assert played is not None
        runs[agent] = played.arms.numpy(), played.rewards.numpy()  # [B, T] each
    return [
        {
            "values": [_rounded(arm) for arm in values[problem].T],
            "runs": {
                agent: {"arms": "".join(map(str, arms[problem])), "rewards": _rounded(rewards[problem])}
                for agent, (arms, rewards) in runs.items()
            },
        }
        for problem in range(PROBLEMS)
    ]


def _rounded(numbers: Any) -> list[float]:
    """Four decimals, so that a sum over 200 rounds is right to one."""
    return [float(number) for number in np.round(numbers.astype(float), 4)]


def write(path: Path, worlds: Sequence[World] = WORLDS) -> None:
    """The recording as a script."""
    content = json.dumps(recorded(worlds), separators=(",", ":"))
    write_atomically(path, f"window.PLAYGROUND = {content};\n".encode())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
