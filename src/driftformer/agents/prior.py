"""How much of a number is the prior? An agent that plays what the prior's mean calls best, and never learns.

In the paper's worlds w* is uniform on [0, 1]^d, so before any reward the arm with the largest sum of features is
expected to be good, and an agent that always plays it is far ahead of chance. Whatever a trained policy has below this
agent's regret it has learned in context; the rest may be memory of its training. Where the prior's mean is zero nothing
is known beforehand, and the agent plays at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from torch import Tensor

from driftformer.agents.base import ProblemShape
from driftformer.agents.reference import NoInfo
from driftformer.errors import require_choice
from driftformer.problem import LinearTruth, Observation, Traits, Truth
from driftformer.randomness import Stream

Known = Literal["prior", "drift"]


@dataclass(frozen=True)
class Prior:
    """Knows the prior of w* alone, or also how the world drifts: then it knows when the best arm is the worst."""

    knows: Known = "prior"
    name: ClassVar[str] = "prior"
    learns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_choice("knows", self.knows, get_args(Known))

    def why_not(self, traits: Traits) -> str | None:
        return None if traits.linear else "it knows only worlds with linear rewards whose w* stays or is redrawn"

    def init(self, shape: ProblemShape) -> None:
        """The simulation's first word brings the prior."""

    def inform(self, state: LinearTruth | None, truth: Truth) -> LinearTruth:
        assert truth.linear is not None, "an environment whose traits say linear tells how"
        return truth.linear

    def act(self, state: LinearTruth, observation: Observation, rng: Stream) -> tuple[Tensor, NoInfo]:
        chance = rng.uniform()
        if state.prior_mean == 0:
            return observation.drawn(chance), NoInfo()
        expected = observation.action_set.sum(-1) * state.prior_mean  # [B, A]
        if self.knows == "drift":
            expected = expected * state.scale.unsqueeze(1)
        return observation.best(expected), NoInfo()

    def update(
        self, state: LinearTruth, observation: Observation, arm: Tensor, reward: Tensor, info: NoInfo
    ) -> LinearTruth:
        return state
