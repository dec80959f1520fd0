"""An agent led along a recorded history: asked for its arm in every round, it learns from the arm that was played.

A privileged agent is told the truth of each round first, as in a rollout.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from driftformer.agents.base import Agent, Privileged, ProblemShape
from driftformer.problem import Observation, Truth
from driftformer.randomness import Stream
from driftformer.simulation.trajectories import Trajectories


class Follower:
    """An agent in the middle of a history."""

    def __init__(self, agent: Agent, shape: ProblemShape, rng: Stream) -> None:
        self._agent, self._rng = agent, rng
        self._state = agent.init(shape)
        self.info: Any = None

    def act(self, observation: Observation, truth: Truth) -> Tensor:
        if isinstance(self._agent, Privileged):
            self._state = self._agent.inform(self._state, truth)
        arm, self.info = self._agent.act(self._state, observation, self._rng)
        return arm

    def update(self, observation: Observation, arm: Tensor, reward: Tensor) -> None:
        self._state = self._agent.update(self._state, observation, arm, reward, self.info)


def follow(agent: Agent, trajectories: Trajectories, rng: Stream) -> Iterator[tuple[Tensor, Any]]:
    """The arm `[B]` that an agent would choose in each round of a history, and its info."""
    laid = trajectories.on_offer
    follower = Follower(agent, laid.shape, rng)
    for t, (observation, truth) in enumerate(zip(laid.observations, laid.truths, strict=True)):
        yield follower.act(observation, truth), follower.info
        follower.update(observation, trajectories.arms[:, t], trajectories.rewards[:, t])
