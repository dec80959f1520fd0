"""What a GPU gives: its speed by batch size, its regret beside the CPU's, and whether a chunk's bits stay its own.

python -m benchmarks.gpu
"""

from __future__ import annotations

import numpy as np
import torch

import driftformer as df
from driftformer.agents.registry import AGENTS
from driftformer.simulation.numbers import with_error
from driftformer.simulation.throughput import measure

COMPARED = ("random", "linucb", "thompson", "oracle", "master-linucb")
TIMED = ("random", "linucb", "thompson", "master-linucb", "sliding-window-linucb", "weighted-linucb")


def same_bits(agent: str, dim: int, arms: int) -> list[int]:
    """The stack sizes in which chunk 0 gives other numbers than alone."""
    environment = df.make_env("jumps", dim=dim, arms=arms, arm_mode="resampled", horizon=60)
    player = df.make_agent(agent)
    (alone,) = df.rollout(environment, player, chunks=[0], device="cuda").regrets
    stacks = (2, 3, 16, 100)
    stacked = {size: df.rollout(environment, player, chunks=range(size), device="cuda").regrets[0] for size in stacks}
    return [size for size, chunk in stacked.items() if not np.array_equal(chunk.regret, alone.regret)]


def main() -> None:
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    for agent in AGENTS:
        for dim, arms in ((32, 10), (33, 3)):
            print(f"{agent}, d={dim}, {arms} arms: other bits in stacks of {same_bits(agent, dim, arms) or 'none'}")
    for mode in ("fixed", "resampled"):
        environment = df.make_env("high", arm_mode=mode)
        for device in ("cpu", "cuda"):
            result = df.evaluate(environment, COMPARED, runs=2000, device=device)
            rows = result.summary.agents.items()
            print(device, mode, {name: with_error(row.regret_mean, row.regret_stderr) for name, row in rows})
    sizes = (64, 1024, 4096, 16384)
    for agent, speeds in measure(TIMED, sizes, 1000, "resampled", "cuda").items():
        print(agent, {f"{size:,} problems": f"{speed:,.0f} rounds/s" for size, speed in speeds.items()})


if __name__ == "__main__":
    main()
