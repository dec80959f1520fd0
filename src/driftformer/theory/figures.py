"""Figures of the running objects: the scheduler of a block, all layers, and errors against sizes."""

from __future__ import annotations

from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from driftformer.plots.style import figure_at
from driftformer.randomness import one_thread
from driftformer.theory import linucb, scheduler
from driftformer.theory.bounds import inverse_root
from driftformer.theory.network import Layer, apply
from driftformer.theory.noncontinuous import SHARPNESS, NonContinuous
from driftformer.theory.tokens import Layout, random_tokens


def draw_scheduler(n: int, path: Path) -> None:
    """The counterpart of `fig_input`: numbers, flags and active orders after each part, and σ1's scores."""
    layout = Layout(n, 1)
    state = random_tokens(layout, 0, batch=1)
    state[..., layout.places("rand")] = 0.0
    parts: dict[str, list[Layer]] = {
        "random numbers (ranks)": [scheduler.ranks(layout, SHARPNESS)],
        "held over their blocks": [scheduler.held(layout)],
        "flags: scheduled": [scheduler.masks(layout, inverse_root, SHARPNESS)],
        "after σ1 and σ2: active": [scheduler.sigma1(layout), scheduler.sigma2(layout)],
    }
    with figure_at(path, (7.5, 1.1 * (len(parts) + 2) + 0.25 * n)) as figure:
        grid = figure.subplots(len(parts) + 1, 1, height_ratios=[1] * len(parts) + [1.8])
        head = scheduler.sigma1(layout).heads[0]
        for axes, (title, layers) in zip(grid, parts.items(), strict=False):
            if title.startswith("after"):
                scores = torch.relu((state @ head.query.T) @ (state @ head.key.T).transpose(1, 2))[0].tril()
            state = apply(layers, state)
            shown = state[0][:, layout.places("rand")].T.numpy()  # [n+1, 2^n]
            axes.imshow(shown, aspect="auto", origin="lower", vmin=0, vmax=1, cmap="viridis")
            axes.set_title(title, loc="left", fontsize=9)
            axes.set_ylabel("order")
            axes.grid(visible=False)
        grid[-1].imshow(scores.numpy(), aspect="auto", cmap="viridis")
        grid[-1].set_title("scores of σ1's head of order 0: a round looks at itself alone", loc="left", fontsize=9)
        grid[-1].set(xlabel="key: round", ylabel="query: round")
        grid[-1].grid(visible=False)


def draw_depth(path: Path) -> None:
    """The error of the LinUCB network against its number of steps."""
    steps = (5, 10, 20, 30, 40, 50, 60)
    with figure_at(path, (6.0, 3.8)) as figure:
        axes = figure.subplots()
        for d in (2, 3, 4):
            target = linucb.SoftLinUCB(d=d)
            errors = [linucb.largest_error(target, step, pieces=128, problems=1) for step in steps]
            axes.semilogy(steps, errors, "o-", markersize=4, label=f"d={d}, T={target.rounds}")
        axes.axhline(0.05, color="#999999", linestyle="--", linewidth=1, label="0.05")
        axes.set(xlabel="steps of Chebyshev's recurrence (layers)", ylabel="largest |log π − log π of soft LinUCB|")
        axes.legend()


def draw_product(path: Path) -> None:
    """The error of the text's product against its hidden units."""
    pieces = [2**power for power in range(1, 9)]
    errors = [scheduler.largest_product_error(count) for count in pieces]
    with figure_at(path, (6.0, 3.8)) as figure:
        axes = figure.subplots()
        axes.loglog([3 * count for count in pieces], errors, "o-", markersize=4, label="measured")
        axes.loglog([3 * count for count in pieces], [1.5 / count**2 for count in pieces], "--", label="1.5/pieces²")
        axes.set(xlabel="hidden units", ylabel="largest error of rand·ρ")
        axes.legend()


def draw_overview(n: int, path: Path) -> None:
    """The counterpart of `fig:proof_approx`: the algorithm's operations above, the layers that do them below."""
    network = NonContinuous(linucb.SoftLinUCB(), 2 ** (n + 1) - 1)
    names = {"fetch": "last round", "coins": "random flags", "WS": "σ1, σ2", "base": "LinUCB", "keep": "memory"}
    parts = {names.get(name, name): layers for name, layers in network.parts.items()}
    with figure_at(path, (1.35 * len(parts), 2.6)) as figure:
        axes = figure.subplots()
        for place, (name, layers) in enumerate(parts.items()):
            heads = max(len(layer.heads) for layer in layers)
            hidden = max(layer.hidden for layer in layers)
            words = [f"≤ {heads} heads"] * bool(heads) + [f"≤ {hidden} hidden"] * bool(hidden)
            _box(axes, place, 1.2, "#CFE3F2", name)
            _box(axes, place, 0.0, "#CDE8D8", f"{len(layers)} layer{'s' * (len(layers) > 1)}\n" + "\n".join(words))
            axes.annotate("", (place + 0.45, 1.0), (place + 0.45, 1.2), arrowprops={"arrowstyle": "->"})
        axes.set(xlim=(-0.1, len(parts)), ylim=(-0.1, 2.3))
        axes.set_title(
            f"MASTER's operations and their layers, T = {network.rounds}, D = {network.memory.at.width}", loc="left"
        )
        axes.axis("off")


def _box(axes: Axes, x: float, y: float, colour: str, text: str) -> None:
    axes.add_patch(Rectangle((x, y), 0.9, 0.95, facecolor=colour, edgecolor="#555555", linewidth=0.8))
    axes.text(x + 0.45, y + 0.475, text, ha="center", va="center", fontsize=8)


@one_thread()
def draw(name: str | None, n: int, path: Path) -> None:
    """The figure that belongs to a check, or the scheduler's if it has none of its own."""
    if name == "linucb":
        draw_depth(path)
    elif name == "product":
        draw_product(path)
    elif name == "noncontinuous":
        draw_overview(n, path)
    else:
        draw_scheduler(n, path)
