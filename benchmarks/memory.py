"""Peak memory of a process that does one rollout of LinUCB."""

from __future__ import annotations

import subprocess
import sys

# VmHWM, not getrusage: the latter's peak is inherited from the process that started this one.
_ROLLOUT = """
import re, sys
from pathlib import Path
import driftformer as df
chunks, horizon, dim, arms = map(int, sys.argv[1:])
environment = df.make_env("stationary", horizon=horizon, dim=dim, arms=arms, arm_mode="resampled")
df.rollout(environment, df.make_agent("linucb"), chunks=range(chunks))
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


def peak_memory(problems: int, horizon: int, dim: int = 32, arms: int = 10) -> float:
    """MiB, on Linux."""
    sizes = (problems // 64, horizon, dim, arms)
    command = [sys.executable, "-c", _ROLLOUT, *map(str, sizes)]
    return float(subprocess.run(command, capture_output=True, check=True).stdout) / 1024
