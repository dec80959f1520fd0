"""Episodic Markov decision processes with finitely many states that change from episode to episode.

A round of the simulator is a step: in step h of episode m an agent in state s plays an action a, is paid r with mean
R_h(s, a) and comes to a state drawn from P_h(s, a, ·). After H steps the next episode begins. A world's `values` are
Q*_m,h(s, ·) of the MDP of the episode, by backward induction, so that the suboptimalities of an episode add up to
V*_m(s_1) − V^π_m(s_1) in expectation (the performance-difference lemma): the dynamic regret of Section 2.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from driftformer.environments.mdp_drift import MDPDrift, Own, Same
from driftformer.environments.rewards import LAWS
from driftformer.errors import InputError, require_choice, require_count
from driftformer.problem import Observation, Traits, Truth, pick
from driftformer.randomness import CHUNK, Randomness, Stream
from driftformer.storage.fingerprint import identify


@dataclass(frozen=True)
class Model:
    """The MDPs of a batch in one episode; H' is H where the steps of an episode differ, else 1."""

    rewards: Tensor  # [B, H', S, A] mean rewards
    transitions: Tensor  # [B, H', S, A, S]


class Family(Protocol):
    """Where the MDPs of a batch come from."""

    @property
    def states(self) -> int: ...
    @property
    def actions(self) -> int: ...
    @property
    def stages_differ(self) -> bool: ...

    def draw(self, count: int, rng: Stream, like: Tensor) -> Model:
        """The MDPs 0, 1, … of every problem, `[K, B, …]` tensors of the kind of `like` `[B]`."""

    def start(self, rng: Stream, like: Tensor) -> Tensor:
        """The state in which an episode begins, `[B]`: always the same number of draws."""


def backward_induction(model: Model, stages: int) -> Tensor:
    """Q*_h(s, a), `[B, H, S, A]`: what is earned from step h on if every later step is the best."""
    steps = model.rewards.shape[1]
    values: list[Tensor] = []
    after = torch.zeros_like(model.rewards[:, 0, :, 0])  # [B, S] V* of the step that follows
    for stage in reversed(range(stages)):
        which = stage if steps > 1 else 0
        ahead = (model.transitions[:, which].flatten(1, 2) @ after.unsqueeze(2)).view_as(model.rewards[:, 0])
        values.append(model.rewards[:, which] + ahead)  # [B, S, A]
        after = values[-1].amax(dim=2)
    return torch.stack(values[::-1], dim=1)


@dataclass(frozen=True)
class Solved:
    """A model in the forms that a step looks things up in."""

    model: Model
    cumulative: Tensor  # [B, H', S, A, S] chance of a state up to this one; the last is 2: rounding leaves none out
    values: Tensor  # [B, H, S, A] Q*


def solve(model: Model, stages: int) -> Solved:
    cumulative = model.transitions.cumsum(dim=-1)
    cumulative[..., -1] = 2.0
    return Solved(model, cumulative, backward_induction(model, stages))


def solved_anew(before: Solved, problem: Tensor, solved: Solved) -> Solved:
    """Some problems `[n]` have new MDPs."""
    if len(problem) == len(before.values):
        return solved

    def put(old: Tensor, new: Tensor) -> Tensor:
        return old.index_copy(0, problem, new)

    model = Model(
        *(put(getattr(before.model, part), getattr(solved.model, part)) for part in ("rewards", "transitions"))
    )
    return Solved(model, put(before.cumulative, solved.cumulative), put(before.values, solved.values))


@dataclass(frozen=True)
class Path:
    """The MDPs that a batch is led along, and how far it has come."""

    mdps: Model  # [K, B, …]
    plan: Any  # the drift's
    position: Tensor  # [B] float64


def model_at(path: Path, problem: Tensor) -> Model:
    """What lies at the positions of some problems `[n]`: one MDP, or a mixture of two that follow each other."""
    last, position = len(path.mdps.rewards) - 1, path.position[problem]
    number = position.long().clamp(max=max(last - 1, 0))  # [n] of the first of the two
    share = position - number

    def mixed(mdps: Tensor) -> Tensor:
        here, there = mdps[number, problem], mdps[(number + 1).clamp(max=last), problem]
        return torch.lerp(here, there, share.to(here).view(-1, *[1] * (here.ndim - 1)))

    return Model(mixed(path.mdps.rewards), mixed(path.mdps.transitions))


