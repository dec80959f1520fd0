"""Play one agent in one environment, a stack of chunks at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from driftformer.agents.base import Agent, Observed, Privileged, ProblemShape
from driftformer.environments.base import Environment
from driftformer.errors import InputError
from driftformer.randomness import CHUNK, Randomness
from driftformer.simulation.regret import ChunkRegret, RegretRecorder

_REPORT = 32
"""Rounds between two reports of progress."""


@dataclass(frozen=True)
class Trajectories:
    """Everything that was seen and done, for those who ask for it: it grows with batch times horizon."""

    arms: Tensor  # [B, T] int32
    rewards: Tensor  # [B, T]
    suboptimality: Tensor  # [B, T]
    auxiliary_values: Tensor | None  # [B, T]
    events: dict[str, Tensor]  # [B, T] each: what the agent tells of every round


@dataclass(frozen=True)
class Rollout:
    """What a rollout leaves: one regret for each chunk, and trajectories if they were asked for."""

    regrets: list[ChunkRegret]
    trajectories: Trajectories | None


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread: more would give other last bits, and parallelism comes from workers."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            yield
    finally:
        torch.set_num_threads(before)


def check_applies(environment: Environment, agent: Agent) -> None:
    """Refuse a privileged agent where it does not apply."""
    reason = agent.why_not(environment) if isinstance(agent, Privileged) else None
    if reason is not None:
        raise InputError(f"agent '{agent.name}' cannot play '{environment.name}': {reason}; leave it out here")


def rollout(
    environment: Environment,
    agent: Agent,
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
    """
    check_applies(environment, agent)
    with one_thread():
        randomness = Randomness(seed, chunks, device=device, dtype=dtype)
        shape = ProblemShape(
            randomness.batch, environment.horizon, environment.arms, environment.dim, randomness.device, dtype
        )
        recorder = RegretRecorder(list(counts or [CHUNK] * len(chunks)), environment.horizon)
        history: list[_Round] = []
        state: Any = agent.init(shape)
        world = environment.reset(randomness)
        rng = randomness.stream("agent")
        informed = agent if isinstance(agent, Privileged) else None
        observed = agent if isinstance(agent, Observed) else None
        for t in range(1, environment.horizon + 1):
            if informed is not None:
                state = informed.inform(state, environment.truth(world))
            arm, info = agent.act(state, world.action_set, rng)
            reward, gap, following = environment.step(world, arm, randomness)
            state = agent.update(state, world.action_set, arm, reward, info)
            recorder.add(gap)
            if trajectories:
                events = observed.events(state) if observed is not None else {}
                history.append(_Round(arm.int(), reward, gap, info.auxiliary_value, events))
            world = following
            if on_rounds is not None and (t % _REPORT == 0 or t == environment.horizon):
                on_rounds(randomness.batch * ((t - 1) % _REPORT + 1))
        diagnostics = observed.diagnostics(state) if observed is not None else {}
        return Rollout(recorder.finish(diagnostics), _stack(history) if trajectories else None)


@dataclass(frozen=True)
class _Round:
    """One round of all problems, `[B]` each."""

    arm: Tensor
    reward: Tensor
    gap: Tensor
    auxiliary_value: Tensor | None
    events: dict[str, Tensor]


def _stack(history: list[_Round]) -> Trajectories:
    auxiliary = [one.auxiliary_value for one in history if one.auxiliary_value is not None]
    return Trajectories(
        torch.stack([one.arm for one in history], dim=1),
        torch.stack([one.reward for one in history], dim=1),
        torch.stack([one.gap for one in history], dim=1),
        torch.stack(auxiliary, dim=1) if auxiliary else None,
        {name: torch.stack([one.events[name] for one in history], dim=1) for name in history[0].events},
    )
