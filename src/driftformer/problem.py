"""What environments and agents share: what is seen in a round, what is true of it, what kind of problem it is.

Neither side imports the other; both speak in these values, and the simulation carries them across. An environment may
come from anyone, so what it says is checked at the door, before anything is stored.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from driftformer.errors import InputError, require_count
from driftformer.randomness import Randomness


@dataclass(frozen=True)
class Observation:
    """What an agent sees before it chooses, for a batch of problems.

    >>> seen = df.Observation(torch.eye(3).expand(2, 3, 3), offered=torch.tensor([[True, True, False]] * 2))
    >>> seen.best(torch.tensor([[0.1, 0.5, 0.9], [0.3, 0.2, 0.9]]))  # the third arm is not on offer
    tensor([1, 0])
    """

    action_set: Tensor  #: [B, A, d] the features of each arm
    offered: Tensor | None = None  #: [B, A] bool: which arms are on offer; None means all of them
    state: Tensor | None = None  #: [B] where there are states
    stage: Tensor | None = None  #: [B] the step of the episode, where there are episodes

    def best(self, values: Tensor) -> Tensor:
        """The offered arm with the highest value, `[B]`, from values `[B, A]`."""
        return self.choose(values)[0]

    def choose(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """The offered arm with the highest value, and that value, `[B]` each."""
        value, arm = self.masked(values).max(dim=1)
        return arm, value

    def masked(self, values: Tensor) -> Tensor:
        """The same values, minus infinity for arms that are not on offer."""
        return values if self.offered is None else values.masked_fill(~self.offered, -torch.inf)

    def features(self, arm: Tensor) -> Tensor:
        """The features `[B, d]` of the chosen arms `[B]`."""
        return pick(self.action_set, arm)

    def drawn(self, uniform: Tensor) -> Tensor:
        """A uniformly random offered arm, `[B]`, from Unif[0, 1) numbers `[B]`."""
        return draw_arms(uniform, self.action_set.shape[1], self.offered)

    def evenly(self) -> Tensor:
        """How likely each arm is to be drawn so, `[B, A]`."""
        on_offer = torch.ones_like(self.action_set[:, :, 0])
        on_offer = on_offer if self.offered is None else on_offer * self.offered
        return on_offer / on_offer.sum(dim=1, keepdim=True)


@dataclass(frozen=True)
class LinearTruth:
    """In this round a reward's mean is scale·⟨a, w⟩ + shift, with noise around it and w* drawn from a known prior."""

    scale: Tensor  # [B]
    shift: Tensor  # [B]
    redrawn: Tensor  # [B] bool: w* is a fresh draw from the prior since the round before
    noise: float  # standard deviation of the noise, before scaling
    prior_mean: float
    prior_variance: float


@dataclass(frozen=True)
class Truth:
    """What no ordinary agent may see. The simulation hands it to privileged agents, and to nobody else.

    >>> df.Truth(values=torch.tensor([[0.2, 0.7]]), changed=torch.tensor([False])).values.argmax(dim=1)
    tensor([1])
    """

    values: Tensor  #: [B, A] what each offered arm is worth in this round
    changed: Tensor | None = None  #: [B] bool: the rewards' law differs from that of the round before; None if untold
    linear: LinearTruth | None = None  #: where rewards are linear in the features


@dataclass(frozen=True)
class Traits:
    """What an environment declares about itself, so that agents can refuse what they are not made for.

    >>> df.make_agent("ucb").why_not(df.Traits())
    'it counts how often each arm pays, so arms must have no features'
    >>> df.make_agent("ucb").why_not(df.Traits(one_hot=True, same_arms=True)) is None
    True
    """

    one_hot: bool = False
    """Arms have no features: each is a unit vector, the same one in every round."""
    same_arms: bool = False
    """Arm k is the same arm in every round."""
    linear: bool = False
    """Mean rewards are scale_t·⟨a, w_t⟩ + shift_t; w_t stays or is redrawn from its prior; `Truth.linear` says how."""
    abrupt: bool = False
    """Rewards change in single rounds only, if at all, and `Truth.changed` says when."""
    states: int = 0
    """Number of states, `Observation.state` being one of 0, 1, …; 0 where there are none."""
    stages: int = 0
    """Steps of an episode, `Observation.stage` being 0, 1, …, stages − 1, where what is played decides the next state;
    0 for bandits. All problems of a batch begin their episodes together, and changes come between episodes only."""
    stages_differ: bool = False
    """The steps of an episode have rewards and transitions of their own."""
    unit_rewards: bool = False
    """Every reward lies in [0, 1], as the bonuses of some agents assume."""


def traits_of(environment: Any) -> Traits:
    """What an environment declares about itself."""
    traits: Traits = getattr(environment, "traits", Traits())
    return traits


def why_not(agent: Any, traits: Traits) -> str | None:
    """Why an agent, or the one it wraps, cannot play such a problem; None if it can."""
    own = agent.why_not(traits) if hasattr(agent, "why_not") else None
    if own is None and traits.stages and not getattr(agent, "episodic", False):
        own = "it is made for bandits, and here what is played decides the next state"
    base = getattr(agent, "base", None)
    return own or (why_not(base, traits) if base is not None else None)


def draw_arms(uniform: Tensor, arms: int, offered: Tensor | None) -> Tensor:
    """Uniformly random arms `[…]` among those offered `[…, A]`, or among all, from Unif[0, 1) numbers `[…]`."""
    if offered is None:
        return (uniform * arms).long()
    rank = (uniform * offered.sum(dim=-1)).long()  # which of the offered ones
    return (offered.cumsum(dim=-1) > rank.unsqueeze(-1)).int().argmax(dim=-1)


