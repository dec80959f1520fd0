"""Play one agent in one environment, a stack of chunks at a time, and measure its dynamic regret.

The suboptimality of round t is max_a R_t(a) − R_t(a_t), from exact values; its running sum is the cumulative
dynamic regret. It is gathered in memory that does not grow with batch times horizon: for each chunk and round only the
mean over problems and the sum of squared deviations are kept (which merge without loss of precision), and for each
problem its final regret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from driftformer.agents.base import Agent, Observed, Privileged, ProblemShape
from driftformer.agents.registry import make_agent
from driftformer.environments.base import Environment
from driftformer.errors import InputError, require_count
from driftformer.problem import (
    Observation,
    Truth,
    check_environment,
    check_offered,
    check_state,
    check_step,
    check_world,
    pick,
    traits_of,
    why_not,
)
from driftformer.randomness import CHUNK, Randomness, one_thread
from driftformer.simulation.trajectories import Trajectories

Array = NDArray[np.float64]

_REPORT = 32
"""Rounds between two reports of progress."""


CHECKED = 64
"""Rounds that are collected before they are summed up and checked: no wait for an accelerator in between."""


@dataclass(frozen=True)
class ChunkRegret:
    """The regret of one agent on the first `len(regret)` problems of one chunk."""

    regret: Array  # [n] cumulative dynamic regret after the last round
    suboptimality_mean: Array  # [T] over the n problems
    suboptimality_squares: Array  # [T] sum of squared deviations from that mean
    regret_mean: Array  # [T]
    regret_squares: Array  # [T]
    diagnostics: dict[str, Array] = field(default_factory=dict)  # [n] each: what the agent tells of itself


class RegretRecorder:
    """Takes the suboptimality `[B]` of each round and yields one `ChunkRegret` for each chunk of the stack."""

    def __init__(self, counts: list[int], horizon: int) -> None:
        self._counts = counts
        self._curves = np.empty((len(counts), 4, horizon))
        self._regret = [np.zeros(count) for count in counts]
        self._block: Tensor | None = None  # [CHECKED, B], one piece of memory for the whole rollout
        self._earned: Tensor | None = None  # [B] the sum of rewards, to see whether they stay finite
        self._filled = 0
        self._seen = 0

    def add(self, suboptimality: Tensor, reward: Tensor) -> None:
        if self._block is None or self._earned is None:
            self._block, self._earned = (
                suboptimality.new_empty(CHECKED, suboptimality.shape[0]),
                torch.zeros_like(reward),
            )
        self._earned += reward
        self._block[self._filled] = suboptimality
        self._filled += 1
        if self._filled == CHECKED:
            self._flush(self._block)

    def _flush(self, filled: Tensor) -> None:
        rounds = len(filled)
        block = filled.cpu().numpy().astype(np.float64)  # [rounds, B]
        bad = ~np.isfinite(block).all(axis=1)
        if bad.any():
            raise InputError(
                f"values are NaN or infinite in round {self._seen + int(bad.argmax()) + 1}; the environment, and its "
                "drift, must keep them finite"
            )
        if self._earned is not None and not bool(self._earned.isfinite().all()):
            raise InputError(
                f"rewards are NaN or infinite by round {self._seen + rounds}; give a smaller noise or a finite drift"
            )
        for chunk, count in enumerate(self._counts):
            gaps = np.ascontiguousarray(block[:, chunk * CHUNK : chunk * CHUNK + count])  # [rounds, n]
            cumulative = self._regret[chunk] + np.cumsum(gaps, axis=0)
            now = slice(self._seen, self._seen + rounds)
            for row, values in ((0, gaps), (2, cumulative)):
                mean = values.mean(axis=1)
                self._curves[chunk, row, now] = mean
                self._curves[chunk, row + 1, now] = np.square(values - mean[:, None]).sum(axis=1)
            self._regret[chunk] = cumulative[-1]
        self._seen += rounds
        self._filled = 0

    def finish(self, diagnostics: Mapping[str, Tensor] | None = None) -> list[ChunkRegret]:
        """One regret for each chunk, with what the agent tells of each problem, `[B]`."""
        if self._block is not None and self._filled:
            self._flush(self._block[: self._filled])
        told = {name: value.double().cpu().numpy() for name, value in (diagnostics or {}).items()}
        chunks = []
        for place, count in enumerate(self._counts):
            rows = slice(place * CHUNK, place * CHUNK + count)
            own = {name: value[rows] for name, value in told.items()}
            suboptimality, suboptimality_squares, regret, regret_squares = self._curves[place]
            chunks.append(
                ChunkRegret(self._regret[place], suboptimality, suboptimality_squares, regret, regret_squares, own)
            )
        return chunks


class Live:
    """A batch of problems in play."""

    def __init__(self, environment: Environment, randomness: Randomness) -> None:
        self._environment, self._randomness = environment, randomness
        self._world = environment.reset(randomness)
        check_world(environment, self._world, randomness)
        self._has_states = traits_of(environment).states > 0
        if self._has_states:
            check_state(environment, self._world)
        self.suboptimality = torch.zeros_like(self._world.values[:, 0])  # [B] of the arms that were last paid for

    @property
    def observation(self) -> Observation:
        observation: Observation = self._world.observation
        return observation

    @property
    def values(self) -> Tensor:
        values: Tensor = self._world.values
        return values

    def truth(self) -> Truth:
        return self._environment.truth(self._world)

    def pay(self, arm: Tensor) -> Tensor:
        """The rewards `[B]` of some arms; the next round begins."""
        before = self._world
        offered = before.observation.offered
        if offered is not None and not bool(pick(offered, arm).all()):
            raise InputError(f"an arm that is not on offer was chosen in round {before.t}; choose among `offered`")
        reward, self.suboptimality, self._world = self._environment.step(before, arm, self._randomness)
        if before.t == 1:
            check_step(self._environment, reward, self.suboptimality, before, self._world)
        if self._world.observation.offered is not None and self._world.t <= self._environment.horizon:
            check_offered(self._environment, self._world)
        if self._has_states and self._world.t <= self._environment.horizon:
            check_state(self._environment, self._world)
        return reward


@dataclass(frozen=True)
class Rollout:
    """What a rollout leaves: one regret for each chunk, and trajectories if they were asked for."""

    regrets: list[ChunkRegret]
    trajectories: Trajectories | None


def check_device(device: torch.device | str) -> torch.device:
    """A device that can be used, or an error that says which can."""
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        found = torch.device("meta")
    if found.type not in ("cpu", "cuda"):
        raise InputError(f"device is {device!r}; give cpu or cuda")
    if found.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device is '{device}', but torch finds no such GPU here; use cpu")
    return found


def _check_counts(chunks: Sequence[int], counts: Sequence[int] | None) -> list[int]:
    """How many problems of each chunk count."""
    if not chunks or any(not isinstance(chunk, int) or chunk < 0 for chunk in chunks):
        raise InputError(f"chunks is {chunks!r}; give the indices of one or more, from 0")
    counts = [CHUNK] * len(chunks) if counts is None else list(counts)
    if len(counts) != len(chunks) or not all(isinstance(count, int) and 1 <= count <= CHUNK for count in counts):
        raise InputError(f"counts is {counts!r}; give a number from 1 to {CHUNK} for each of {len(chunks)} chunks")
    return counts


def _check_arm(agent: Agent, arm: Tensor, batch: int, arms: int) -> None:
    """Catch an agent that answers in another shape before torch does."""
    whole = isinstance(arm, Tensor) and arm.shape == (batch,) and arm.dtype == torch.long
    if not whole or not bool(((arm >= 0) & (arm < arms)).all()):
        got = f"a {arm.dtype} tensor {list(arm.shape)}" if isinstance(arm, Tensor) else type(arm).__name__
        got += " with numbers outside of that" if whole else ""
        raise InputError(
            f"agent '{agent.name}' chose {got}; act must give a torch.int64 tensor [{batch}] of 0..{arms - 1}"
        )


def _check_finite(agent: Agent, auxiliary_value: Tensor | None, t: int) -> None:
    """Stop where an agent's own numbers have broken down: its choices would mean nothing from there on."""
    if auxiliary_value is not None and not bool(auxiliary_value.isfinite().all()):
        raise InputError(f"agent '{agent.name}' has come to NaN or infinite values by round {t}; check its options")


