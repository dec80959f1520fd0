"""How fast this machine simulates: rounds per second of whole rollouts, environment included."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from driftformer.agents.base import Agent
from driftformer.agents.registry import make_agent
from driftformer.environments.base import Environment
from driftformer.environments.linear import ArmMode
from driftformer.environments.registry import make_env
from driftformer.errors import InputError, require_count
from driftformer.randomness import CHUNK
from driftformer.simulation.rollout import check_device, rollout


def rounds_per_second(environment: Environment, agent: Agent, chunks: int, device: str = "cpu") -> float:
    """Rounds per CPU-second of one thread; on an accelerator, per second on the clock, first use not counted."""
    on_cpu = device == "cpu"
    if not on_cpu:
        rollout(environment, agent, chunks=range(chunks), device=device)
        torch.cuda.synchronize()
    clock = time.thread_time if on_cpu else time.perf_counter
    start = clock()
    rollout(environment, agent, chunks=range(chunks), device=device)  # ends with its results on the host
    return chunks * CHUNK * environment.horizon / (clock() - start)


def measure(
    agents: Sequence[str], problems: Sequence[int], horizon: int, arm_mode: ArmMode, device: str = "cpu"
) -> dict[str, dict[int, float]]:
    """Rounds per second of each agent at each batch size."""
    for field, given in (("agents", agents), ("problems", problems)):
        if not given:
            raise InputError(f"{field} is empty; name at least one")
    for size in problems:
        require_count("problems", size, CHUNK)
        if size % CHUNK:
            raise InputError(f"problems is {size}; give multiples of {CHUNK}, the size of a chunk")
    check_device(device)
    environment = make_env("stationary", horizon=horizon, arm_mode=arm_mode)
    players = {name: make_agent(name) for name in agents}
    return {
        name: {size: rounds_per_second(environment, agent, size // CHUNK, device) for size in problems}
        for name, agent in players.items()
    }
