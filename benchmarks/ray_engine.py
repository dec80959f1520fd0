"""Chunks on a local Ray cluster: kills that change nothing, what Ray costs against a process pool, what travels.

    python -m benchmarks.ray_engine [--write] [--chunks 2000] [--every 3] [--jobs 60] [--turns 2]

Kills: an evaluation in single chunks on two workers, one of which is killed (SIGKILL) every few seconds, against the
same in this process; every stored file is compared. Cost: jobs of about one second on two workers of each kind, both
warmed up; they take turns. CPU time is that of this process and all below it, so Ray's own processes count.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psutil
import torch

import driftformer as df
from benchmarks.compare import put
from driftformer.evaluation import evaluate as chunking
from driftformer.evaluation.evaluate import Task, compute
from driftformer.randomness import CHUNK, Chunk
from driftformer.simulation.engines import Engine
from driftformer.simulation.ray_engine import RayEngine
from driftformer.storage.events import read_events

WORKERS = 2


class Killer(threading.Thread):
    """Kills one of this process's Ray workers that are computing, again and again."""

    def __init__(self, every: float) -> None:
        super().__init__(daemon=True)
        self._every, self._over, self._rng = every, threading.Event(), random.Random(0)
        self.kills = 0

    def run(self) -> None:
        while not self._over.wait(self._every):
            if busy := [child for child in psutil.Process().children(recursive=True) if _is_busy(child)]:
                with suppress(psutil.NoSuchProcess):
                    self._rng.choice(busy).send_signal(signal.SIGKILL)
                    self.kills += 1

    def stop(self) -> None:
        self._over.set()
        self.join()


def _is_busy(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return "ray::_Worker.work" in " ".join(process.cmdline())
    return False


def kills(chunks: int, every: float) -> list[str]:
    """An evaluation under fire against an undisturbed one."""
    environment = df.make_env("high", horizon=50)
    before, chunking.STACK = chunking.STACK, 1  # each chunk is a job
    with tempfile.TemporaryDirectory() as folder:

        def play(name: str, engine: str | Engine) -> dict[str, bytes]:
            out = Path(folder) / name
            df.evaluate(environment, ["linucb"], runs=chunks * CHUNK, seed=0, out=out, engine=engine)
            found = {str(path.relative_to(out)): path for path in out.rglob("*") if path.is_file()}
            return {key: path.read_bytes() for key, path in found.items() if key not in ("timing.json", "events.jsonl")}

        engine, killer = RayEngine(WORKERS), Killer(every)
        began = time.perf_counter()
        killer.start()
        disturbed = play("ray", engine)
        seconds = time.perf_counter() - began
        killer.stop()
        engine.close()
        events = [event["kind"] for event in read_events(Path(folder) / "ray")]
        undisturbed = play("here", "local")
    chunking.STACK = before
    same = disturbed == undisturbed
    return [
        "| chunks | seconds | workers killed | jobs lost with them | retries | files compared | identical |",
        "|---:|---:|---:|---:|---:|---:|---|",
        f"| {chunks:,} | {seconds:.0f} | {killer.kills} | {events.count('worker-lost')} | {events.count('retry')} | "
        f"{len(undisturbed):,} | {'yes, every byte' if same else 'NO'} |",
    ]


def one_second_tasks(jobs: int) -> list[Task]:
    """Chunks of LinUCB that take about a second each."""
    linucb = df.make_agent("linucb")
    probe = Task(df.make_env("high", horizon=1000), "linucb", linucb, (Chunk(0),), 0, "cpu", False)
    per_round = min(compute(probe).cpu_seconds for _ in range(3)) / 1000
    environment = df.make_env("high", horizon=int(1 / per_round))
    return [Task(environment, "linucb", linucb, (Chunk(index),), 0, "cpu", False) for index in range(jobs)]


def cpu_of_all() -> float:
    """CPU-seconds of this process and all that live below it."""
    total = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with suppress(psutil.Error):
            spent = process.cpu_times()
            total += spent.user + spent.system
    return total


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), cpu_of_all()
    work()
    return time.perf_counter() - wall, cpu_of_all() - cpu


def quiet(*_: Any, **__: Any) -> None: ...


def whose(task: Task, on_rounds: Callable[[int], None] | None = None) -> int:
    """The process that plays a task."""
    compute(task)
    return os.getpid()


