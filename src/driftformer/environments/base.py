"""What an environment is.

An environment is a frozen description of a family of problems; a world is the state of a whole batch of them in one
round, a value. It has `t`, the round, counted from 1; `observation`, what agents see; and `values` `[B, A]`, what each
arm is worth: in a bandit its mean reward, in an MDP Q*_t(s, ·). `step` takes the chosen arms and gives the rewards,
their exact suboptimality and the world of the next round, which may depend on them: in a bandit it does not, in an MDP
it does.

Everything that is asked of an environment is on this page. Whatever fulfils it, from whichever package, is simulated,
tabulated, drawn, stored, reported and trained on.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from driftformer.environments.rewards import RewardLaw
from driftformer.problem import Truth
from driftformer.randomness import Randomness


class Environment(Protocol):
    """A description of a family of problems that can be simulated in batches.

    It may also have an attribute `traits`: without one, agents that need something special refuse to play.
    """

    @property
    def name(self) -> str: ...
    @property
    def horizon(self) -> int: ...
    @property
    def arms(self) -> int: ...
    @property
    def dim(self) -> int: ...

    def reset(self, randomness: Randomness) -> Any:
        """Draw the problems; the world of round 1."""

    def step(self, world: Any, arm: Tensor, randomness: Randomness) -> tuple[Tensor, Tensor, Any]:
        """Pull one arm in every problem: rewards `[B]`, suboptimality `[B]` and the world of the next round.

        Suboptimality is the highest value among the offered arms less that of the chosen one.
        """

    def truth(self, world: Any) -> Truth:
        """What a privileged agent is told before it acts."""

    def describe(self) -> str:
        """The setting in one line, for people."""

    def config(self) -> dict[str, Any]:
        """Everything that defines this environment, as plain JSON data."""


@runtime_checkable
class Foreseeable(Protocol):
    """An environment whose worlds do not depend on what is played: it can be laid out over all rounds beforehand.

    Its worlds also have a `spread` `[B]`, the standard deviation that scales the noise of the round.
    """

    @property
    def rewards(self) -> RewardLaw: ...

    def advance(self, world: Any, randomness: Randomness) -> Any:
        """The world of the next round, whatever is played in this one."""
