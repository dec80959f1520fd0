"""All agents on all worlds that they can play: the boards of docs/leaderboard.md.

    python -m benchmarks.leaderboard [--board states] [--write] [--out runs/leaderboard]

Results are kept in the folder, so a second call computes only what is missing.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import driftformer as df
from benchmarks.compare import put
from driftformer.evaluation import leaderboard as boards

PAGE = Path(__file__).parents[1] / "docs" / "leaderboard.md"
RUNS, SEED = 64, 0


@dataclass(frozen=True)
class Board:
    """Worlds that the same agents can play: by its title, an environment and its options."""

    worlds: Mapping[str, tuple[str, dict[str, Any]]]
    agents: Sequence[str]


_SHORT = {"horizon": 200}

BOARDS = {
    "features": Board(
        {
            "stationary": ("stationary", _SHORT),
            "low": ("low", {}),
            "seasonal": ("seasonal", {}),
            "jumps": ("jumps", _SHORT),
            "walk": ("walk", _SHORT),
            **{name: (name, {}) for name in ("high", "flips", "rising", "chirp", "wave", "outage", "bursts")},
        },
        (
            "random",
            "linucb",
            "thompson",
            "greedy",
            "adaptive-linucb",
            "discounted-linucb",
            "discounted-linucb@gamma=0.99",
            "weighted-linucb",
            "discounted-thompson",
            "sliding-window-linucb",
            "restart-linucb",
            "detection-linucb",
            "master-linucb",
            "master-thompson",
            "policy:drift",
        ),
    ),
    "arms": Board(
        {change: ("bernoulli", {"change": change}) for change in ("stationary", "jumps", "cosine", "walk")},
        (
            "random",
            "ucb",
            "kl-ucb",
            "discounted-ucb",
            "sliding-window-ucb",
            "glr-kl-ucb",
            "beta-thompson",
            "beta-thompson@gamma=0.99",
            "linucb",
            "adaptive-linucb",
            "policy:drift",
        ),
    ),
    "states": Board(
        {
            "lock": ("lock", {}),
            "riverswim": ("riverswim", {}),
            "random-mdp": ("random-mdp", {}),
            "darkroom": ("darkroom", {"size": 5}),
        },
        (
            "random",
            "q-learning",
            "q-ucb",
            "restart-q-ucb",
            "double-restart-q-ucb",
            "ucb-vi",
            "sliding-window-ucb-vi",
            "psrl",
            "master-q-ucb",
            "master-ucb-vi",
            "policy:mdp",
        ),
    ),
}


def played(board: Board, folder: Path) -> boards.Leaderboard:
    """Every agent in every world, and their places."""
    for title, (name, options) in board.worlds.items():
        df.evaluate(df.make_env(name, **options), board.agents, runs=RUNS, seed=SEED, out=folder / title)
    return boards.leaderboard(boards.read_worlds([folder]))


def table(board: boards.Leaderboard) -> list[str]:
    """The verdict and a row for each agent, as Markdown."""
    heads = ["agent", "score (95%)", "first better (95%)", *(world.title for world in board.worlds)]
    lines = [
        f"{boards.verdict(board)} {boards.evidence(board)}",
        "",
        f"| {' | '.join(heads)} |",
        "|---|" + "--:|" * (len(heads) - 1),
    ]
    return lines + [f"| `{name}` | {' | '.join(cells)} |" for name, *cells in boards.rows(board)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--board", nargs="+", choices=list(BOARDS), default=list(BOARDS), help="which boards: all")
    parser.add_argument("--out", type=Path, default=Path("runs/leaderboard"))
    parser.add_argument("--write", action="store_true", help="also put tables and pictures into docs/")
    options = parser.parse_args()
    for name in options.board:
        found = played(BOARDS[name], options.out / name)
        lines = table(found)
        print("\n".join(lines))
        if options.write:
            put(name, lines, PAGE)
            boards.draw(found, PAGE.parent / "images" / f"leaderboard-{name}.png")


if __name__ == "__main__":
    main()
