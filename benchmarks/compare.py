"""`make bench`: ours and others on the same problem, one thread, CPU-seconds, ratios last.

Contenders take turns, so that a slow minute of the machine hits all of them; each figure is the median of its turns,
each ratio the median of the ratios of single turns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

import driftformer as df
from benchmarks import peers
from benchmarks.fixed_features import FixedFeatures
from benchmarks.memory import peak_memory
from driftformer.agents.base import Agent
from driftformer.environments.base import Environment
from driftformer.environments.presets import Stationary
from driftformer.evaluation.evaluate import STACK
from driftformer.randomness import CHUNK, Randomness

HORIZON = 1000
GIVEN_SETS = 50
PAGE = Path(__file__).parent.parent / "docs/benchmarks.md"


def cpu_seconds(play: Callable[[], object]) -> float:
    start = time.process_time()
    play()
    return time.process_time() - start


def ours(environment: Environment, agent: Agent, chunks: int = STACK) -> Callable[[], float]:
    """Rounds per CPU-second of a whole rollout, at the default batch size if none is given."""

    def measure() -> float:
        seconds = cpu_seconds(lambda: df.rollout(environment, agent, chunks=range(chunks)))
        return chunks * CHUNK * environment.horizon / seconds

    return measure


def others(play: Callable[[int], float], rounds: int) -> Callable[[], float]:
    return lambda: rounds / cpu_seconds(lambda: play(rounds))


def contenders() -> dict[str, Callable[[], float]]:
    bandit = df.make_env("stationary", horizon=HORIZON, arm_mode="resampled")
    still = Stationary(horizon=HORIZON).build()
    draws = Randomness(1, range(STACK)).stream("features")
    given = FixedFeatures(still, tuple(draws.symmetric(bandit.arms, bandit.dim) for _ in range(GIVEN_SETS)))
    rounds = list(peers.draw_features(np.random.default_rng(1), 8000))
    return {
        "driftformer linucb": ours(bandit, df.make_agent("linucb")),
        "driftformer thompson": ours(bandit, df.make_agent("thompson")),
        "driftformer random": ours(bandit, df.make_agent("random")),
        "NumPy loop": others(peers.numpy_loop, 8000),
        "coba": others(peers.coba, 400),
        "MABWiser": others(peers.mabwiser, 400),
        "driftformer linucb, features given": ours(given, df.make_agent("linucb")),
        "NumPy loop, features given": others(lambda n: peers.numpy_loop(n, rounds), 8000),
        **{f"{name}, 256 problems": ours(bandit, df.make_agent(name), chunks=4) for name in FORGETTING},
    }


FORGETTING = ("linucb", "master-linucb", "weighted-linucb", "sliding-window-linucb", "discounted-linucb")

RATIOS = (
    ("driftformer linucb", "NumPy loop", "at least 8"),
    ("driftformer linucb", "coba", "at least 150"),
    ("driftformer linucb", "MABWiser", ""),
    ("driftformer linucb, features given", "NumPy loop, features given", "at least 10"),
    ("driftformer linucb", "driftformer thompson", "at most 3"),
    ("master-linucb, 256 problems", "linucb, 256 problems", "at least 1/3"),
    ("weighted-linucb, 256 problems", "linucb, 256 problems", "at least 1/4"),
    ("sliding-window-linucb, 256 problems", "linucb, 256 problems", "at least 1/4"),
    ("discounted-linucb, 256 problems", "linucb, 256 problems", "at least 1/8"),
)


def report(turns: int) -> list[str]:
    """The measured part of docs/benchmarks.md."""
    torch.set_num_threads(1)
    players = contenders()
    speeds: dict[str, list[float]] = {name: [] for name in players}
    for turn in range(turns):
        for name, measure in players.items():
            print(f"turn {turn + 1} of {turns}: {name} …", file=sys.stderr)
            speeds[name].append(measure())
    lines = ["| who | rounds per CPU-second |", "|---|---:|"]
    lines += [f"| {name} | {statistics.median(values):,.0f} |" for name, values in speeds.items()]
    lines += ["", "| peak memory of a process, LinUCB | T=100 | T=1,000 |", "|---|---:|---:|"]
    for problems in (64, 512, 2048, 4096):
        short, long = peak_memory(problems, 100), peak_memory(problems, 1000)
        lines.append(f"| {problems:,} problems | {short:,.0f} MiB | {long:,.0f} MiB |")
    lines += ["", "| ratio | measured | wanted |", "|---|---:|---:|"]
    for fast, slow, wanted in RATIOS:
        ratio = statistics.median(a / b for a, b in zip(speeds[fast], speeds[slow], strict=True))
        lines.append(f"| {fast} / {slow} | {ratio:.3g} | {wanted} |")
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "numpy", "coba", "mabwiser"))
    return [f"One thread, {turns} turns, {versions}.", "", *lines]


def put(place: str, lines: list[str], page: Path = PAGE) -> None:
    """Replace what stands between two marks in a page of the docs."""
    begin, end = f"<!-- {place}: begin -->", f"<!-- {place}: end -->"
    before, _, rest = page.read_text().partition(begin)
    page.write_text("\n".join([before + begin, *lines, end]) + rest.partition(end)[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="also put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    lines = report(options.turns)
    print("\n".join(lines))
    if options.write:
        put("measured", lines)


if __name__ == "__main__":
    main()
