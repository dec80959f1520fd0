"""Worlds that are not the paper's, as linear bandits whose way to change is an option.

- Bernoulli: K arms without features that pay 1 or 0, what most papers on bandits, and most A/B tests, have. Success
  probabilities are Unif[0,1] at first. They stay, are redrawn, walk (turning around at 0 and 1), or swing around one
  half, p_k(t) = ½ + (u_k − ½)·cos(2πbt), so that the best arm becomes the worst and back. The `oracle` knows how they
  change, and the prior, but not which arm is good; it takes clicks for rewards with noise of standard deviation ½.
- Logistic: clicks with P(reward = 1) = σ(⟨a, w_t⟩ + intercept).
- Disjoint: the setting of disjoint LinUCB. Arm k's features are the context in the k-th of A blocks, zeros elsewhere:
  one parameter of A·c dimensions holds all arms' own ones, and linear agents play the disjoint model without knowing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from driftformer.errors import require_choice, require_count, require_real

if TYPE_CHECKING:
    from driftformer.environments.drift import Drift
    from driftformer.environments.linear import LinearBandit

Change = Literal["stationary", "jumps", "cosine", "walk"]


@dataclass(frozen=True, kw_only=True)
class Changing:
    """What they share: sizes, one option for how they change, and a number for each kind."""

    name: ClassVar[str]

    horizon: int = 1000
    """Rounds T."""
    arms: int = 10
    """Arms A."""
    offered: float = 1.0
    """Probability that an arm is on offer in a round; at least one always is."""
    change: Change = "jumps"
    """Never; parameters are redrawn in random rounds; they swing with a cosine; they walk."""
    changes: int = 4
    """Jumps: how many."""
    b: float = 0.005
    """Cosine: its frequency, in periods per round."""
    budget: float = 4.0
    """Walk: length of the path of all parameters together, over all rounds."""

    def drift(self) -> Drift:
        from driftformer.environments import drift

        require_choice("change", self.change, get_args(Change))
        kinds: dict[str, Callable[[], Drift]] = {
            "stationary": drift.Stationary,
            "jumps": lambda: drift.Jumps(self.changes),
            "cosine": lambda: drift.Cosine(self.b),
            "walk": lambda: drift.RandomWalk(self.budget),
        }
        return kinds[self.change]()

    def bandit(self, **kind: Any) -> LinearBandit:
        """The linear bandit of this kind, with the options that all of them have."""
        from driftformer.environments.linear import LinearBandit

        kind |= {"name": self.name, "arms": self.arms, "offered": self.offered}
        return LinearBandit(horizon=self.horizon, drift=self.drift(), **kind)


@dataclass(frozen=True, kw_only=True)
class Bernoulli(Changing):
    """K arms without features that pay 1 or 0, with success probabilities that change."""

    name: ClassVar[str] = "bernoulli"

    def drift(self) -> Drift:
        from driftformer.environments import drift

        changes = super().drift()
        if self.change != "cosine":
            return changes
        return drift.Compose((drift.Affine(1.0, -0.5), changes, drift.Affine(1.0, 0.5)))

    def build(self) -> LinearBandit:
        link = "reflected" if self.change == "walk" else "identity"
        return self.bandit(dim=self.arms, law="bernoulli", link=link, arm_mode="one-hot")


@dataclass(frozen=True, kw_only=True)
class Logistic(Changing):
    """Clicks whose probability is logistic in an arm's features, with parameters that change."""

    name: ClassVar[str] = "logistic"

    dim: int = 8
    """Length d of each arm's feature vector."""
    intercept: float = -1.0
    """Added before σ: how often anything is clicked (-1: about a third of the time)."""
    prior: Literal["uniform", "normal", "sphere"] = "normal"
    """Where w* comes from: Unif[0,1]^d, N(0,I), or the unit sphere."""
    arm_mode: Literal["fixed", "resampled"] = "resampled"
    """Draw the arms once for each problem, or anew in every round."""

    def drift(self) -> Drift:
        from driftformer.environments import drift

        return drift.Compose((super().drift(), drift.Affine(1.0, self.intercept)))

    def build(self) -> LinearBandit:
        require_real("intercept", self.intercept)
        require_choice("arm_mode", self.arm_mode, ("fixed", "resampled"))
        return self.bandit(dim=self.dim, law="bernoulli", link="logistic", prior=self.prior, arm_mode=self.arm_mode)


@dataclass(frozen=True, kw_only=True)
class Disjoint(Changing):
    """One context in each round and parameters of its own for each arm; rewards with noise, or clicks."""

    name: ClassVar[str] = "disjoint"

    arms: int = 5
    """Arms A."""
    context: int = 4
    """Length of the context; features have length arms × context."""
    rewards: Literal["normal", "bernoulli"] = "normal"
    """Means with normal noise, or clicks with probability σ of them."""
    noise: float = 0.5
    """Standard deviation of the noise; clicks have none."""

    def build(self) -> LinearBandit:
        require_count("context", self.context, most=10_000)
        require_count("arms", self.arms, most=10_000)
        require_choice("rewards", self.rewards, ("normal", "bernoulli"))
        link = "identity" if self.rewards == "normal" else "logistic"
        sizes: dict[str, Any] = {"dim": self.arms * self.context, "noise": self.noise}
        return self.bandit(**sizes, law=self.rewards, link=link, prior="normal", arm_mode="disjoint")
