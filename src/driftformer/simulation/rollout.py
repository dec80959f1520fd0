"""Play one agent in one environment, a stack of chunks at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from driftformer.agents.base import Agent, Observed, Privileged, ProblemShape, why_not
from driftformer.agents.registry import make_agent
from driftformer.environments.base import Environment, traits_of
from driftformer.errors import InputError, require_count
from driftformer.randomness import CHUNK, Randomness
from driftformer.simulation.live import Live, check_environment
from driftformer.simulation.regret import CHECKED, ChunkRegret, RegretRecorder
from driftformer.simulation.trajectories import Trajectories
from driftformer.threads import one_thread

_REPORT = 32
"""Rounds between two reports of progress."""


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
    """
    agent = make_agent(agent) if isinstance(agent, str) else agent
    check_environment(environment)
    check_applies(environment, agent)
    require_count("seed", seed, 0, most=2**63)
    counts = _check_counts(chunks, counts)
    with one_thread(), torch.inference_mode():
        randomness = Randomness(seed, chunks, device=check_device(device), dtype=dtype)
        batch, horizon, arms = randomness.batch, environment.horizon, environment.arms
        state: Any = agent.init(ProblemShape(batch, horizon, arms, environment.dim, randomness.device, dtype))
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
