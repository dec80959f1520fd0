"""How fast this machine simulates: rounds per second of whole rollouts, environment included."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
from rich.table import Table

from driftformer.agents.base import Agent
from driftformer.agents.registry import make_agent
from driftformer.environments.base import Environment
from driftformer.environments.presets import make_env
from driftformer.errors import InputError, require_count
from driftformer.randomness import CHUNK
from driftformer.simulation.rollout import rollout


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


def measure(agents: Sequence[str], problems: Sequence[int], horizon: int, arm_mode: str, device: str = "cpu") -> Table:
    """A table of agents against batch sizes."""
    for size in problems:
        require_count("problems", size, CHUNK)
        if size % CHUNK:
            raise InputError(f"problems is {size}; give multiples of {CHUNK}, the size of a chunk")
    environment = make_env("stationary", horizon=horizon, arm_mode=arm_mode)
    unit = "CPU-second" if device == "cpu" else "second"
    title = f"Rounds per {unit} by batch size ({device}, d={environment.dim}, {environment.arms} {arm_mode} arms)"
    table = Table("agent", *(f"{size:,}" for size in problems), title=title)
    for name in agents:
        agent = make_agent(name)
        speeds = [rounds_per_second(environment, agent, size // CHUNK, device) for size in problems]
        table.add_row(name, *(f"{speed:,.0f}" for speed in speeds))
    return table
