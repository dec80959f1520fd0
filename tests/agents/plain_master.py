"""MASTER for one problem, one line of Algorithms 1 and 2 after the other, with nothing batched and nothing clever."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclass
class Instance:
    """alg in Algorithm 1, with alg.s and alg.e as rounds of the block."""

    order: int
    start: int
    end: int
    model: Any


@dataclass
class Log:
    """What happened, round by round."""

    arms: list[int] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)
    auxiliary: list[float] = field(default_factory=list)
    lowest: list[float] = field(default_factory=list)
    scheduled: list[set[int]] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    first: list[float] = field(default_factory=list)  # Test 1: largest statistic over threshold, -inf where not held
    second: list[float] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)


def plain_master(
    horizon: int,
    fresh: Callable[[], Any],  # a base agent that has seen nothing
    play: Callable[[Any, int], tuple[int, float, float]],  # it plays round t, from 0, and learns: arm, r̃ and reward
    coins: Vector,  # [T, M] Unif[0,1)
    test_scale: float,
    c1: float,
    c2: float,
) -> Log:
    """Play a base agent under MASTER with ρ(t) = c₁/√t + c₂/t."""

    def rho(t: int) -> float:
        return c1 / math.sqrt(t) + c2 / t

    def rho_hat(t: int) -> float:
        return test_scale * 6 * (math.log2(horizon) + 1) * math.log(horizon) * rho(t)

    log = Log()
    t, n = 0, 0
    while t < horizon:  # Algorithm 2, line 2
        block_start, restarted = t, False
        instances: list[Instance] = []
        rewards: list[float] = []
        hopes: list[float] = []
        while t < block_start + 2**n and t < horizon:
            tau = t - block_start
            for m in range(n, -1, -1):  # Algorithm 1
                if tau % 2**m == 0 and coins[t, m] < rho(2**n) / rho(2**m):
                    instances.append(Instance(m, tau, tau + 2**m - 1, fresh()))
            scheduled = [instance for instance in instances if instance.start <= tau <= instance.end]
            active = min(scheduled, key=lambda instance: instance.order)
            arm, hope, reward = play(active.model, t)
            hopes.append(hope)
            rewards.append(reward)
            lowest = min(hopes)  # U_t
            first = max(
                (
                    (np.mean(rewards[instance.start : instance.end + 1]) - lowest) / (9 * rho_hat(2**instance.order))
                    for instance in scheduled
                    if instance.end == tau
                ),
                default=-math.inf,
            )
            second = float(np.mean(np.subtract(hopes, rewards))) / (3 * rho_hat(tau + 1))
            log.arms.append(arm)
            log.orders.append(active.order)
            log.auxiliary.append(hopes[-1])
            log.lowest.append(lowest)
            log.scheduled.append({instance.order for instance in scheduled})
            log.blocks.append(n if tau == 0 else -1)
            log.first.append(float(first))
            log.second.append(second)
            log.failed.append((first >= 1) + 2 * (second >= 1))
            t += 1
            if first >= 1 or second >= 1:
                restarted = True
                break
        n = 0 if restarted else n + 1
    return log
