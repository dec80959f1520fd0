"""Playing and collecting: what a cached policy costs against re-reading its whole history, and what collection costs.

    python -m benchmarks.policies [--write]

Playing: 200 problems of 200 rounds, against one problem at a time whose whole history is read again in every round, as
is often done; the same weights, one thread, CPU-seconds per trajectory. Collecting: LinUCB's
trajectories, labelled and written to disk, against the bare simulator with LinUCB.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import driftformer as df
from benchmarks.compare import cpu_seconds, ours, put
from driftformer.agents.incontext import InContext
from driftformer.models.query import QueryPolicy
from driftformer.models.tabular import TabularPolicy
from driftformer.policies import shipped
from driftformer.pretraining.dataset import collect_dataset
from driftformer.pretraining.play import play
from driftformer.pretraining.query import QueryPlayer
from driftformer.randomness import Randomness
from driftformer.simulation.tape import lay_out

HORIZON, RUNS = 200, 200


def cached(agent: InContext) -> float:
    """CPU-seconds per trajectory of all problems in one batch, the policy and its rewards alone."""
    policy = agent.network(torch.device("cpu"))
    assert not isinstance(policy, TabularPolicy), "High is a bandit"
    problems = lay_out(df.make_env("high", horizon=HORIZON), Randomness(0, size=RUNS))
    greedy, free = torch.zeros_like(problems.values), torch.full((RUNS, HORIZON), -1.0)

    def all_rounds() -> None:
        with torch.inference_mode():
            if isinstance(policy, QueryPolicy):
                QueryPlayer(policy).play(problems, greedy)
            else:
                play(policy, problems, greedy, free)

    return cpu_seconds(all_rounds) / RUNS


def evaluated(agent: InContext) -> float:
    """The same through `evaluate`: in chunks of 64, the last one whole, with environment and statistics."""
    environment = df.make_env("high", horizon=HORIZON)
    return cpu_seconds(lambda: df.evaluate(environment, [agent], runs=RUNS, progress=False)) / RUNS


def uncached(agent: InContext) -> float:
    """CPU-seconds of one trajectory, the policy alone."""
    model = agent.model(torch.device("cpu"))
    problems = lay_out(df.make_env("high", horizon=HORIZON), Randomness(0, size=1))
    arms, rewards = torch.zeros(1, HORIZON, dtype=torch.long), torch.zeros(1, HORIZON)

    def all_rounds() -> None:
        with torch.inference_mode():
            for t in range(HORIZON):
                seen = slice(0, t + 1)
                arms[:, t] = model(problems.features[:, seen], arms[:, seen], rewards[:, seen])[:, -1].argmax(1)
                rewards[:, t] = problems.values[:, t].gather(1, arms[:, t : t + 1]).squeeze(1)

    return cpu_seconds(all_rounds)


def growth(agent: InContext, batch: int = 64) -> list[float]:
    """Milliseconds of a round, averaged over each quarter of the rounds."""
    problems = lay_out(df.make_env("high", horizon=HORIZON), Randomness(0, size=batch))
    state, spent, rng = agent.init(problems.shape), [], Randomness(0, size=batch).stream("agent")
    with torch.inference_mode():
        for t, observation in enumerate(problems.observations):
            began = time.process_time()
            arm, info = agent.act(state, observation, rng)
            state = agent.update(state, observation, arm, problems.values[:, t, 0], info)
            spent.append(1000 * (time.process_time() - began))
    return [statistics.mean(spent[start : start + HORIZON // 4]) for start in range(0, HORIZON, HORIZON // 4)]


def live(agent: InContext, rounds: int) -> tuple[float, float, float, float]:
    """CPU time of `act` and `update` with one live problem, ms: medians of the first and last thousand, p99, worst."""
    rng, policy, spent = np.random.default_rng(0), agent.online(), []
    for _ in range(rounds):
        features, reward = rng.uniform(-1, 1, (10, 32)), float(rng.normal())
        began = time.process_time()
        policy.act(features)
        policy.update(reward)
        spent.append(1000 * (time.process_time() - began))
    warm = np.array(spent[20:])
    first, last = float(np.median(warm[:1000])), float(np.median(warm[-1000:]))
    return first, last, float(np.quantile(warm, 0.99)), float(warm.max())


def collecting(trajectories: int = 6400) -> float:
    """Rounds per CPU-second of collecting LinUCB's trajectories with optimal labels."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "data"
        seconds = cpu_seconds(lambda: collect_dataset(out, "high", trajectories, behaviours={"linucb": 1.0}))
    return trajectories * HORIZON / seconds


def report(policies: list[str], turns: int, rounds: int) -> list[str]:
    torch.set_num_threads(1)
    lines = ["| policy | form | cached, s | uncached, s | ratio | wanted | `evaluate`, s | ms a round, by quarters |"]
    lines += ["|---|---|---:|---:|---:|---:|---:|---|"]
    for name in policies:
        agent = InContext(name)
        quarters = ", ".join(f"{value:.0f}" for value in growth(agent))
        if agent.config.form == "query":  # it keeps no history that could be read again
            fast = statistics.median(cached(agent) for _ in range(turns))
            lines.append(f"| {name} | query | {fast:.3f} | – | – | – | {evaluated(agent):.3f} | {quarters} |")
            continue
        pairs = [(cached(agent), uncached(agent)) for _ in range(turns)]
        fast, slow = (statistics.median(values) for values in zip(*pairs, strict=True))
        ratio = statistics.median(slow / fast for fast, slow in pairs)
        wanted = "at least 30" if agent.config.form == "paper" else "at least 40"
        cells = (Path(name).name, agent.config.form, f"{fast:.3f}", f"{slow:.2f}", f"{ratio:.0f}", wanted)
        lines.append(f"| {' | '.join(cells)} | {evaluated(agent):.3f} | {quarters} |")
    lines += [
        "",
        "| one live problem, ms a round | first 1,000 rounds | last 1,000 | p99 | worst |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in policies:
        if InContext(name).config.form != "paper":
            found = " | ".join(f"{value:.1f}" for value in live(InContext(name), rounds))
            lines.append(f"| {name}, {rounds:,} rounds | {found} |")
    bare = ours(df.make_env("high", horizon=HORIZON), df.make_agent("linucb"))
    pairs = [(collecting(), bare()) for _ in range(turns)]
    share = statistics.median(collected / simulated for collected, simulated in pairs)
    collected, simulated = (statistics.median(values) for values in zip(*pairs, strict=True))
    lines += ["", "| LinUCB on High, fixed arms | rounds per CPU-second |", "|---|---:|"]
    lines += [f"| bare simulator | {simulated:,.0f} |", f"| collected, labelled and stored | {collected:,.0f} |", ""]
    lines.append(f"Collecting runs at {share:.2f} of the simulator's speed (wanted: at least 0.5).")
    return [f"One thread, turns: {turns}, torch {torch.__version__}; seconds of CPU time, per trajectory.", "", *lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", nargs="+", default=shipped())
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5000, help="of one live problem")
    parser.add_argument("--write", action="store_true", help="also put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    lines = report(options.policies, options.turns, options.rounds)
    print("\n".join(lines))
    if options.write:
        put("policies", lines)


if __name__ == "__main__":
    main()
