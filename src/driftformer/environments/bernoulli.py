"""K arms without features that pay 1 or 0: what most papers on bandits, and most A/B tests, have.

Success probabilities are Unif[0,1] at first. They stay, are redrawn, walk (turning around at 0 and 1), or swing around
one half, p_k(t) = ½ + (u_k − ½)·cos(2πbt), so that the best arm becomes the worst and back. The `oracle` knows how they
change, and the prior, but not which arm is good; it takes clicks for rewards with noise of standard deviation ½.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from driftformer.environments.presets import Changing

if TYPE_CHECKING:
    from driftformer.environments.drift import Drift
    from driftformer.environments.linear import LinearBandit


@dataclass(frozen=True, kw_only=True)
class Bernoulli(Changing):
    """K arms without features that pay 1 or 0, with success probabilities that change."""

    name: ClassVar[str] = "bernoulli"

    horizon: int = 1000
    """Rounds T."""
    arms: int = 10
    """Arms K."""
    offered: float = 1.0
    """Probability that an arm is on offer in a round; at least one always is."""

    def drift(self) -> Drift:
        from driftformer.environments import drift

        changes = super().drift()
        if self.change != "cosine":
            return changes
        return drift.Compose((drift.Affine(1.0, -0.5), changes, drift.Affine(1.0, 0.5)))

    def build(self) -> LinearBandit:
        from driftformer.environments.linear import LinearBandit

        return LinearBandit(
            name=self.name,
            horizon=self.horizon,
            dim=self.arms,
            arms=self.arms,
            law="bernoulli",
            link="reflected" if self.change == "walk" else "identity",
            arm_mode="one-hot",
            offered=self.offered,
            drift=self.drift(),
        )
