"""Speed of agents for MDPs beside rlberry and plain NumPy loops: S=10, A=2, H=5, one thread, ratios last.

    python -m benchmarks.mdp --rlberry PYTHON

rlberry (pip install rlberry rlberry-scool) brings some eighty packages, so it is best installed apart: PYTHON is the
interpreter that has it. Without it, it is left out. Contenders take turns, as in `benchmarks.compare`. Ours are whole
rollouts of 640 problems, environment and regret included; the loops play one problem in the same way.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import torch

import driftformer as df
from benchmarks import mdp_loops
from benchmarks.compare import others, ours, put
from driftformer.agents.registry import make_agent
from driftformer.environments.base import Environment

EPISODES = 300
RATIOS = (
    ("ucb-vi", "rlberry UCBVI", "at least 20"),
    ("ucb-vi", "NumPy UCB-VI", ""),
    ("q-ucb", "NumPy Q-UCB", "at least 10"),
    ("master-ucb-vi", "ucb-vi", "at least .33"),
)
AGENTS = (
    "random",
    "ucb-vi",
    "ucb-vi@bonus=bernstein",
    "q-ucb",
    "restart-q-ucb",
    "double-restart-q-ucb",
    "q-learning",
    "sliding-window-ucb-vi",
    "psrl",
    "master-ucb-vi",
    "master-q-ucb",
)


def environment() -> Environment:
    sizes = {"stages": mdp_loops.STAGES, "states": mdp_loops.STATES, "actions": mdp_loops.ARMS}
    return df.make_env("random-mdp", episodes=EPISODES, change="stationary", stages_differ=True, **sizes)


def looped(play: Callable[[int], float], episodes: int) -> Callable[[], float]:
    """Steps per CPU-second of a loop over episodes."""
    return others(lambda steps: play(steps // mdp_loops.STAGES), episodes * mdp_loops.STAGES)


def apart(python: Path) -> tuple[float, str]:
    """rlberry's steps per CPU-second, and its version, from the interpreter that has it."""
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(python), str(Path(mdp_loops.__file__)), "2000"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=alone).stdout.split()
    return float(said[-3]), f"rlberry {said[-2]}, rlberry-scool {said[-1]}"


def report(turns: int, rlberry: Path | None) -> list[str]:
    """The table, and the ratios."""
    torch.set_num_threads(1)
    players = {name: ours(environment(), make_agent(name)) for name in AGENTS}
    players["NumPy Q-UCB"] = looped(mdp_loops.q_ucb_loop, 5000)
    players["NumPy UCB-VI"] = looped(mdp_loops.ucb_vi_loop, 2000)
    if rlberry is not None:
        players["rlberry UCBVI"] = lambda: apart(rlberry)[0]
    speeds: dict[str, list[float]] = {name: [] for name in players}
    for turn in range(turns):
        for name, measure in players.items():
            print(f"turn {turn + 1} of {turns}: {name} …", file=sys.stderr)
            speeds[name].append(measure())
    versions = [f"{name} {version(name)}" for name in ("torch", "numpy")] + ([apart(rlberry)[1]] if rlberry else [])
    lines = [f"One thread, {turns} turns, {', '.join(versions)}.", "", "| who | steps per CPU-second |", "|---|---:|"]
    lines += [f"| {name} | {statistics.median(values):,.0f} |" for name, values in speeds.items()]
    lines += ["", "| ratio | measured | wanted |", "|---|---:|---:|"]
    for fast, slow, wanted in RATIOS:
        if slow in speeds:
            ratio = statistics.median(a / b for a, b in zip(speeds[fast], speeds[slow], strict=True))
            lines.append(f"| {fast} / {slow} | {ratio:.3g} | {wanted} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rlberry", type=Path, help="a Python that has rlberry and rlberry-scool")
    parser.add_argument("--write", action="store_true", help="also put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    lines = report(options.turns, options.rlberry)
    print("\n".join(lines))
    if options.write:
        put("mdp", lines)


if __name__ == "__main__":
    main()
