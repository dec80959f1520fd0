"""A million rounds: is what an agent knows still what its observations say, and does its memory stay as it was?

    python -m reliability.long_runs                       LinUCB, D-LinUCB, sliding window and MASTER, 10^6 rounds
    python -m reliability.long_runs --rounds 20000        only the first rounds of the same, as in the tests

Beside each agent its observations are summed up in float64, and now and then inverted afresh. The drift is the largest
entry of |Â⁻¹·A − I|, where Â⁻¹ is the agent's own and A the fresh one, over all problems and, for MASTER, over all
instances that are scheduled. The exit code is 1 if a drift passes `BOUND`, a number is not finite, or memory grows.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from torch import Tensor

import driftformer as df
from driftformer.agents.base import ProblemShape
from driftformer.agents.discounted import DiscountedLinUCB, factorise, fade
from driftformer.agents.linucb import LinUCB
from driftformer.agents.master import Master
from driftformer.agents.sliding_window import SlidingWindowLinUCB
from driftformer.evaluation.progress import Progress
from driftformer.randomness import Randomness, one_thread

AGENTS = ("linucb", "discounted-linucb", "sliding-window-linucb", "master-linucb")
HORIZON = 1_000_000
BOUND = 1e-3
"""Of the drift: every squared width xᵀA⁻¹x is then right to about three digits."""
GROWTH = 8.0
"""MiB that the process may grow by after the first tenth of a run: what allocators keep, not what agents do."""


class Shadow(Protocol):
    """An agent's observations in float64."""

    def observe(self, features: Tensor, info: Any) -> None:
        """Take in what was played, `[B, d]`."""
        ...

    def drift(self, state: Any) -> float:
        """The largest entry of |Â⁻¹·A − I|."""
        ...


def _eye(problems: int, dim: int, ridge: float) -> Tensor:
    return (ridge * torch.eye(dim, dtype=torch.double)).repeat(problems, 1, 1)


def _distance(inverse: Tensor, gram: Tensor) -> float:
    product = torch.bmm(inverse.double(), gram)
    return float((product - torch.eye(gram.shape[1], dtype=torch.double)).abs().max())


class _Sum:
    """LinUCB: all observations."""

    def __init__(self, agent: LinUCB, shape: ProblemShape) -> None:
        self._gram = _eye(shape.batch, shape.dim, agent.ridge)

    def observe(self, features: Tensor, info: Any) -> None:
        self._gram.addcmul_(features.unsqueeze(2), features.unsqueeze(1))

    def drift(self, state: Any) -> float:
        return _distance(state.inverse, self._gram)


class _Faded:
    """D-LinUCB: discounted observations under a ridge that is not."""

    def __init__(self, agent: DiscountedLinUCB, shape: ProblemShape) -> None:
        self._agent, self._gram = agent, _eye(shape.batch, shape.dim, agent.ridge)

    def observe(self, features: Tensor, info: Any) -> None:
        fade(self._gram, features, self._agent.gamma, self._agent.ridge)

    def drift(self, state: Any) -> float:
        return _distance(torch.cholesky_inverse(factorise(state.gram)), self._gram)


class _Window:
    """The last observations, by a queue of our own."""

    def __init__(self, agent: SlidingWindowLinUCB, shape: ProblemShape) -> None:
        self._ridge = _eye(shape.batch, shape.dim, agent.ridge)
        self._seen: deque[Tensor] = deque(maxlen=agent.window)

    def observe(self, features: Tensor, info: Any) -> None:
        self._seen.append(features)

    def drift(self, state: Any) -> float:
        seen = torch.stack(list(self._seen), dim=1)  # [B, W, d]
        return _distance(state.model.inverse, self._ridge + torch.bmm(seen.mT, seen))


class _Instances:
    """MASTER over LinUCB: one sum for each problem and order, begun again with its instance."""

    def __init__(self, agent: Master, shape: ProblemShape) -> None:
        assert isinstance(agent.base, LinUCB)
        self._orders = shape.horizon.bit_length()
        self._fresh = _eye(1, shape.dim, agent.base.ridge)
        self._grams = self._fresh.repeat(shape.batch * self._orders, 1, 1)

    def observe(self, features: Tensor, info: Any) -> None:
        self._grams[info.schedule.started.flatten()] = self._fresh
        self._grams[info.rows] += features.unsqueeze(2) * features.unsqueeze(1)

    def drift(self, state: Any) -> float:
        live = state.live.flatten()
        if not bool(live.any()):
            return 0.0
        return _distance(state.bank.inverse.flatten(0, 1)[live], self._grams[live])


_SHADOWS: dict[type, Callable[[Any, ProblemShape], Shadow]] = {
    LinUCB: _Sum,
    DiscountedLinUCB: _Faded,
    SlidingWindowLinUCB: _Window,
    Master: _Instances,
}


