"""WS, the window scheduler (Section 4.1): which instances are scheduled in a round, and which one is active.

Every order m has a period, a window and a probability. At each multiple of its period a coin is flipped; if it falls
well, an instance of order m is scheduled for the next `window` rounds (σ1). Of the instances that are scheduled in a
round, the one of the lowest order is active (σ2).

The text of Section 4.1 flips a coin in every round; MALG (Algorithm 1) flips one for each instance. Ours is the
latter, since it is what makes an instance: rounds that belong together. Where no coin fell well a round may have no
instance at all, and `active` is -1: nobody has a memory to act on. MALG's highest order has probability one, so that
this does not happen there, nor with adjacent windows of probability one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.errors import InputError, require_count, require_real
from driftformer.randomness import Stream

Rho = Callable[[int], float]


@dataclass(frozen=True)
class WindowScheduler:
    """Period, window length and probability of each order, from 0 up."""

    periods: tuple[int, ...]
    windows: tuple[int, ...]
    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        if not len(self.periods) == len(self.windows) == len(self.probabilities) > 0:
            raise InputError(
                f"periods, windows and probabilities have {len(self.periods)}, {len(self.windows)} and "
                f"{len(self.probabilities)} entries; give one of each for every order"
            )
        orders = zip(self.periods, self.windows, self.probabilities, strict=True)
        for order, (period, window, probability) in enumerate(orders):
            require_count(f"the period of order {order}", period)
            require_count(f"the window of order {order}", window)
            if window > period:
                raise InputError(
                    f"the window of order {order} is {window}, longer than its period of {period}; "
                    "an order has one instance at a time, so give at most the period"
                )
            require_real(f"the probability of order {order}", probability, 0.0, most=1.0)

    @property
    def orders(self) -> int:
        return len(self.periods)


def check_rho(rho: Rho, most: int) -> None:
    """Refuse a ρ that is not positive or increases on the lengths 1, 2, 4, … up to `most`."""
    lengths = [2**m for m in range(most.bit_length())]
    values = [rho(length) for length in lengths]
    for length, value, before in zip(lengths, values, [values[0], *values], strict=False):
        require_real(f"rho({length})", value, 0.0, above=True)
        if value > before:
            raise InputError(
                f"rho({length}) is {value:g}, more than rho({length // 2}) = {before:g}; rho must not increase, "
                "or probabilities would pass one"
            )


def malg(n: int, rho: Rho) -> WindowScheduler:
    """Algorithm 1's schedule for a block of 2^n rounds: order m has length 2^m and probability ρ(2^n)/ρ(2^m)."""
    require_count("n", n, 0)
    check_rho(rho, 2**n)
    lengths = tuple(2**m for m in range(n + 1))
    return WindowScheduler(lengths, lengths, tuple(rho(2**n) / rho(length) for length in lengths))


def periodic(window: int) -> WindowScheduler:
    """One order of adjacent equal windows: periodic restart."""
    return WindowScheduler((window,), (window,), (1.0,))


@dataclass(frozen=True)
class Schedule:
    """What σ1 and σ2 say of one round."""

    started: Tensor  # [B, M] bool: the order has a new instance
    live: Tensor  # [B, M] bool: the order has an instance in this round
    ending: Tensor  # [B, M] bool: this is its last round
    active: Tensor  # [B] the lowest live order, or -1


def schedule(
    tau: Tensor, live: Tensor, coins: Tensor, periods: Tensor, windows: Tensor, probabilities: Tensor
) -> Schedule:
    """The schedule of round `tau` of a block (from 0, `[B]`), where `live` `[B, M]` was so in the round before.

    `coins` are Unif[0, 1), `[B, M]`; periods and windows `[M]`, probabilities `[M]` or `[B, M]`.
    """
    phase = tau.unsqueeze(1) % periods  # [B, M]
    begins = phase == 0
    started = begins & (coins < probabilities)
    live = started | (live & ~begins & (phase < windows))
    active = torch.where(live.any(dim=1), live.int().argmax(dim=1), -1)
    return Schedule(started, live, live & (phase == windows - 1), active)


def run(scheduler: WindowScheduler, rounds: int, rng: Stream) -> list[Schedule]:
    """A whole block, round by round, for each problem of the stream."""
    if max(scheduler.windows) > rounds:
        raise InputError(
            f"the longest window is {max(scheduler.windows)}, but there are only {rounds} rounds; give more"
        )
    periods, windows = torch.tensor(scheduler.periods), torch.tensor(scheduler.windows)
    probabilities = torch.tensor(scheduler.probabilities)
    coins = rng.uniform(rounds, scheduler.orders)  # [B, rounds, M]
    seen: list[Schedule] = []
    live = torch.zeros_like(coins[:, 0], dtype=torch.bool)
    for t in range(rounds):
        tau = torch.full((coins.shape[0],), t)
        seen.append(schedule(tau, live, coins[:, t], periods, windows, probabilities))
        live = seen[-1].live
    return seen
