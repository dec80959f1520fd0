"""One process and two, here: the same losses, and how much faster; with that, what many would cost.

    python -m benchmarks.scaling [--write]

Losses: the recipe `tiny`, 150 steps on labels and 50 on regret, in float32, at a low rate (at the recipe's own rate
training magnifies the last bit a hundred thousand times in 200 steps). Speed: chunks of LinUCB of about a second each,
and training steps, on processes of one thread that have started; strong scaling shares the same work out, weak scaling
gives each process as much as one had alone.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

import driftformer as df
from benchmarks.compare import PAGE, put
from benchmarks.ray_engine import one_second_tasks, pool_spends, start_up
from driftformer.evaluation.evaluate import Task, compute
from driftformer.models.checkpoints import new_policy
from driftformer.pretraining.recipes import RECIPES
from driftformer.pretraining.run import policy_config
from driftformer.randomness import Chunk
from driftformer.simulation.results import ResultsFolder

_LOW_RATE = ["--steps", "150", "--tuning-steps", "50", "--rate", "1e-4", "--tuning-rate", "2e-5"]
_ON_LABELS = ["--steps", "200", "--tuning-steps", "0", "--own", "0", "--width", "64", "--layers", "4"]
_TOKENS, _JOBS = 15_360, 16


def train_on(processes: int, options: list[str], out: Path) -> list[dict[str, float]]:
    """A training of `tiny` on some processes of one thread each; the lines of its log."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    command = [*launch, "-m", "driftformer", "pretrain", "tiny", *options, "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def largest_difference(folder: Path) -> float:
    """Of the losses of two processes to those of one, relative, over all steps."""
    one, two = (train_on(count, _LOW_RATE, folder / f"same-{count}") for count in (1, 2))
    return max(abs(a["loss"] - b["loss"]) / abs(a["loss"]) for a, b in zip(one, two, strict=True))


def tokens_per_second(folder: Path, processes: int, tokens: int, turn: int) -> float:
    """Of training on labels, starting aside."""
    out = folder / f"speed-{processes}-{tokens}-{turn}"
    train_on(processes, [*_ON_LABELS, "--tokens", str(tokens), "--evaluate-every", "1000"], out)
    progress = json.loads((out / "best" / "training.json").read_text())["progress"]
    return float(progress["tokens"] / progress["seconds"])


def rounds_per_second(tasks: list[Task], workers: int, jobs: int, turn: int) -> float:
    """Of LinUCB in the paper's High, the start of the workers aside."""
    seconds, _ = pool_spends(tasks[:jobs], workers)
    return sum(task.rounds for task in tasks[:jobs]) / seconds


def in_turn(speed: Callable[[int, int, int], float], work: int, turns: int) -> list[float]:
    """Median speeds of one process, of two with the same work (strong) and of two with twice the work (weak)."""
    settings = [(1, work), (2, work), (2, 2 * work)]
    taken = [[speed(processes, amount, turn) for processes, amount in settings] for turn in range(turns)]
    return [statistics.median(speeds) for speeds in zip(*taken, strict=True)]


def seconds_to_store(folder: Path, horizon: int = 200, chunks: int = 300) -> float:
    """What the one process that writes spends on a chunk's result: checksum, write, two flushes, rename."""
    environment = df.make_env("high", horizon=horizon)
    task = Task(environment, "linucb", df.make_agent("linucb"), (Chunk(0),), 0, "cpu", False)
    (regret,) = compute(task, lambda rounds: None).rollout.regrets
    config = {"environment": environment.config(), "seed": 0, "device": "cpu"}
    results = ResultsFolder(folder / "stored", config, horizon)
    results.claim()
    began = time.perf_counter()
    for index in range(chunks):
        results.save("linucb", Chunk(index), regret, None)
    return (time.perf_counter() - began) / chunks


def gradient_bytes(name: str) -> int:
    """What processes exchange in a step: a float32 number for each weight."""
    policy = new_policy(policy_config(RECIPES[name]))
    return 4 * sum(parameter.numel() for parameter in policy.parameters() if parameter.requires_grad)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/scaling.md")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        difference = largest_difference(Path(folder))
        lines = [
            f"Losses of two processes and of one, 200 steps in float32: at most {difference:.1e} apart, relatively "
            "(wanted: 1e-5).",
            "",
            f"| median of {options.turns} | one process | two, the same work | | two, twice the work | |",
            "|---|---:|---:|---:|---:|---:|",
        ]
        evaluation = functools.partial(rounds_per_second, one_second_tasks(2 * _JOBS))
        training = functools.partial(tokens_per_second, Path(folder))
        speeds = {
            "evaluation, rounds/s": in_turn(evaluation, _JOBS, options.turns),
            "training, tokens/s": in_turn(training, _TOKENS, options.turns),
        }
        for what, (one, strong, weak) in speeds.items():
            lines.append(
                f"| {what} | {one:,.0f} | {strong:,.0f} | {strong / one:.2f} × | {weak:,.0f} | {weak / one:.2f} × |"
            )
        stored = seconds_to_store(Path(folder))
    lines += ["", f"To start two workers takes {start_up():.1f} s."]
    lines += ["", f"To store the result of one chunk (T=200) takes the process that writes {1e3 * stored:.1f} ms."]
    lines += ["", "| policy | gradient of a step, MB |", "|---|---:|"]
    lines += [f"| {name} | {gradient_bytes(name) / 1e6:.1f} |" for name in ("high", "low", "cosine", "drift")]
    print("\n".join(lines))
    if options.write:
        put("scaling", lines, PAGE.with_name("scaling.md"))


if __name__ == "__main__":
    main()