def check_applies(environment: Environment, agent: Agent) -> None:
    """Refuse an agent where it does not apply."""
    reason = why_not(agent, traits_of(environment))
    if reason is not None:
        raise InputError(f"agent '{agent.name}' cannot play '{environment.name}': {reason}; leave it out here")


def rollout(
    environment: Environment,
    agent: Agent | str,
    *,
    seed: int = 0,
    chunks: Sequence[int] = (0,),
    counts: Sequence[int] | None = None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    trajectories: bool = False,
    on_rounds: Callable[[int], None] | None = None,
) -> Rollout:
    """Play every round of the given chunks as one batch.

    `counts` says how many problems of each chunk enter its regret (all by default); `on_rounds` is told now and then
    how many rounds, summed over problems, have been played since it was last called.

    >>> played = df.rollout(df.make_env("high"), "linucb", trajectories=True)
    >>> played.trajectories.arms.shape  # 64 problems of 200 rounds
    torch.Size([64, 200])
    >>> round(float(played.regrets[0].regret.mean()), 1)
    285.4
    """
    agent = make_agent(agent) if isinstance(agent, str) else agent
    check_environment(environment)
    check_applies(environment, agent)
    require_count("seed", seed, 0, most=2**63)
    counts = _check_counts(chunks, counts)
    with one_thread(), torch.inference_mode():
        randomness = Randomness(seed, chunks, device=check_device(device), dtype=dtype)
        batch, horizon, arms = randomness.batch, environment.horizon, environment.arms
        traits = traits_of(environment)
        sizes = (batch, horizon, arms, environment.dim, randomness.device, dtype)
        state: Any = agent.init(ProblemShape(*sizes, traits.states, traits.stages, traits.stages_differ))
        recorder, history = RegretRecorder(counts, horizon), list[_Round]()
        live, rng = Live(environment, randomness), randomness.stream("agent")
        informed = agent if isinstance(agent, Privileged) else None
        observed = agent if isinstance(agent, Observed) else None
        for t in range(1, horizon + 1):
            observation = live.observation
            if informed is not None:
                state = informed.inform(state, live.truth())
            arm, info = agent.act(state, observation, rng)
            if t == 1:
                _check_arm(agent, arm, batch, arms)
            reward = live.pay(arm)
            state = agent.update(state, observation, arm, reward, info)
            recorder.add(live.suboptimality, reward)
            if t % CHECKED == 0:
                _check_finite(agent, info.auxiliary_value, t)
            if trajectories:
                events = observed.events(state) if observed is not None else {}
                history.append(_Round(arm.int(), reward, live.suboptimality, info.auxiliary_value, events))
            if on_rounds is not None and (t % _REPORT == 0 or t == horizon):
                on_rounds(batch * ((t - 1) % _REPORT + 1))
        diagnostics = observed.diagnostics(state) if observed is not None else {}
        regrets = recorder.finish(diagnostics)
        _check_finite(agent, info.auxiliary_value, horizon)
        return Rollout(regrets, _stack(history) if trajectories else None)


@dataclass(frozen=True)
class _Round:
    """One round of all problems, `[B]` each."""

    arm: Tensor
    reward: Tensor
    suboptimality: Tensor
    auxiliary_value: Tensor | None
    events: dict[str, Tensor]


def _stack(history: list[_Round]) -> Trajectories:
    auxiliary = [one.auxiliary_value for one in history if one.auxiliary_value is not None]
    return Trajectories(
        torch.stack([one.arm for one in history], dim=1),
        torch.stack([one.reward for one in history], dim=1),
        torch.stack([one.suboptimality for one in history], dim=1),
        torch.stack(auxiliary, dim=1) if auxiliary else None,
        {name: torch.stack([one.events[name] for one in history], dim=1) for name in history[0].events},
    )