@dataclass(frozen=True)
class MDPWorld:
    """A batch of MDPs in one step."""

    t: int
    observation: Observation
    values: Tensor  # [B, A] Q* of the present state
    spread: Tensor  # [B] zeros: the law of rewards has its own chance, or none
    changed: Tensor  # [B] bool: in the first step of an episode whose MDP differs from that of the one before
    place: Tensor  # [B] of the present state among all (problem, step, state)
    solved: Solved
    path: Path


@dataclass(frozen=True, kw_only=True)
class TabularMDP:
    """MDPs of a family that follow a drift for some episodes of H steps."""

    name: str = "mdp"
    family: Family
    stages: int
    episodes: int
    drift: MDPDrift = field(default_factory=Same)
    law: str = "exact"

    def __post_init__(self) -> None:
        require_count("stages", self.stages, most=10_000)
        require_count("episodes", self.episodes, most=10**8)
        require_choice("law", self.law, ("exact", "bernoulli"))
        sizes = self.family.states**2 * self.family.actions * (self.stages if self.family.stages_differ else 1)
        if CHUNK * sizes > 2**31:
            raise InputError(
                f"{self.name} has {self.family.states} states and {self.family.actions} actions; {CHUNK} problems of "
                "that size need more than 8 GiB, so give fewer"
            )

    @property
    def horizon(self) -> int:
        return self.episodes * self.stages

    @property
    def arms(self) -> int:
        return self.family.actions

    @property
    def dim(self) -> int:
        return self.family.actions

    @cached_property
    def traits(self) -> Traits:
        return Traits(
            one_hot=True,
            same_arms=True,
            abrupt=self.drift.abrupt,
            states=self.family.states,
            stages=self.stages,
            unit_rewards=True,
            stages_differ=self.family.stages_differ,
        )

    def reset(self, randomness: Randomness) -> MDPWorld:
        batch, rng = randomness.batch, randomness.stream("drift")
        spread = torch.zeros(batch, device=randomness.device, dtype=randomness.dtype)
        mdps = self.family.draw(self.drift.mdps(self.episodes), rng, spread)
        for rewards, transitions in zip(mdps.rewards, mdps.transitions, strict=True):
            self._check(Model(rewards, transitions), batch)
        plan = self.drift.plan(self.episodes, rng, spread)
        path = Path(mdps, plan, self._position(0, plan, spread))
        solved = solve(self._model(0, path, torch.arange(batch, device=randomness.device)), self.stages)
        state = self.family.start(randomness.stream("start"), spread)
        eye = torch.eye(self.arms).to(spread).expand(batch, -1, -1)
        seen = Observation(eye, None, state, torch.zeros_like(state))
        return self._at(MDPWorld(1, seen, spread, spread, spread.bool(), state, solved, path), 1, state, spread.bool())

    def _position(self, episode: int, plan: Any, like: Tensor) -> Tensor:
        position = self.drift.position(episode, plan)
        return torch.as_tensor(position, dtype=torch.double, device=like.device).expand(len(like))

    def _model(self, episode: int, path: Path, problem: Tensor) -> Model:
        """The MDPs of an episode, of some problems."""
        if isinstance(self.drift, Own):
            first = path.mdps
            changed = self.drift.change(episode, first.rewards[0].clone(), first.transitions[0].clone())
            if not isinstance(changed, tuple) or len(changed) != 2:
                raise InputError(
                    f"environment '{self.name}': drift gives {type(changed).__name__}; return (rewards, transitions)"
                )
            return self._check(Model(*changed), len(path.position))
        return model_at(path, problem)

    def _check(self, model: Model, batch: int) -> Model:
        return check_model(self.name, model, (batch, self.steps, self.family.states, self.arms))

    @property
    def steps(self) -> int:
        """H': how many steps of an episode have rewards and transitions of their own."""
        return self.stages if self.family.stages_differ else 1

    def step(self, world: MDPWorld, arm: Tensor, randomness: Randomness) -> tuple[Tensor, Tensor, MDPWorld]:
        law, solved = LAWS[self.law], world.solved
        row = self._model_row(world) * self.arms + arm  # [B]
        mean = solved.model.rewards.view(-1).index_select(0, row)
        reward = law.reward(mean, world.spread, law.noise(randomness.stream("noise")))
        suboptimality = world.values.amax(dim=1) - pick(world.values, arm)
        chance = randomness.stream("transitions").uniform()  # [B]
        t = world.t + 1
        if t > self.horizon:  # nothing comes after the last step
            return reward, suboptimality, replace(world, t=t)
        if (t - 1) % self.stages:
            reached = solved.cumulative.view(-1, self.family.states).index_select(0, row)  # [B, S]
            state = (reached <= chance.unsqueeze(1)).sum(dim=1)
            return reward, suboptimality, self._at(world, t, state, torch.zeros_like(world.changed))
        return reward, suboptimality, self.next_episode(world, t, randomness)

    def next_episode(self, world: MDPWorld, t: int, randomness: Randomness) -> MDPWorld:
        """The world of round t, the first of an episode, from any of the episode before."""
        episode = (t - 1) // self.stages
        state = self.family.start(randomness.stream("start"), world.spread)
        path = replace(world.path, position=self._position(episode, world.path.plan, world.spread))
        changed = path.position != world.path.position  # [B]
        if isinstance(self.drift, Own):
            model, before = self._model(episode, path, changed), world.solved.model
            changed = (model.rewards != before.rewards).flatten(1).any(dim=1)
            changed |= (model.transitions != before.transitions).flatten(1).any(dim=1)
            return self._at(replace(world, solved=solve(model, self.stages), path=path), t, state, changed)
        problem = changed.nonzero().squeeze(1)
        if len(problem) == 0:
            return self._at(world, t, state, changed)
        solved = solved_anew(world.solved, problem, solve(self._model(episode, path, problem), self.stages))
        return self._at(replace(world, solved=solved, path=path), t, state, changed)

    def _at(self, world: MDPWorld, t: int, state: Tensor, changed: Tensor) -> MDPWorld:
        """The same MDPs in another state."""
        stage = (t - 1) % self.stages
        problem = torch.arange(len(state), device=state.device)
        place = (problem * self.stages + stage) * self.family.states + state
        values = world.solved.values.view(-1, self.arms).index_select(0, place)
        seen = replace(world.observation, state=state, stage=torch.full_like(state, stage))
        return replace(world, t=t, observation=seen, values=values, changed=changed, place=place)

    def _model_row(self, world: MDPWorld) -> Tensor:
        """Where the present states stand among (problem, step that has a model of its own, state), `[B]`."""
        if self.family.stages_differ or self.stages == 1:
            return world.place
        state = world.observation.state
        assert state is not None, "an MDP has states"
        return torch.arange(len(state), device=state.device) * self.family.states + state

    def optimum(self, randomness: Randomness) -> Tensor:
        """What can be earned in expectation by who knows everything, `[B]`: the sum of V*_m(s_1) over all episodes."""
        world = self.reset(randomness)
        total = world.values.amax(dim=1).double()
        for episode in range(1, self.episodes):
            world = self.next_episode(world, episode * self.stages + 1, randomness)
            total += world.values.amax(dim=1)
        return total

    def truth(self, world: MDPWorld) -> Truth:
        return Truth(world.values, world.changed)

    def describe(self) -> str:
        sizes = f"{self.family.states} states, {self.arms} actions, H={self.stages}, {self.episodes} episodes"
        return f"{self.name}: {self.drift.describe()}, {sizes}"

    def config(self) -> dict[str, Any]:
        plain = {"name": self.name, "stages": self.stages, "episodes": self.episodes, "law": self.law}
        return plain | {"family": identify(self.family), "drift": identify(self.drift)}


