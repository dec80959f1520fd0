"""Play one agent in one environment, a stack of chunks at a time, and the unit of work: which chunks, stacked how."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from driftformer.agents.base import Agent, Observed, Privileged, ProblemShape
from driftformer.agents.registry import make_agent
from driftformer.environments.base import Environment
from driftformer.errors import InputError, require_count
from driftformer.problem import traits_of, why_not
from driftformer.randomness import CHUNK, Randomness, one_thread
from driftformer.simulation.live import Live, check_environment
from driftformer.simulation.regret import CHECKED, ChunkRegret, RegretRecorder
from driftformer.simulation.trajectories import Trajectories

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


STACK = 10
"""Chunks stacked into one batch on a CPU: about 640 problems are the fastest there; more leave its cache."""

DEVICE_STACK = 256
"""Chunks stacked into one batch on an accelerator."""


@dataclass(frozen=True, order=True)
class Chunk:
    """The first `count` problems of chunk number `index`."""

    index: int
    count: int = CHUNK


@dataclass(frozen=True)
class Task:
    """One agent on a stack of chunks: everything a worker needs to know."""

    environment: Environment
    name: str  # of the agent, as it was asked for
    agent: Agent
    chunks: tuple[Chunk, ...]
    seed: int
    device: str
    trajectories: bool

    @property
    def label(self) -> str:
        numbers = ", ".join(str(chunk.index) for chunk in self.chunks)
        return f"'{self.name}' on '{self.environment.name}', chunk {numbers}"

    @property
    def rounds(self) -> int:
        return len(self.chunks) * CHUNK * self.environment.horizon


@dataclass(frozen=True)
class Outcome:
    """What a worker gives back for a task."""

    rollout: Rollout
    cpu_seconds: float
    wall_seconds: float


def chunks_for(runs: int) -> list[Chunk]:
    """The chunks that hold the first `runs` problems; of the last one perhaps only a part counts."""
    return [Chunk(index, min(CHUNK, runs - index * CHUNK)) for index in range(-(-runs // CHUNK))]


def stack(chunks: Sequence[Chunk], workers: int, device: str, agent: Agent) -> list[tuple[Chunk, ...]]:
    """Batches of chunks that are large enough to be fast and numerous enough to keep every worker busy.

    An agent may set a limit of its own, `stack`, where its numbers would depend on the size of the batch.
    """
    limit = min(STACK if device == "cpu" else DEVICE_STACK, _own_limit(agent))
    size = max(1, min(limit, -(-len(chunks) // workers)))
    return [tuple(chunks[start : start + size]) for start in range(0, len(chunks), size)]


def _own_limit(agent: Any) -> int:
    """The least that an agent, or one that it wraps, allows."""
    inner = _own_limit(agent.base) if hasattr(agent, "base") else DEVICE_STACK
    return min(getattr(agent, "stack", DEVICE_STACK), inner)


def compute(task: Task, on_rounds: Callable[[int], None] | None = None) -> Outcome:
    """Roll one task out, timed; this thread does all of the computing."""
    cpu, wall = time.thread_time(), time.perf_counter()
    played = rollout(
        task.environment,
        task.agent,
        seed=task.seed,
        chunks=[chunk.index for chunk in task.chunks],
        counts=[chunk.count for chunk in task.chunks],
        device=task.device,
        trajectories=task.trajectories,
        on_rounds=on_rounds,
    )
    return Outcome(played, time.thread_time() - cpu, time.perf_counter() - wall)
