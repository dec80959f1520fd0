"""Agents in a service: what a round costs, with and without delay, what a user costs in memory, and many users.

    python -m benchmarks.online [--write]

Ten arms with 32 features, one thread; milliseconds are CPU time of `act` and `update` together, medians. LinUCB and
D-LinUCB are compared with the loop in NumPy that one would write oneself, on the same rounds, in turns. *On two cores*
are two processes at the same time, each with half of the users.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import driftformer as df
from benchmarks.compare import put

ARMS, DIM, DELAY = 10, 32, 50
Array = NDArray[np.float64]
Round = Callable[[Array, float], int]
"""Plays a round with these features and this reward."""


def linucb_in_numpy() -> Round:
    inverse, theta = np.eye(DIM), np.zeros(DIM)

    def play(features: Array, reward: float) -> int:
        direction = features @ inverse
        variance = (direction * features).sum(1)
        arm = int((features @ theta + np.sqrt(variance)).argmax())
        x, along, spread = features[arm], direction[arm], 1 + variance[arm]
        theta[:] += along * ((reward - x @ theta) / spread)
        inverse[:] -= np.outer(along, along) / spread
        return arm

    return play


def discounted_in_numpy(gamma: float = 0.95) -> Round:
    gram, squared, moment = np.eye(DIM), np.eye(DIM), np.zeros(DIM)
    diagonal = np.arange(DIM)

    def play(features: Array, reward: float) -> int:
        inverse = np.linalg.inv(gram)
        direction = features @ inverse
        width = ((direction @ squared) * direction).sum(1)
        arm = int((features @ (inverse @ moment) + np.sqrt(width)).argmax())
        outer = np.outer(features[arm], features[arm])
        for matrix, kept in ((gram, gamma), (squared, gamma**2)):
            matrix *= kept
            matrix += outer
            matrix[diagonal, diagonal] += 1 - kept
        moment[:] = gamma * moment + reward * features[arm]
        return arm

    return play


def at_work(name: str, call: str = "act", delay: int = 0) -> Round:
    """A service whose rewards come at once, or so many rounds late."""
    service = df.make_agent(name).online()
    ask = getattr(service, call)

    def play(features: Array, reward: float) -> int:
        said = ask(features)
        if service.round > delay:
            service.update(reward, round=service.round - delay)
        return int(getattr(said, "arm", said))

    return play


def milliseconds(players: dict[str, Round], rounds: int, block: int = 50) -> dict[str, float]:
    """The median of each, on the same rounds; they take turns, block by block, and the first two do not count."""
    rng = np.random.default_rng(0)
    spent: dict[str, list[float]] = {name: [] for name in players}
    for _ in range(2 + rounds // block):
        features, rewards = rng.uniform(-1, 1, (block, ARMS, DIM)), rng.normal(size=block).tolist()
        for name, play in players.items():
            for offered, reward in zip(features, rewards, strict=True):
                began = time.process_time()
                play(offered, reward)
                spent[name].append(1000 * (time.process_time() - began))
    return {name: median(values[2 * block :]) for name, values in spent.items()}


def costs(rounds: int) -> list[str]:
    linear = {
        "LinUCB, a loop in NumPy": linucb_in_numpy(),
        "linucb": at_work("linucb"),
        "linucb, `decide`": at_work("linucb", "decide"),
        "D-LinUCB, a loop in NumPy": discounted_in_numpy(),
        "discounted-linucb": at_work("discounted-linucb"),
        "discounted-linucb, `decide`": at_work("discounted-linucb", "decide"),
        "sliding-window-linucb": at_work("sliding-window-linucb"),
        "thompson": at_work("thompson"),
    }
    found = milliseconds(linear, rounds) | milliseconds({"thompson, `decide`": at_work("thompson", "decide")}, 100)
    wanted = {"linucb": "at most .1", "discounted-linucb": "at most .15"}
    lines = ["| one live problem | ms a round | wanted |", "|---|---:|---|"]
    return lines + [f"| {name} | {value:.3f} | {wanted.get(name, '')} |" for name, value in found.items()]


def delays() -> list[str]:
    lines = [f"| ms a round | rewards at once | {DELAY} rounds late | ratio | wanted |", "|---|---:|---:|---:|---|"]
    for name in ("policy:drift", "policy:cosine", "linucb", "discounted-linucb"):
        found = milliseconds({"prompt": at_work(name), "late": at_work(name, delay=DELAY)}, 50)
        prompt, late = found.values()
        lines.append(f"| {name} | {prompt:.3f} | {late:.3f} | {late / prompt:.2f} | at most 2 |")
    return lines


def memory(rounds: int = 20) -> list[str]:
    """What each of some users adds to the process, by what the kernel says."""
    lines = [f"| memory of a user after {rounds} rounds | MB | wanted |", "|---|---:|---|"]
    for name in ("policy:drift", "policy:cosine", "linucb", "discounted-linucb"):
        users = 100 if name.startswith("policy") else 2000
        service = df.make_agent(name).online(problems=2 * users)
        _play_all(service, range(users, users + 2), rounds)  # what is needed once
        before = _resident()
        _play_all(service, range(users), rounds)
        wanted = "at most 1" if name == "policy:drift" else ""
        lines.append(f"| {name} | {(_resident() - before) / users / 1e6:.2f} | {wanted} |")
    return lines


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def _play_all(service: Any, users: range, rounds: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        for user in users:
            service.act(rng.uniform(-1, 1, (1, ARMS, DIM)), users=[user])
            service.update([rng.normal()], users=[user])


def throughput(users: int = 1000) -> list[str]:
    lines = [
        f"| {users:,} users, rounds per CPU-second | all at once | 32 at a time | one at a time | 32, on two cores |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in ("policy:drift", "policy:cosine", "linucb", "discounted-linucb"):
        rates = [_rate(name, users, size) for size in (users, 32, 1)]
        with ProcessPoolExecutor(2, get_context("spawn")) as cores:
            rates.append(sum(cores.map(_rate, [name] * 2, [users // 2] * 2, [32] * 2)))
        lines.append(f"| {name} | {' | '.join(f'{rate:,.0f}' for rate in rates)} |")
    return lines


def _rate(name: str, users: int, size: int) -> float:
    """Rounds per CPU-second of a service asked about so many users at a time, on one thread, by the median call."""
    torch.set_num_threads(1)
    service, rng = df.make_agent(name).online(problems=users), np.random.default_rng(0)
    spent: list[float] = []
    first = 0
    while sum(spent) < 2.0 or len(spent) * size < 2 * users:
        who = [(first + place) % users for place in range(size)]
        first += size
        features, rewards = rng.uniform(-1, 1, (size, ARMS, DIM)), rng.normal(size=size)
        began = time.process_time()
        service.act(features, users=who)
        service.update(rewards, users=who)
        spent.append(time.process_time() - began)
    return size / median(spent)


def report(rounds: int) -> list[str]:
    torch.set_num_threads(1)
    versions = f"torch {torch.__version__}, numpy {np.__version__}"
    tables = [costs(rounds), delays(), memory(), throughput()]
    return [
        f"One thread, {ARMS} arms, {DIM} features, {versions}.",
        *(line for table in tables for line in ["", *table]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000, help="of each agent with a formula")
    parser.add_argument("--write", action="store_true", help="also put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    lines = report(options.rounds)
    print("\n".join(lines))
    if options.write:
        put("online", lines)


if __name__ == "__main__":
    main()
