"""One context in each round and a parameter vector for each arm, the setting of disjoint LinUCB.

Arm k's features are the context in the k-th of A blocks, zeros elsewhere, so a single parameter of A·c dimensions holds
all arms' own ones, and every linear agent plays the disjoint model without knowing it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from driftformer.environments.presets import Changing
from driftformer.errors import require_choice, require_count

if TYPE_CHECKING:
    from driftformer.environments.linear import LinearBandit


@dataclass(frozen=True, kw_only=True)
class Disjoint(Changing):
    """One context in each round and parameters of its own for each arm; rewards with noise, or clicks."""

    name: ClassVar[str] = "disjoint"

    horizon: int = 1000
    """Rounds T."""
    context: int = 4
    """Length of the context; features have length arms × context."""
    arms: int = 5
    """Arms A."""
    rewards: Literal["normal", "bernoulli"] = "normal"
    """Means with normal noise, or clicks with probability σ of them."""
    noise: float = 0.5
    """Standard deviation of the noise; clicks have none."""
    offered: float = 1.0
    """Probability that an arm is on offer in a round; at least one always is."""

    def build(self) -> LinearBandit:
        from driftformer.environments.linear import LinearBandit

        require_count("context", self.context, most=10_000)
        require_count("arms", self.arms, most=10_000)
        require_choice("rewards", self.rewards, ("normal", "bernoulli"))
        return LinearBandit(
            name=self.name,
            horizon=self.horizon,
            dim=self.arms * self.context,
            arms=self.arms,
            noise=self.noise,
            law=self.rewards,
            link="identity" if self.rewards == "normal" else "logistic",
            prior="normal",
            arm_mode="disjoint",
            offered=self.offered,
            drift=self.drift(),
        )
