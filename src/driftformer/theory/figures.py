"""Pictures drawn from the running objects: the scheduler of one block, and how deep a LinUCB network must be."""

from __future__ import annotations

from pathlib import Path

import torch

from driftformer.evaluation.figures import figure_at
from driftformer.theory import linucb
from driftformer.theory.checks import rho
from driftformer.theory.constructions import bernoulli, hold, ranks, sigma1, sigma2
from driftformer.theory.inputs import clear, column, random_tokens
from driftformer.theory.network import Layer, build, run
from driftformer.theory.noncontinuous import SHARPNESS
from driftformer.theory.tokens import Layout


def draw_scheduler(n: int, path: Path, seed: int = 0) -> None:
    """The counterpart of `fig_input`: numbers, flags, what is active after each part, and σ1's scores."""
    layout = Layout(n, 1)
    state = clear(random_tokens(layout, 1, seed), layout, "rand")
    parts: dict[str, list[Layer]] = {
        "random numbers (ranks)": [ranks.build(layout, SHARPNESS)],
        "held over their blocks": [hold.build(layout)],
        "flags: scheduled": [bernoulli.build(layout, rho, SHARPNESS)],
        "after σ1 and σ2: active": [sigma1.build(layout), sigma2.build(layout)],
    }
    with figure_at(path, (7.5, 1.1 * (len(parts) + 2) + 0.25 * n)) as figure:
        grid = figure.subplots(len(parts) + 1, 1, height_ratios=[1] * len(parts) + [1.8])
        head = sigma1.build(layout).heads[0]
        for axes, (title, layers) in zip(grid, parts.items(), strict=False):
            if title.startswith("after"):
                scores = torch.relu((state @ head.query.T) @ (state @ head.key.T).transpose(1, 2))[0].tril()
            state = run(build(layers, layout.width), state)
            shown = column(state, layout, "rand")[0].T.numpy()  # [n+1, 2^n]
            axes.imshow(shown, aspect="auto", origin="lower", vmin=0, vmax=1, cmap="viridis")
            axes.set_title(title, loc="left", fontsize=9)
            axes.set_ylabel("order")
            axes.grid(visible=False)
        grid[-1].imshow(scores.numpy(), aspect="auto", cmap="viridis")
        grid[-1].set_title("scores of σ1's head of order 0: a round looks at itself alone", loc="left", fontsize=9)
        grid[-1].set(xlabel="key: round", ylabel="query: round")
        grid[-1].grid(visible=False)


def draw_depth(path: Path) -> None:
    """The error of the LinUCB network against the number of its steps."""
    steps = (5, 10, 20, 30, 40, 50, 60)
    with figure_at(path, (6.0, 3.8)) as figure:
        axes = figure.subplots()
        for d in (2, 3, 4):
            asked = linucb.SoftLinUCB(d=d)
            errors = [linucb.largest_error(asked, step, pieces=128, problems=1) for step in steps]
            axes.semilogy(steps, errors, "o-", markersize=4, label=f"d={d}, T={asked.rounds}")
        axes.axhline(0.05, color="#999999", linestyle="--", linewidth=1, label="0.05")
        axes.set(xlabel="steps of Chebyshev's recurrence (layers)", ylabel="largest |log π − log π of soft LinUCB|")
        axes.legend()
