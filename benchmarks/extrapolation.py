"""From what one machine does to what many would: two models, each a sum of what cannot be shared out.

    python -m benchmarks.extrapolation [--write]

A sweep: workers start, then each computes its share of the jobs one after the other, while one process takes and stores
every result. A training step: every GPU computes its share of the batch, then all exchange their gradients in a ring,
none of it hidden behind the computing.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch

import driftformer as df
from benchmarks.compare import PAGE, put
from benchmarks.ray_engine import start_up
from benchmarks.scaling import gradient_bytes, seconds_to_store
from driftformer.evaluation.evaluate import Task, compute
from driftformer.randomness import Chunk

WORKERS = (1, 2, 64, 512, 4096)
GPUS = (1, 2, 4, 8)
STEP = 102_400 / 5.05e6
"""Seconds of a step of `cosine` on labels on one H200, from its training log: tokens over tokens a second."""
_ROUNDS = 1_000
LINKS = {"NVLink": 400e9, "100 Gb Ethernet": 12e9}
"""Bytes a second between two GPUs: the order of magnitude they are rated at, not measured here."""


@dataclass(frozen=True)
class Sweep:
    """Many jobs of the same size."""

    title: str
    jobs: int
    job_seconds: float
    stored: int
    """Files that a job's results become."""

    def seconds(self, workers: int, start: float, store: float) -> float:
        computing = math.ceil(self.jobs / workers) * self.job_seconds
        return start + max(computing, self.jobs * self.stored * store)


def sweep_table(sweeps: list[Sweep], start: float, store: float) -> list[str]:
    """Times and speed-ups by the number of workers."""
    heads = " | ".join(f"{sweep.title} | " for sweep in sweeps)
    lines = [f"| workers | {heads} |", "|---:|" + "---:|---:|" * len(sweeps)]
    for workers in WORKERS:
        cells = []
        for sweep in sweeps:
            seconds = sweep.seconds(workers, start, store)
            cells += [_time(seconds), f"{sweep.seconds(1, start, store) / seconds:,.0f} ×"]
        lines.append(f"| {workers:,} | " + " | ".join(cells) + " |")
    return lines


def step_seconds(gpus: int, alone: float, gradient: float, link: float) -> float:
    """Of a step whose batch is shared out; `alone` is what one GPU takes for it, `gradient` is in bytes."""
    return alone / gpus + 2 * (gpus - 1) / gpus * gradient / link


def training_table(alone: float, gradient: float) -> list[str]:
    """Speed-ups with the same batch (strong) and with a batch that grows with the GPUs (weak)."""
    heads = [f"{link}, {kind}" for link in LINKS for kind in ("the same batch", "a batch for each")]
    lines = ["| GPUs | " + " | ".join(heads) + " |", "|---:|" + "---:|" * len(heads)]
    for gpus in GPUS:
        cells = []
        for link in LINKS.values():
            strong = alone / step_seconds(gpus, alone, gradient, link)
            weak = gpus * alone / step_seconds(gpus, gpus * alone, gradient, link)
            cells += [f"{strong:.1f} ×", f"{weak:.1f} ×"]
        lines.append(f"| {gpus} | " + " | ".join(cells) + " |")
    return lines


def _time(seconds: float) -> str:
    if seconds >= 3600:
        return f"{seconds / 3600:,.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.0f} s"


def seconds_of_job(agent: str, chunks: int) -> float:
    """CPU-seconds of some chunks, as one batch."""
    made = tuple(Chunk(index) for index in range(chunks))
    task = Task(df.make_env("high", horizon=_ROUNDS), agent, df.make_agent(agent), made, 0, "cpu", False)
    return compute(task).cpu_seconds


def report() -> list[str]:
    torch.set_num_threads(1)
    start = start_up()
    with tempfile.TemporaryDirectory() as folder:
        store = seconds_to_store(Path(folder), _ROUNDS)
    sweeps = []
    for agent, chunks in (("linucb", 8), ("policy:drift", 1)):  # 1,000 problems are 16 chunks: two jobs, or sixteen
        sweeps.append(Sweep(agent, 5_000 * 16 // chunks, seconds_of_job(agent, chunks), chunks))
    jobs = ", ".join(f"{sweep.jobs:,} of {sweep.job_seconds:.1f} s with {sweep.title}" for sweep in sweeps)
    gradient = gradient_bytes("cosine")
    return [
        f"A grid of 1,000 environments × 5 agents × 1,000 runs of 1,000 rounds as jobs: {jobs}; {start:.1f} s until "
        f"workers have started, {1e3 * store:.1f} ms to store a chunk:",
        "",
        *sweep_table(sweeps, start, store),
        "",
        f"Training on labels, {1e3 * STEP:.0f} ms for a step on one GPU, {gradient / 1e6:.0f} MB of gradients:",
        "",
        *training_table(STEP, gradient),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/scaling.md")
    options = parser.parse_args()
    lines = report()
    print("\n".join(lines))
    if options.write:
        put("extrapolation", lines, PAGE.with_name("scaling.md"))


if __name__ == "__main__":
    main()
