"""MASTER at work: the window schedule of a block, and one run with its restarts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from driftformer.agents.schedule import Schedule, WindowScheduler
from driftformer.plots.style import figure_at

_PALE, _STRONG = "#C7C1E3", "#D55E00"
_TESTS = {1: ("#0072B2", "restart by Test 1"), 2: ("#CC79A7", "restart by Test 2"), 3: ("#000000", "restart by both")}


def draw_schedule(scheduler: WindowScheduler, rounds: Sequence[Schedule], path: Path) -> None:
    """One block as in the paper's figure of WS: scheduled pale, active strong, with dashes between its pieces."""
    with figure_at(path, (max(6.0, len(rounds) * 0.45), 0.6 * scheduler.orders + 1.3)) as figure:
        axes = figure.subplots()
        started = np.stack([one.started[0].numpy() for one in rounds], axis=1)  # [M, T]
        ending = np.stack([one.ending[0].numpy() for one in rounds], axis=1)  # [M, T]
        active = np.array([int(one.active[0]) for one in rounds])
        for order, first in np.argwhere(started):
            _instance(axes, order, first, first + int(ending[order, first:].argmax()), active)
        axes.set(xlim=(0, len(rounds)), ylim=(-0.1, scheduler.orders), xlabel="round of the block, from 0")
        axes.set_xticks(np.arange(0, len(rounds) + 1, max(1, len(rounds) // 16)))
        orders = range(scheduler.orders)
        axes.set_yticks([order + 0.4 for order in orders], [f"order {order}" for order in orders])
        axes.grid(axis="y", visible=False)
        axes.set_title("Window schedule: scheduled (pale) and active (strong) instances")


def _instance(axes: Axes, order: int, first: int, last: int, active: NDArray[np.int64]) -> None:
    axes.add_patch(Rectangle((first, order), last - first + 1, 0.8, facecolor=_PALE, edgecolor="white", linewidth=1.5))
    mine = [t for t in range(first, last + 1) if active[t] == order]
    for t in mine:
        axes.add_patch(Rectangle((t, order + 0.08), 1, 0.64, facecolor=_STRONG, edgecolor="white", linewidth=0.5))
    for before, after in pairwise(mine):
        if after > before + 1:  # the same instance resumes after a lower order had its turn
            axes.plot([before + 1, after], [order + 0.4] * 2, "--", color=_STRONG, linewidth=1.2)


def draw_equivalence(rounds: int, window: int, path: Path) -> None:
    """Which rounds each round may learn from, with adjacent windows (WS) and with a sliding window."""
    now, past = np.meshgrid(np.arange(rounds), np.arange(rounds), indexing="ij")
    adjacent = (past < now) & (past // window == now // window)
    sliding = (past < now) & (past >= now - window)
    with figure_at(path, (7.6, 4.4)) as figure:
        panels = {"adjacent windows: WS with one order": adjacent, "sliding window": sliding}
        for axes, (title, seen) in zip(figure.subplots(1, 2), panels.items(), strict=True):
            for t, s in zip(*np.nonzero(seen), strict=True):
                axes.add_patch(Rectangle((s, t), 1, 1, facecolor=_STRONG, edgecolor="white"))
            for t in range(rounds):
                axes.add_patch(Rectangle((t, t), 1, 1, facecolor=_PALE, edgecolor="white"))
            axes.set(xlim=(0, rounds), ylim=(rounds, 0), aspect="equal", xlabel="round learned from")
            axes.set_ylabel("round that acts (pale)")
            axes.set_title(title)
            for set_ticks in (axes.set_xticks, axes.set_yticks):
                set_ticks(np.arange(rounds) + 0.5, [str(t + 1) for t in range(rounds)])
            axes.grid(visible=False)


def draw_run(
    trajectory: Mapping[str, NDArray[Any]],
    title: str,
    path: Path,
    *,
    changes: Sequence[int] = (),
    probabilities: bool = False,
) -> None:
    """One problem: rewards, regret, the active order if there is one, restarts, and rounds that bring a change.

    The auxiliary value is a reward that the agent expects, or, where it is said to be one of the `probabilities`, how
    likely the agent was to play the arm that it played; then it has an axis of its own.
    """
    arrays = {name: values[0] for name, values in trajectory.items()}
    rounds = np.arange(1, len(arrays["rewards"]) + 1)
    auxiliary = arrays.get("auxiliary_values")
    panels = 2 + ("active_order" in arrays) + (probabilities and auxiliary is not None)
    with figure_at(path, (7.5, 1.7 * panels + 0.6)) as figure:
        grid = list(figure.subplots(panels, 1, sharex=True))
        figure.align_ylabels(grid)
        top, *rest = grid
        top.plot(rounds, arrays["rewards"], ".", markersize=3, color="#777777", label="reward")
        top.set_ylabel("reward")
        if auxiliary is not None:
            axes = rest.pop(0) if probabilities else top
            label = "probability of the arm played" if probabilities else "reward expected (auxiliary value)"
            axes.plot(rounds, auxiliary, color="#0072B2", linewidth=1, label=label)
            if probabilities:
                axes.set(ylabel="probability", ylim=(0, 1.03))
        rest[0].plot(rounds, np.cumsum(arrays["suboptimality"]), color="#000000", linewidth=1.4)
        rest[0].set_ylabel("dynamic regret")
        if "active_order" in arrays:
            rest[1].step(rounds, arrays["active_order"], where="mid", color=_STRONG, linewidth=1)
            rest[1].set_ylabel("active order")
        for axes in grid:
            for t in changes:
                axes.axvline(
                    t - 0.5, color="#444444", linewidth=1.1, linestyle=":", label="the world changes", zorder=0
                )
            for t, (colour, label) in _restarts(arrays):
                axes.axvline(t + 0.5, color=colour, linewidth=1, linestyle="--", label=label)
            axes.set_xlim(0, len(rounds) + 1)
        grid[0].set_title(title)
        legend = {line.get_label(): line for axes in grid for line in axes.lines if line.get_label()[0] != "_"}
        figure.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=5)
        grid[-1].set_xlabel("round t")


def _restarts(arrays: Mapping[str, NDArray[Any]]) -> list[tuple[int, tuple[str, str]]]:
    """The rounds after which an agent restarted (0: before the first), and how to draw them."""
    if "failed_test" in arrays:
        return [(int(t) + 1, _TESTS[int(arrays["failed_test"][t])]) for t in np.flatnonzero(arrays["failed_test"])]
    marks = arrays.get("restarted", np.zeros(0))
    return [(int(t), ("#0072B2", "restart")) for t in np.flatnonzero(marks)]  # the mark is on the first round after it
