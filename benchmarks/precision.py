"""Does float32 change the regret? The same problems in both precisions, fixed arms, the hard case."""

from __future__ import annotations

import argparse

import numpy as np
import torch

import driftformer as df
from benchmarks.compare import put
from driftformer.environments.base import Environment
from driftformer.simulation.rollout import Array


def regrets(environment: Environment, agent: str, dtype: torch.dtype) -> Array:
    played = df.rollout(environment, df.make_agent(agent), chunks=range(2), dtype=dtype)
    return np.concatenate([chunk.regret for chunk in played.regrets])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="also put the table into docs/benchmarks.md")
    options = parser.parse_args()
    lines = ["| 128 problems, d=32, ten fixed arms | float32 | float64 | mean difference |", "|---|---:|---:|---:|"]
    for horizon in (1000, 20_000):
        environment = df.make_env("stationary", horizon=horizon)
        for agent in ("linucb", "thompson"):
            single, double = (regrets(environment, agent, dtype) for dtype in (torch.float32, torch.float64))
            difference = single - double
            error = difference.std(ddof=1) / np.sqrt(len(difference))
            lines.append(
                f"| {agent}, T={horizon:,} | {single.mean():,.1f} | {double.mean():,.1f} "
                f"| {difference.mean():+.2f} ± {error:.2f} |"
            )
    print("\n".join(lines))
    if options.write:
        put("precision", lines)


if __name__ == "__main__":
    main()
