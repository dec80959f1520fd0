"""When does a restart of MASTER pay? Long simulations with the theory's constants, the horizon from which tests can
fail with rewards in [0, 1], and tests that are calibrated on worlds at rest.

    python -m benchmarks.restarts                                # all three; five minutes on one core
    python -m benchmarks.restarts --pairs 4 --order 14           # a quick look

*Long simulations*: two arms without noise, the second of which rises from worst to best. A plain loop plays MASTER over
LinUCB with Algorithm 2's ρ̂, with tests and without, from the same coins up to the first restart. Rewards lie in
[−span, 0], where LinUCB is optimistic; ρ(t) = 1/√t + 2·span/t holds for it at rest: two wrong pulls cost at most
1.6·span, and widths add up to 0.8·√t. MASTER forgets by its schedule alone, too: only what long instances still believe
is lost without a restart, and a restart costs the exploration of young ones. The change comes shortly before the end of
the first quarter of the last block, and blocks before that one are left out: nothing fails there. *Horizon*: the same
with a span of 1. *Calibrated*: `test_scale` is the 95% quantile, over simulated worlds at rest, of how close a run
comes to failing, so that one in twenty runs at rest restarts; then dynamic regret where w* jumps.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import driftformer as df
from driftformer.agents.linucb import LinUCB
from driftformer.agents.master import Master
from driftformer.randomness import chunks_for
from driftformer.simulation.rollout import rollout

BASE = LinUCB(alpha=0.4, ridge=0.01)
NEVER = 1e9
"""A test_scale with which no test fails."""
FALSE_ALARMS = 0.05


@dataclass(frozen=True)
class World:
    """Two arms without noise; the first stays where it is, and the second rises."""

    horizon: int
    span: float  # between the worst and the best reward
    change: int  # the first round after the rise

    def values(self, t: int) -> tuple[float, float]:
        """What both arms pay."""
        return -self.span / 2, (0.0 if t >= self.change else -self.span)

    def master(self, test_scale: float = 1.0) -> Master:
        return Master(BASE, c2=2 * self.span, test_scale=test_scale)


@dataclass(frozen=True)
class Run:
    regret: float  # in spans
    restarts: tuple[int, ...]  # the rounds after which they came


def play(world: World, test_scale: float, seed: int, n: int = 0) -> Run:
    """MASTER in a plain loop, from its block of order n on: nothing is batched, so a million rounds take a second."""
    coin, root, master, ridge, alpha = Random(seed).random, math.sqrt, world.master(test_scale), BASE.ridge, BASE.alpha
    factor = master.rho_hat(1, world.horizon) / master.rho(1)  # ρ̂/ρ
    t = 2**n - 1
    regret, restarts = 0.0, []
    while t < world.horizon:
        orders = range(n + 1)
        chances = [master.rho(2**n) / master.rho(2**m) for m in orders]
        first_margins = [9 * factor * master.rho(2**m) for m in orders]
        bank: list[list[float]] = [[] for _ in orders]  # of each order: ridge + plays and sum of rewards, for both arms
        began = [0.0 for _ in orders]  # the block's rewards before it
        live, lowest, hoped, earned, failed = 0, math.inf, 0.0, 0.0, False
        for tau in range(min(2**n, world.horizon - t)):
            m = 0
            while m <= n and not tau & ((1 << m) - 1):  # a period of order m begins
                live &= ~(1 << m)
                if coin() < chances[m]:
                    live |= 1 << m
                    bank[m], began[m] = [ridge, 0.0, ridge, 0.0], earned
                m += 1
            one = bank[(live & -live).bit_length() - 1]
            bounds = one[1] / one[0] + alpha / root(one[0]), one[3] / one[2] + alpha / root(one[2])
            arm = 0 if bounds[0] >= bounds[1] else 1
            t += 1
            values = world.values(t)
            reward = values[arm]
            one[2 * arm] += 1
            one[2 * arm + 1] += reward
            regret += max(values) - reward
            hoped += bounds[arm] - reward
            earned += reward
            lowest = min(lowest, bounds[arm])
            failed = hoped >= 3 * factor * (root(tau + 1) + master.c2)
            m = 0
            while m <= n and not (tau + 1) & ((1 << m) - 1):  # a period of order m ends
                if live >> m & 1 and (earned - began[m]) / 2**m - lowest >= first_margins[m]:
                    failed = True
                m += 1
            if failed:
                break
        n = 0 if failed else n + 1
        if failed:
            restarts.append(t)
    return Run(regret / world.span, tuple(restarts))


def simulate(n: int, span: float, pairs: int) -> None:
    """With tests and without, on the same coins, in a block of 2^n rounds and what follows a restart."""
    start = 2**n - 1
    world = World(2 * start + 1, span, start + 2**n // 4 - 2**n // 512)
    both = [(play(world, 1.0, seed, n), play(world, NEVER, seed, n)) for seed in range(pairs)]
    regrets = {name: [pair[side].regret for pair in both] for side, name in enumerate(("with", "without"))}
    differences = [one.regret - other.regret for one, other in both]
    fired = [len(one.restarts) for one, _ in both]
    last = sum(one.restarts[-1:] == (world.horizon,) for one, _ in both)
    parts = {"more regret": [one for one in differences if one > 0], "less": [-one for one in differences if one < 0]}
    print(
        f"T={world.horizon:,}, span {span:g}, rise in round {world.change:,}, {pairs} pairs; regret in spans: "
        + ", ".join(f"{name} tests {mean_and_error(values)}" for name, values in regrets.items())
        + f"; difference {mean_and_error(differences)}, from {min(differences):,.0f} to {max(differences):,.0f}; "
        + f"{statistics.mean(fired):.2f} restarts a run, {last} of them after the last round; "
        + ", ".join(f"{name} in {len(one)} runs, by {sum(one) / max(len(one), 1):,.0f}" for name, one in parts.items()),
        flush=True,
    )


def mean_and_error(values: Sequence[float]) -> str:
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{statistics.mean(values):,.0f} ± {error:,.0f}"


def horizon_of_a_failure(excess: float) -> int:
    """The least power of two within which an average reward that is so far above U can fail Test 1, for a span of 1."""
    horizon, master = 2, World(0, 1.0, 0).master()
    while master.smallest_margins(horizon)[0] > excess:
        horizon *= 2
    return horizon


def calibrated(runs: int, **options: Any) -> float:
    """The test_scale with which a share `FALSE_ALARMS` of runs at rest has a restart."""
    chunks = [chunk.index for chunk in chunks_for(runs)]
    played = rollout(df.make_env("stationary", **options), Master(test_scale=NEVER), chunks=chunks).regrets
    closest = [
        np.maximum(one.diagnostics["test1_closest_ratio"], one.diagnostics["test2_closest_ratio"]) for one in played
    ]
    return float(np.quantile(np.concatenate(closest), 1 - FALSE_ALARMS)) * NEVER


def compare(runs: int, **shared: Any) -> None:
    """The calibrated variant beside the theory's constants and rivals, by dynamic regret."""
    master = f"master-linucb@test_scale={calibrated(runs, **shared):.3g}"
    agents = ["linucb", "master-linucb", master, "discounted-linucb@gamma=0.99", "change-point-oracle"]
    print(df.evaluate(df.make_env("stationary", **shared), agents[:3], runs=runs, seed=1).table())
    print(df.evaluate(df.make_env("jumps", changes=4, **shared), agents, runs=runs).table(), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--order", type=int, default=19, help="of the last block of the long simulations")
    parser.add_argument("--span", type=float, default=240.0, help="range of their rewards")
    parser.add_argument("--pairs", type=int, default=128, help="how many, with tests and without")
    parser.add_argument("--runs", type=int, default=192, help="problems of the calibrated variant")
    options = parser.parse_args()
    for order in (options.order - 3, options.order):
        simulate(order, options.span, options.pairs)
    for excess in (0.5, 1.0):
        horizon = horizon_of_a_failure(excess)
        print(f"range 1, average reward {excess} above U: Test 1 can fail from T = {horizon:.1e} on")
    compare(options.runs, horizon=2000, dim=8, arms=5, noise=0.5)


if __name__ == "__main__":
    main()