def warm_up(play: Callable[[list[Task]], Iterable[int]], workers: int = WORKERS) -> None:
    """Small tasks until each worker has played one: none is still starting when the clock does."""
    task = Task(df.make_env("high", horizon=100), "linucb", df.make_agent("linucb"), (Chunk(0),), 0, "cpu", False)
    seen: set[int] = set()
    while len(seen) < workers:
        seen |= set(play([task] * 4 * workers))


def pool_spends(tasks: list[Task], workers: int = WORKERS) -> tuple[float, float]:
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        warm_up(lambda some: pool.map(whose, some), workers)
        return timed(lambda: list(pool.map(compute, tasks)))


def start_up(workers: int = WORKERS) -> float:
    """Seconds until every process of a pool has played something."""
    began = time.perf_counter()
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        warm_up(lambda some: pool.map(whose, some), workers)
        return time.perf_counter() - began


def ray_spends(tasks: list[Task]) -> tuple[float, float]:
    engine = RayEngine(WORKERS)
    try:
        warm_up(lambda some: [pid for _, pid in engine.run(whose, some, quiet, quiet)])
        return timed(lambda: list(engine.run(compute, tasks, quiet, quiet)))
    finally:
        engine.close()


def cost(jobs: int, turns: int) -> list[str]:
    """A warm process pool and a warm cluster on the same jobs, in turns; who begins changes from turn to turn."""
    tasks = one_second_tasks(jobs)
    spent: dict[str, list[tuple[float, float]]] = {"process pool": [], "Ray": []}
    for turn in range(turns):
        contenders = [("process pool", pool_spends), ("Ray", ray_spends)]
        for name, spends in contenders if turn % 2 == 0 else contenders[::-1]:
            spent[name].append(spends(tasks))
    lines = [
        f"{jobs} chunks of about one second (T={tasks[0].environment.horizon:,}), {WORKERS} workers, start-up aside:",
        "",
        "| turn | pool, wall s | Ray, wall s | ratio | pool, CPU s | Ray, CPU s | ratio |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    ratios = []
    for turn, (pool_spent, ray_spent) in enumerate(zip(*spent.values(), strict=True), 1):
        ratios.append((ray_spent[0] / pool_spent[0], ray_spent[1] / pool_spent[1]))
        lines.append(
            f"| {turn} | {pool_spent[0]:.1f} | {ray_spent[0]:.1f} | {ratios[-1][0]:.3f} | {pool_spent[1]:.1f} | "
            f"{ray_spent[1]:.1f} | {ratios[-1][1]:.3f} |"
        )
    wall, cpu = (statistics.median(values) for values in zip(*ratios, strict=True))
    return [
        *lines,
        "",
        f"Ray / process pool, median: {wall:.3f} in wall time (wanted: under 1.10), {cpu:.3f} in CPU time.",
    ]


def sizes() -> list[str]:
    """Bytes of what travels, pickled as Ray does."""
    from ray import cloudpickle

    lines = ["| message | task, bytes | outcome of one chunk, bytes |", "|---|---:|---:|"]
    for name, horizon in (("linucb", 200), ("linucb", 1000), ("master-linucb", 1000), ("policy:high", 200)):
        environment, agent = df.make_env("high", horizon=horizon), df.make_agent(name)
        task = Task(environment, name, agent, (Chunk(0),), 0, "cpu", False)
        sent, back = (len(cloudpickle.dumps(one)) for one in (task, compute(task)))  # type: ignore[no-untyped-call]
        lines.append(f"| {name}, T={horizon:,} | {sent:,} | {back:,} |")
    return lines


def report(options: argparse.Namespace) -> list[str]:
    torch.set_num_threads(1)
    versions = f"ray {version('ray')}, torch {torch.__version__}"
    return [
        f"{versions}, {WORKERS} workers on one machine; a worker was killed every {options.every:g} seconds.",
        "",
        *kills(options.chunks, options.every),
        "",
        *cost(options.jobs, options.turns),
        "",
        *sizes(),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=2000)
    parser.add_argument("--every", type=float, default=3.0, help="seconds between two kills of a worker that computes")
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="also put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    lines = report(options)
    print("\n".join(lines))
    if options.write:
        put("ray", lines)


if __name__ == "__main__":
    main()
