"""The named MDPs and their options. Nothing here imports torch, so that help texts come at once.

- Lock: the bidirectional combination lock of Mao, Zhang, Zhu, Simchi-Levi and Başar (RestartQ-UCB, Appendix J), S = 10,
  A = 2, H = 5. Five right actions in a row are paid well, the first wrong one leads to where every step pays 1/(8H).
- RiverSwim (Strehl and Littman, 2008): a large reward upstream, a small one downstream, and a current that turns.
- Darkroom (as in Laskin et al., 2022): find a goal that cannot be seen, until it is somewhere else.
- RandomMDP: random transitions and rewards, with any of the drifts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from driftformer.errors import InputError, require_choice, require_count, require_real

if TYPE_CHECKING:
    from driftformer.environments.mdp import TabularMDP
    from driftformer.environments.mdp_drift import MDPDrift

Variant = Literal["abrupt", "gradual", "ends"]
Drifting = Literal["stationary", "swaps", "redraws", "hand-over", "cycle", "walk"]


@dataclass(frozen=True, kw_only=True)
class Lock:
    """Two chains of actions that must all be right; which end pays more, or which action leads where, changes."""

    name: ClassVar[str] = "lock"

    episodes: int = 5000
    """Episodes of H steps."""
    variant: Variant = "abrupt"
    """The ends' rewards are swapped now and then; the first action's two ways are exchanged, steadily; or the ends'
    rewards are, steadily."""
    every: int = 1000
    """Abrupt: episodes between swaps."""
    stages: int = 5
    """Steps H of an episode; there are 2H states."""
    success: float = 0.98
    """How likely a right action moves on."""
    small: float = 0.25
    """What the lesser end pays; the other one pays 1."""

    def build(self, drift: MDPDrift | None = None) -> TabularMDP:
        from driftformer.environments.mdp import TabularMDP
        from driftformer.environments.mdp_drift import HandOver, Swaps
        from driftformer.environments.mdp_families import Lock as Family

        require_choice("variant", self.variant, get_args(Variant))
        require_count("stages", self.stages, 2, 1000)
        require_real("success", self.success, 0.0, most=1.0)
        require_real("small", self.small, 0.0, most=1.0)
        ends, into = (1.0, self.small), self.success
        entrances = (into, 1 - into) if self.variant == "gradual" else (into, into)
        pays = (ends, ends if self.variant == "gradual" else ends[::-1])
        family = Family(self.stages, self.success, 1 / (8 * self.stages), pays, entrances)
        own = Swaps(self.every) if self.variant == "abrupt" else HandOver()
        return TabularMDP(name=self.name, family=family, stages=self.stages, episodes=self.episodes, drift=drift or own)


@dataclass(frozen=True, kw_only=True)
class RiverSwim:
    """A river whose great reward lies upstream; now and then it turns and runs the other way."""

    name: ClassVar[str] = "riverswim"

    episodes: int = 1000
    """Episodes of H steps."""
    stages: int = 20
    """Steps H of an episode."""
    length: int = 6
    """States from one end of the river to the other; an episode begins in the middle."""
    gain: float = 0.35
    """How likely a stroke upstream gains a state; it loses one with probability .05."""
    every: int = 250
    """Episodes after which the river turns."""

    def build(self, drift: MDPDrift | None = None) -> TabularMDP:
        from driftformer.environments.mdp import TabularMDP
        from driftformer.environments.mdp_drift import Swaps
        from driftformer.environments.mdp_families import RiverSwim as Family

        require_count("length", self.length, 2, 1000)
        require_real("gain", self.gain, 0.0, most=0.95)
        return TabularMDP(
            name=self.name,
            family=Family(self.length, self.gain),
            drift=drift or Swaps(self.every),
            stages=self.stages,
            episodes=self.episodes,
        )


@dataclass(frozen=True, kw_only=True)
class Darkroom:
    """A dark room with a goal to be found by walking onto it; now and then it is moved."""

    name: ClassVar[str] = "darkroom"

    episodes: int = 500
    """Episodes of H steps."""
    stages: int = 20
    """Steps H of an episode."""
    size: int = 10
    """The room has size × size fields; an episode begins in the middle."""
    changes: int = 4
    """How often the goal moves, in random episodes that differ from problem to problem."""

    def build(self, drift: MDPDrift | None = None) -> TabularMDP:
        from driftformer.environments.mdp import TabularMDP
        from driftformer.environments.mdp_drift import Redraws
        from driftformer.environments.mdp_families import Darkroom as Family

        require_count("size", self.size, 2, 40)
        return TabularMDP(
            name=self.name,
            family=Family(self.size),
            drift=drift or Redraws(self.changes),
            stages=self.stages,
            episodes=self.episodes,
        )


@dataclass(frozen=True, kw_only=True)
class RandomMDP:
    """Random transitions and rewards that stay, are redrawn, swap, or move steadily."""

    name: ClassVar[str] = "random-mdp"

    episodes: int = 1000
    """Episodes of H steps."""
    stages: int = 5
    """Steps H of an episode."""
    states: int = 8
    """States S; an episode begins in the first."""
    actions: int = 3
    """Actions A."""
    successors: int = 3
    """To how many states an action of a state can lead."""
    rewards: Literal["dense", "sparse"] = "dense"
    """Every state and action pays, Unif[0, 1] in the mean; or one of them pays 1."""
    law: Literal["bernoulli", "exact"] = "bernoulli"
    """Rewards are 1 with the mean as probability, else 0; or they are the mean."""
    stages_differ: bool = False
    """Each step of an episode has rewards and transitions of its own."""
    change: Drifting = "redraws"
    """Never; two MDPs in turn; new ones at random times; one becomes another; back and forth; from one to the next."""
    changes: int = 4
    """Redraws: how many, in random episodes that differ from problem to problem."""
    every: int = 250
    """Swaps and walk: episodes from one MDP to the next."""
    period: float = 500.0
    """Cycle: episodes from an MDP to its return."""

    def drift(self) -> MDPDrift:
        from driftformer.environments import mdp_drift as drifts

        require_choice("change", self.change, get_args(Drifting))
        kinds: dict[str, Callable[[], MDPDrift]] = {
            "stationary": drifts.Same,
            "swaps": lambda: drifts.Swaps(self.every),
            "redraws": lambda: drifts.Redraws(self.changes),
            "hand-over": drifts.HandOver,
            "cycle": lambda: drifts.Cycle(self.period),
            "walk": lambda: drifts.Walk(self.every),
        }
        return kinds[self.change]()

    def build(self, drift: MDPDrift | None = None) -> TabularMDP:
        from driftformer.environments.mdp import TabularMDP
        from driftformer.environments.mdp_families import RandomFamily

        for size in ("stages", "states", "actions", "successors"):
            require_count(size, getattr(self, size), most=10_000)
        if self.successors > self.states:
            raise InputError(f"successors is {self.successors}, but there are {self.states} states; give at most that")
        require_choice("rewards", self.rewards, ("dense", "sparse"))
        family = RandomFamily(
            self.states, self.actions, self.successors, self.rewards == "sparse", self.stages_differ, self.stages
        )
        return TabularMDP(
            name=self.name,
            family=family,
            law=self.law,
            drift=drift or self.drift(),
            stages=self.stages,
            episodes=self.episodes,
        )


TABULAR = (Lock, RiverSwim, Darkroom, RandomMDP)
