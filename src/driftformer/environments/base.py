"""What an environment is.

An environment is a frozen description; a `World` is the state of a whole batch of its problems in one round, a value.
`step` takes the chosen arms and gives the rewards, their exact suboptimality and the world of the next round, which may
depend on them: bandits ignore that dependence, tabular MDPs will not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from driftformer.randomness import Randomness


@dataclass(frozen=True)
class Truth:
    """What no ordinary agent may see: handed to privileged ones by the simulation, and to nobody else.

    In round t the reward of arm a is scale·(⟨a, w⟩ + ε) + shift with ε ~ N(0, noise²) and w* ~ prior.
    """

    mean_rewards: Tensor  # [B, A]
    scale: Tensor  # [B]
    shift: Tensor  # [B]
    redrawn: Tensor  # [B] bool: w* is a fresh draw from the prior since the round before
    changed: Tensor  # [B] bool: w*, scale or shift are others than in the round before
    noise: float
    prior_mean: float
    prior_variance: float


class World(Protocol):
    """A batch of problems in one round."""

    @property
    def t(self) -> int:
        """The round, counted from 1."""
        ...

    @property
    def action_set(self) -> Tensor:
        """The features of the arms offered in this round, `[B, A, d]`."""
        ...

    @property
    def mean_rewards(self) -> Tensor:
        """The exact expected reward of each offered arm, `[B, A]`."""
        ...


class Environment(Protocol):
    """A description of a family of problems that can be simulated in batches."""

    @property
    def name(self) -> str: ...
    @property
    def horizon(self) -> int: ...
    @property
    def arms(self) -> int: ...
    @property
    def dim(self) -> int: ...

    def reset(self, randomness: Randomness) -> World:
        """Draw the problems; the world of round 1."""
        ...

    def step(self, world: Any, arm: Tensor, randomness: Randomness) -> tuple[Tensor, Tensor, Any]:
        """Pull one arm in every problem: rewards `[B]`, suboptimality `[B]` and the world of the next round.

        Suboptimality is the best mean reward among the arms offered in this round less that of the chosen one.
        """
        ...

    def truth(self, world: Any) -> Truth:
        """What a privileged agent is told before it acts."""
        ...

    def describe(self) -> str:
        """The setting in one line: the title of tables and figures."""
        ...

    def config(self) -> dict[str, Any]:
        """Everything that defines this environment, as plain JSON data."""
        ...