def place_of(arm: Tensor, arms: int) -> Tensor:
    """Each problem's chosen arm as an index `[B]` into all arms of the batch, `[B·A, …]`."""
    return _first_arms(arm.shape[0], arms, arm.device) + arm


@lru_cache(maxsize=8)
def _first_arms(batch: int, arms: int, device: torch.device) -> Tensor:
    return torch.arange(batch, device=device) * arms


def take(values: Tensor, place: Tensor) -> Tensor:
    """The entries `[B, …]` of the chosen arms out of `[B, A, …]`, by their places.

    One flat index_select is several times faster here than gather or advanced indexing.
    """
    return values.flatten(0, 1).index_select(0, place)


def pick(values: Tensor, arm: Tensor) -> Tensor:
    """The entry of each problem's chosen arm: `[B, A, …]` and `[B]` to `[B, …]`."""
    return take(values, place_of(arm, values.shape[1]))


def check_environment(environment: Any) -> None:
    """Refuse an environment whose description is wrong, by name."""
    name = getattr(environment, "name", None)
    if not isinstance(name, str) or not re.fullmatch(r"[^\s/]+", name):
        raise InputError(f"environment {type(environment).__name__} has the name {name!r:.60}; give one word")
    for size in ("horizon", "arms", "dim"):
        given: Any = getattr(environment, size, None)
        require_count(f"environment '{name}': {size}", given, most=10**8)
    described = environment.describe() if callable(getattr(environment, "describe", None)) else None
    if not isinstance(described, str) or not described.strip() or "\n" in described:
        raise InputError(f"environment '{name}': describe() gives {described!r:.60}; return one line of text")


def check_config(environment: Any) -> None:
    """Refuse an environment whose results could not be told apart from others', by name."""
    name = environment.name
    try:
        config = environment.config()
        plain = json.loads(json.dumps(config, allow_nan=False))
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(
            f"environment '{name}': config() is not plain JSON data ({error}); return a dict of it"
        ) from None
    if not isinstance(plain, dict):
        raise InputError(f"environment '{name}': config() gives {type(config).__name__}; return a dict of plain data")


def check_world(environment: Any, world: Any, randomness: Randomness) -> None:
    """Refuse a first world whose tensors are not what its environment claims."""
    name, batch, arms = environment.name, randomness.batch, environment.arms
    observation = getattr(world, "observation", None)
    if getattr(world, "t", None) != 1 or not isinstance(observation, Observation):
        raise InputError(f"environment '{name}': reset() must give a world with t = 1 and a df.Observation")
    kind, device = randomness.dtype, randomness.device.type
    _check_tensor(name, "observation.action_set", observation.action_set, (batch, arms, environment.dim), kind, device)
    _check_tensor(name, "values", getattr(world, "values", None), (batch, arms), kind, device)
    if observation.offered is not None:
        _check_tensor(name, "observation.offered", observation.offered, (batch, arms), torch.bool, device)
        check_offered(environment, world)
    if not bool(observation.action_set.isfinite().all()):
        raise InputError(f"environment '{name}': observation.action_set has NaN or infinite numbers; give finite ones")


def check_step(environment: Any, reward: Any, suboptimality: Any, before: Any, after: Any) -> None:
    name, values = environment.name, before.values
    for what, tensor in (("reward", reward), ("suboptimality", suboptimality)):
        _check_tensor(name, f"the {what} of step()", tensor, values.shape[:1], values.dtype, values.device.type)
    if bool((suboptimality < 0).any()):
        raise InputError(f"environment '{name}': step() gives a negative suboptimality; it is max values − values[arm]")
    if getattr(after, "t", None) != 2:
        raise InputError(f"environment '{name}': step() must give the world of the next round, with t = 2")


def check_offered(environment: Any, world: Any) -> None:
    if not bool(world.observation.offered.any(dim=1).all()):
        raise InputError(
            f"environment '{environment.name}': a problem has no arm on offer in round {world.t}; offer at least one"
        )


def check_state(environment: Any, world: Any) -> None:
    """Refuse a state that tables have no row for, or would read from a neighbour's: 0, 1, … are all there are."""
    state, states = world.observation.state, traits_of(environment).states
    if not isinstance(state, Tensor) or state.dtype != torch.long or state.shape != world.values.shape[:1]:
        got = f"a {state.dtype} tensor {list(state.shape)}" if isinstance(state, Tensor) else type(state).__name__
        raise InputError(
            f"environment '{environment.name}': observation.state is {got} in round {world.t}; give a torch.int64 "
            f"tensor {list(world.values.shape[:1])}"
        )
    low, high = (int(bound) for bound in state.aminmax())
    if low < 0 or high >= states:
        raise InputError(
            f"environment '{environment.name}': observation.state contains {low if low < 0 else high} in round "
            f"{world.t}; its traits declare the states 0 to {states - 1}"
        )


def _check_tensor(name: str, what: str, tensor: Any, shape: tuple[int, ...], kind: torch.dtype, device: str) -> None:
    fits = (
        isinstance(tensor, Tensor) and tensor.shape == shape and tensor.dtype == kind and tensor.device.type == device
    )
    if not fits:
        got = f"a {tensor.dtype} tensor {list(tensor.shape)}" if isinstance(tensor, Tensor) else type(tensor).__name__
        raise InputError(f"environment '{name}': {what} is {got}; give a {kind} tensor {list(shape)} on {device}")
