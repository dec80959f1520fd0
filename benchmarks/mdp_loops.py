"""Q-UCB and UCB-VI as others run them: one problem, one step at a time, on the same kind of MDP.

Every function plays some episodes of an MDP with S=10, A=2, H=5, in which each step of an episode has rewards and
transitions of its own. Nothing here needs driftformer, so that a Python that has rlberry can run it by itself:

    python benchmarks/mdp_loops.py EPISODES

prints the steps per CPU-second of rlberry's UCBVI, and its version.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

STAGES, STATES, ARMS, SCALE = 5, 10, 2, 0.05

Array = NDArray[np.float64]


def drawn_mdp(rng: np.random.Generator) -> tuple[Array, Array]:
    """Mean rewards [H, S, A] and transitions [H, S, A, S]: three successors each."""
    transitions = np.zeros((STAGES, STATES, ARMS, STATES))
    for row in transitions.reshape(-1, STATES):
        row[rng.choice(STATES, 3, replace=False)] = rng.dirichlet(np.ones(3))
    return rng.random((STAGES, STATES, ARMS)), transitions


def solve(rewards: Array, transitions: Array) -> Array:
    """Q* [H, S, A]."""
    q = rewards.copy()
    for h in range(STAGES - 2, -1, -1):
        q[h] += transitions[h] @ q[h + 1].max(axis=1)
    return q


def chances(rng: np.random.Generator, episodes: int) -> Iterator[list[list[float]]]:
    """Two uniform numbers for each step of each episode; a hundred episodes are drawn at a time."""
    for _ in range(0, episodes, 100):
        yield from rng.random((100, STAGES, 2)).tolist()


def q_ucb_loop(episodes: int) -> float:
    """Q-UCB with scalar updates of NumPy arrays; the exact regret, as our simulator counts it."""
    rng = np.random.default_rng(0)
    rewards, transitions = drawn_mdp(rng)
    best, heights, regret = solve(rewards, transitions), transitions.cumsum(axis=-1), 0.0
    q = np.broadcast_to(np.arange(STAGES, 0, -1.0)[:, None, None], rewards.shape).copy()
    visits = np.zeros(rewards.shape)
    for uniforms in chances(rng, episodes):
        state = 0
        for h in range(STAGES):
            arm = int(q[h, state].argmax())
            reward = uniforms[h][0] < rewards[h, state, arm]
            following = min(int(heights[h, state, arm].searchsorted(uniforms[h][1], "right")), STATES - 1)
            visits[h, state, arm] += 1
            t = visits[h, state, arm]
            value = min(STAGES - h - 1, q[h + 1, following].max()) if h + 1 < STAGES else 0.0
            rate = (STAGES + 1) / (STAGES + t)
            target = reward + value + SCALE * math.sqrt(STAGES**3 / t)
            q[h, state, arm] = (1 - rate) * q[h, state, arm] + rate * target
            regret += best[h, state].max() - best[h, state, arm]
            state = following
    return regret


def ucb_vi_loop(episodes: int) -> float:
    """UCB-VI planned with whole-array NumPy before each episode."""
    rng = np.random.default_rng(0)
    rewards, transitions = drawn_mdp(rng)
    best, heights, regret = solve(rewards, transitions), transitions.cumsum(axis=-1), 0.0
    visits, paid, moves = np.zeros(rewards.shape), np.zeros(rewards.shape), np.zeros(transitions.shape)
    q = np.empty(rewards.shape)
    for uniforms in chances(rng, episodes):
        value, scarce = np.zeros(STATES), np.maximum(visits, 1)
        means, bonuses = paid / scarce, 1 / np.sqrt(scarce)
        for h in range(STAGES - 1, -1, -1):
            hope = STAGES - h
            q[h] = np.minimum(means[h] + moves[h] @ value / scarce[h] + SCALE * hope * bonuses[h], hope)
            q[h][visits[h] == 0] = hope
            value = q[h].max(axis=1)
        state = 0
        for h in range(STAGES):
            arm = int(q[h, state].argmax())
            following = min(int(heights[h, state, arm].searchsorted(uniforms[h][1], "right")), STATES - 1)
            visits[h, state, arm] += 1
            paid[h, state, arm] += uniforms[h][0] < rewards[h, state, arm]
            moves[h, state, arm, following] += 1
            regret += best[h, state].max() - best[h, state, arm]
            state = following
    return regret


def rlberry_speed(episodes: int) -> float:
    """Steps per CPU-second of rlberry's UCBVI with a model of each step; its MDP is the same in all steps."""
    from rlberry.envs.finite_mdp import FiniteMDP
    from rlberry_scool.agents.ucbvi import UCBVIAgent

    rewards, transitions = drawn_mdp(np.random.default_rng(0))
    mdp: Any = FiniteMDP(rewards[0], transitions[0], initial_state_distribution=0)
    agent: Any = UCBVIAgent(mdp, gamma=1.0, horizon=STAGES, stage_dependent=True)
    agent.fit(20)  # compiles
    start = time.process_time()
    agent.fit(episodes)
    return episodes * STAGES / (time.process_time() - start)


if __name__ == "__main__":
    from importlib.metadata import version

    print(rlberry_speed(int(sys.argv[1])), version("rlberry"), version("rlberry-scool"))
