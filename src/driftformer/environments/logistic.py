"""Clicks whose probability is logistic in an arm's features: P(reward = 1) = σ(⟨a, w_t⟩ + intercept)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from driftformer.environments.presets import Changing
from driftformer.errors import require_choice, require_real

if TYPE_CHECKING:
    from driftformer.environments.linear import LinearBandit


@dataclass(frozen=True, kw_only=True)
class Logistic(Changing):
    """Clicks whose probability is logistic in an arm's features, with parameters that change."""

    name: ClassVar[str] = "logistic"

    horizon: int = 1000
    """Rounds T."""
    dim: int = 8
    """Length d of each arm's feature vector."""
    arms: int = 10
    """Arms A."""
    intercept: float = -1.0
    """Added before σ: how often anything is clicked (-1: about a third of the time)."""
    prior: Literal["uniform", "normal", "sphere"] = "normal"
    """Where w* comes from: Unif[0,1]^d, N(0,I), or the unit sphere."""
    arm_mode: Literal["fixed", "resampled"] = "resampled"
    """Draw the arms once for each problem, or anew in every round."""
    offered: float = 1.0
    """Probability that an arm is on offer in a round; at least one always is."""

    def build(self) -> LinearBandit:
        from driftformer.environments import drift
        from driftformer.environments.linear import LinearBandit

        require_real("intercept", self.intercept)
        require_choice("arm_mode", self.arm_mode, ("fixed", "resampled"))
        return LinearBandit(
            name=self.name,
            horizon=self.horizon,
            dim=self.dim,
            arms=self.arms,
            law="bernoulli",
            link="logistic",
            prior=self.prior,
            arm_mode=self.arm_mode,
            offered=self.offered,
            drift=drift.Compose((self.drift(), drift.Affine(1.0, self.intercept))),
        )