def check_model(name: str, model: Model, shape: tuple[int, int, int, int]) -> Model:
    """Refuse rewards and transitions that make no MDP, by name."""
    for what, tensor, wanted in (
        ("rewards", model.rewards, shape),
        ("transitions", model.transitions, (*shape, shape[2])),
    ):
        if not isinstance(tensor, Tensor) or tensor.shape != wanted or not tensor.is_floating_point():
            got = list(tensor.shape) if isinstance(tensor, Tensor) else type(tensor).__name__
            raise InputError(f"environment '{name}': {what} are {got}; give floats {list(wanted)}")
        if not bool(((tensor >= 0) & (tensor <= 1)).all()):  # also where they are NaN
            worst = float(tensor.nan_to_num(torch.inf).flatten()[_worst(tensor)])
            raise InputError(f"environment '{name}': {what} contain {worst:g}; all of them lie in [0, 1]")
    off = (model.transitions.sum(dim=-1) - 1).abs()
    if bool((off > 1e-4).any()):
        place = torch.unravel_index(off.argmax(), off.shape)[1:]
        total = 1 + float((model.transitions.sum(dim=-1) - 1).flatten()[off.argmax()])
        stage, state, action = (int(index) for index in place)
        raise InputError(
            f"environment '{name}': transitions from state {state} under action {action} in step {stage} sum to "
            f"{total:.6g}; they must sum to 1"
        )
    return model


def _worst(tensor: Tensor) -> int:
    """Where a tensor lies furthest from [0, 1]."""
    return int((tensor.nan_to_num(torch.inf) - 0.5).abs().argmax())