@dataclass(frozen=True)
class Reading:
    """How an agent stands after some rounds."""

    rounds: int
    drift: float  # the largest so far
    finite: bool  # all auxiliary values so far
    state_bytes: int
    resident: float  # MiB of the process


def play(
    agent: str,
    rounds: int,
    *,
    horizon: int = HORIZON,
    mode: str = "fixed",
    problems: int = 2,
    dim: int = 16,
    readings: int = 10,
    seed: int = 0,
    on_rounds: Callable[[int], None] = lambda rounds: None,
) -> list[Reading]:
    """Play one agent in a cosine world for many rounds, the first ones of a horizon."""
    horizon = max(horizon, rounds)
    environment = df.make_env("high", horizon=horizon, dim=dim, arms=10, arm_mode=mode)
    player, randomness = df.make_agent(agent), Randomness(seed, size=problems)
    found: list[Reading] = []
    with one_thread():
        shape = ProblemShape(problems, horizon, 10, dim, randomness.device, randomness.dtype)
        state: Any = player.init(shape)
        world, rng = environment.reset(randomness), randomness.stream("agent")
        shadow = _SHADOWS[type(player)](player, shape)
        hoped = torch.zeros(problems, dtype=torch.double)
        worst, last = 0.0, 0
        checked = {rounds * (place + 1) // (10 * readings) for place in range(10 * readings)}
        for t in range(1, rounds + 1):
            arm, info = player.act(state, world.observation, rng)
            reward, _, following = environment.step(world, arm, randomness)
            shadow.observe(world.observation.features(arm).double(), info)
            hoped += info.auxiliary_value
            state = player.update(state, world.observation, arm, reward, info)
            world = following
            if t in checked:
                worst = max(worst, shadow.drift(state))
                on_rounds(t - last)
                last = t
                if len(found) < t * readings // rounds:
                    finite = bool(hoped.isfinite().all())
                    found.append(Reading(t, worst, finite, _bytes(state), _resident()))
    return found


def _bytes(state: Any) -> int:
    """Of all tensors of a state."""
    if isinstance(state, Tensor):
        return state.numel() * state.element_size()
    if dataclasses.is_dataclass(state):
        return sum(_bytes(getattr(state, field.name)) for field in dataclasses.fields(state))
    return 0


def _resident() -> float:
    """MiB that this process holds in memory, on Linux; 0 elsewhere."""
    page = Path("/proc/self/statm")
    return int(page.read_text().split()[1]) * 4096 / 2**20 if page.exists() else 0.0


def faults(found: list[Reading]) -> list[str]:
    """What is wrong with a run, in words; nothing if all is well."""
    first, last = found[0], found[-1]
    wrong = [] if last.drift <= BOUND else [f"drift {last.drift:.1e}"]
    wrong += [] if last.finite else ["NaN"]
    wrong += [] if last.state_bytes == first.state_bytes else ["its state grows"]
    wrong += [] if last.resident - first.resident <= GROWTH else ["memory grows"]
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=HORIZON)
    parser.add_argument("--problems", type=int, default=2)
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--agents", nargs="+", default=AGENTS, choices=AGENTS)
    options = parser.parse_args()
    table = Table(
        title=f"{options.rounds:,} rounds, {options.problems} problems, d={options.dim}, ten arms; drift is bounded by "
        f"{BOUND:g}",
        box=SIMPLE_HEAD,
    )
    for heading in ("agent", "arms", "largest drift", "state", "grown by", "minutes", ""):
        table.add_column(heading, justify="left" if heading in ("agent", "arms", "") else "right")
    bad = 0
    runs = [(agent, mode) for agent in options.agents for mode in ("fixed", "resampled")]
    with Progress(len(runs) * options.rounds, "long runs") as bar:
        for agent, mode in runs:
            began = time.perf_counter()
            found = play(
                agent,
                options.rounds,
                mode=mode,
                problems=options.problems,
                dim=options.dim,
                seed=options.seed,
                on_rounds=bar.advance,
            )
            wrong = faults(found)
            bad += bool(wrong)
            grown = found[-1].resident - found[0].resident
            minutes = (time.perf_counter() - began) / 60
            sizes = (f"{found[-1].state_bytes / 1024:.1f} KiB", f"{grown:+.1f} MiB", f"{minutes:.1f}")
            row = (agent, mode, f"{found[-1].drift:.1e}", *sizes, ", ".join(wrong) or "ok")
            table.add_row(*row)
            if not sys.stderr.isatty():
                print(*row, sep="  ", file=sys.stderr, flush=True)
    Console(width=110).print(table)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
