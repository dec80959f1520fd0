"""All agents and all worlds of a page on one board."""

from __future__ import annotations

from driftformer.evaluation.leaderboard import LEVELS, Leaderboard, likely, written
from driftformer.report.agents import linked
from driftformer.report.markup import escaped, figure, table
from driftformer.report.page import Figures, Section
from driftformer.simulation.summary import CHANCE

BOARD, PROFILES = "board", "profiles"


def board_figures(board: Leaderboard) -> Figures:
    """Every agent's scores in all worlds and its interquartile mean; and its performance profile."""
    rows = [
        {
            "agent": one.agent,
            "overall": one.overall
            and [round(value, 2) for value in (one.overall.mean, one.overall.low, one.overall.high)],
            "worlds": [[title, round(mean, 1)] for title, mean in one.means.items()],
        }
        for one in board.standings
    ]
    lines = {
        agent: {"y": _few(share), "low": _few(low), "high": _few(high)}
        for agent, (share, low, high) in board.profiles.items()
    }
    return {
        BOARD: {"kind": "board", "rows": rows, "zero": CHANCE, "top": board.top},
        PROFILES: {"kind": "profiles", "x": LEVELS.tolist(), "lines": lines},
    }


def _few(values: object) -> list[float]:
    return [round(float(value), 4) for value in values]  # type: ignore[attr-defined]


BOARD_NOTE = f"""A score is 0 for <code>{CHANCE}</code> play and 100 for the best arm of every round in the same world.
Large dots are interquartile means over all problems with 95% intervals (stratified bootstrap over problems); small dots
are worlds, hollow where an agent did not play them all."""


def board_section(board: Leaderboard) -> Section:
    """The table behind the picture, and the profiles."""
    heads = (
        "Agent",
        "Interquartile mean (95%)",
        "P(first is better)",
        *(escaped(world.title) for world in board.worlds),
    )
    rows = []
    for one in board.standings:
        cells = [f"{one.means[world.title]:.0f}" if world.title in one.means else "–" for world in board.worlds]
        overall = written(one.overall) if one.overall else f"played {len(one.means)} of {len(board.worlds)}"
        rows.append((linked(one.agent) + " *" * one.privileged, overall, likely(one.beaten_by_first), *cells))
    caption = "Scores: mean in each world, and over all of them. * knows what no real agent can."
    text = f"""<p>Who is good everywhere? {BOARD_NOTE} <i>P(first is better)</i> is the probability that the first agent
does better on a problem than this one does on a problem of the same world. Definitions: Agarwal and others, “Deep
reinforcement learning at the edge of the statistical precipice” (2021).</p>
{table(heads, rows, caption)}
<p>For each score, the share of problems on which an agent reaches more (performance profiles): higher is better.</p>
{figure(PROFILES)}"""
    return Section("leaderboard", "All agents, all worlds", text, "Leaderboard")
