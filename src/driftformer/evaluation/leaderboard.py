"""All agents and all worlds on one board, from the summaries of evaluations alone, whatever they are of.

Evaluations of the same world, with the same seed and as many problems, are one world on the board: agents that were
played one after the other stand beside each other. Who did not play every world has scores in those that it played, but
no place in the order, since easier worlds would lift it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftformer.errors import InputError
from driftformer.evaluation.aggregates import TOP, improvement, profile, scores
from driftformer.evaluation.paired import Interval, interquartile
from driftformer.simulation.rollout import Array
from driftformer.simulation.summary import CHANCE, Summary, read_summary

SUMMARY = "summary.json"
LEVELS = np.linspace(0, TOP, 101)
"""Scores at which performance profiles are measured."""
_DEEPEST = 3
"""Folders inside a folder that are looked through for evaluations."""


@dataclass(frozen=True)
class World:
    """One environment, and the regret of every agent on the same problems."""

    title: str
    description: str
    runs: int
    seed: int
    regrets: dict[str, Array]  # by agent, [runs]
    privileged: frozenset[str]


@dataclass(frozen=True)
class Standing:
    """One agent on the board."""

    agent: str
    privileged: bool
    means: dict[str, float]  # its mean score in each world that it played
    overall: Interval | None  # its interquartile mean, if it played them all
    beaten_by_first: Interval | None  # the probability that the first one does better, of those in the order


@dataclass(frozen=True)
class Leaderboard:
    """Agents in order of their interquartile means, then those that did not play every world."""

    worlds: tuple[World, ...]
    standings: tuple[Standing, ...]
    profiles: dict[str, tuple[Array, Array, Array]]  # by agent: the shares above each of LEVELS, and their intervals
    against: str

    @property
    def top(self) -> str:
        """What has the score 100, in words."""
        return self.against or "the best arm of every round"

    @property
    def first(self) -> Standing | None:
        """The best of those that know no more than an agent can."""
        return next(iter(self._able), None)

    @property
    def second(self) -> Standing | None:
        """The next best of those."""
        return self._able[1] if len(self._able) > 1 else None

    @property
    def _able(self) -> list[Standing]:
        return [one for one in self.standings if one.overall and not one.privileged]


def leaderboard(worlds: Sequence[World], against: str = "") -> Leaderboard:
    """Put every agent in its place; scores are `against` an agent of that name, or the best arm of every round."""
    if not worlds:
        raise InputError("there is no world to compare agents on; name the --out of an evaluation")
    found = {world.title: _scores(world, against) for world in worlds}
    names = list(dict.fromkeys(agent for world in worlds for agent in world.regrets if agent != CHANCE))
    if not names:
        raise InputError(f"only {CHANCE} plays here; evaluate other agents too")
    held = {name: [rows[name] for rows in found.values() if name in rows] for name in names}
    overall = {name: interquartile(some) for name, some in held.items() if len(some) == len(worlds)}
    knowing = frozenset[str]().union(*(world.privileged for world in worlds))
    order = sorted(overall, key=lambda name: -overall[name].mean)
    order += sorted(
        (name for name in names if name not in overall),
        key=lambda name: (-len(held[name]), -float(np.mean([some.mean() for some in held[name]]))),
    )
    first = next((name for name in order if name in overall and name not in knowing), None)
    standings = tuple(
        Standing(
            agent=name,
            privileged=name in knowing,
            means={title: float(rows[name].mean()) for title, rows in found.items() if name in rows},
            overall=overall.get(name),
            beaten_by_first=improvement(held[first], held[name])
            if first and name in overall and name != first
            else None,
        )
        for name in order
    )
    return Leaderboard(tuple(worlds), standings, {name: profile(held[name], LEVELS) for name in overall}, against)


def _scores(world: World, against: str) -> dict[str, Array]:
    for name in (CHANCE, against):
        if name and name not in world.regrets:
            raise InputError(
                f"world '{world.title}' has no results of {name}, which is one end of the scale; add it with "
                f"`driftformer evaluate … --agents {name}` and the others"
            )
    chance = float(world.regrets[CHANCE].mean())
    best = float(world.regrets[against].mean()) if against else 0.0
    if not chance > best:
        raise InputError(f"world '{world.title}' has no scale: chance loses no more there than {against or 'the best'}")
    return {name: scores(regrets, chance, best) for name, regrets in world.regrets.items() if name != CHANCE}


def worlds_of(summaries: Iterable[tuple[str, Summary]]) -> list[World]:
    """Summaries, each with a title, as worlds; those of the same world are joined."""
    worlds: dict[str, World] = {}
    for title, summary in summaries:
        key = json.dumps(summary.environment, sort_keys=True)
        world = _world(title, summary)
        worlds[key] = _joined(worlds[key], world) if key in worlds else world
    return list(worlds.values())


def _world(title: str, summary: Summary) -> World:
    regrets = {name: np.array(row.regret_runs) for name, row in summary.agents.items()}
    privileged = frozenset(name for name, row in summary.agents.items() if row.privileged)
    return World(title, summary.description, summary.runs, summary.seed, regrets, privileged)


def _joined(one: World, other: World) -> World:
    for what in ("seed", "runs"):
        if getattr(one, what) != getattr(other, what):
            raise InputError(
                f"'{one.title}' and '{other.title}' are the same world with {what} {getattr(one, what)} and "
                f"{getattr(other, what)}; name one of them, or run both with the same"
            )
    regrets, privileged = other.regrets | one.regrets, one.privileged | other.privileged
    return World(one.title, one.description, one.runs, one.seed, regrets, privileged)


def read_worlds(folders: Sequence[Path]) -> list[World]:
    """The worlds in some folders: evaluations, or folders that hold evaluations."""
    if not folders:
        raise InputError("folders is empty; name at least one, the --out of an evaluation")
    paths = [path for folder in folders for path in _evaluations(folder)]
    above = Path(os.path.commonpath([path.parent.absolute() for path in paths]))
    if len(paths) == 1:
        above = above.parent
    titles = [path.parent.absolute().relative_to(above).as_posix() for path in paths]
    return worlds_of((title, read_summary(path)) for title, path in zip(titles, paths, strict=True))


def _evaluations(folder: Path) -> list[Path]:
    """The summaries in a folder."""
    if not folder.is_dir():
        raise InputError(f"folder is '{folder}', which is not there; name the --out of an evaluation")
    if (folder / SUMMARY).exists():
        return [folder / SUMMARY]
    found = sorted(path for depth in range(1, _DEEPEST + 1) for path in folder.glob("*/" * depth + SUMMARY))
    if not found:
        raise InputError(
            f"folder '{folder}' holds no finished evaluation; name the --out of `driftformer evaluate` or `reproduce`"
        )
    return found


def verdict(board: Leaderboard) -> str:
    """Who leads, in a sentence; names of agents are in backticks."""
    first = board.first
    if first is None or first.overall is None:
        return "No agent that can win has played every world."
    many = f"over {len(board.worlds)} worlds" if len(board.worlds) > 1 else "in this world"
    lead = f"`{first.agent}` leads {many} with a score of {first.overall.mean:.1f}"
    second = board.second
    if second is None or second.overall is None or second.beaten_by_first is None:
        return f"{lead}."
    sure = "" if second.beaten_by_first.low > 0.5 else "; that may be chance"
    return f"{lead}, {first.overall.mean - second.overall.mean:.1f} above the next, `{second.agent}`{sure}."


def evidence(board: Leaderboard) -> str:
    """How sure that is."""
    first, second = board.first, board.second
    if first is None or first.overall is None or second is None or second.beaten_by_first is None:
        return ""
    better = second.beaten_by_first
    return (
        f"Its interquartile mean is {written(first.overall)}; on a problem it does better than `{second.agent}` with "
        f"probability {likely(better)}."
    )


def written(interval: Interval) -> str:
    """A score with its interval."""
    return f"{interval.mean:.1f} [{interval.low:.1f}, {interval.high:.1f}]"


def rows(board: Leaderboard) -> list[list[str]]:
    """An agent in each row: its score, how likely the first is better, and its score in each world."""
    titles = [world.title for world in board.worlds]
    lines = []
    for one in board.standings:
        overall = written(one.overall) if one.overall else f"{len(one.means)} of {len(board.worlds)} worlds"
        cells = [str(round(one.means[title])) if title in one.means else "–" for title in titles]
        lines.append([one.agent + " *" * one.privileged, overall, likely(one.beaten_by_first), *cells])
    return lines


def likely(chance: Interval | None) -> str:
    """A probability with its interval."""
    return "" if chance is None else f"{chance.mean:.0%} [{chance.low:.0%}, {chance.high:.0%}]"


def draw(board: Leaderboard, path: Path) -> None:
    """The board as one picture: scores in all worlds, and performance profiles."""
    from driftformer.plots.leaderboard import Row, draw_leaderboard

    drawn = []
    for one in board.standings:
        interval = None if one.overall is None else (one.overall.mean, one.overall.low, one.overall.high)
        drawn.append(Row(one.agent, tuple(one.means.values()), interval))
    draw_leaderboard(drawn, LEVELS, board.profiles, board.top, path)


def to_json(board: Leaderboard) -> dict[str, Any]:
    """The board as plain data, for other programs."""

    def plain(interval: Interval | None) -> Mapping[str, float] | None:
        return None if interval is None else vars(interval)

    return {
        "scale": {"0": CHANCE, "100": board.top},
        "worlds": [
            {name: getattr(world, name) for name in ("title", "description", "runs", "seed")} for world in board.worlds
        ],
        "standings": [
            {
                "agent": one.agent,
                "privileged": one.privileged,
                "interquartile_mean": plain(one.overall),
                "probability_that_the_first_is_better": plain(one.beaten_by_first),
                "scores": one.means,
            }
            for one in board.standings
        ],
        "profiles": {
            agent: {"level": LEVELS.tolist(), "share": share.tolist(), "low": low.tolist(), "high": high.tolist()}
            for agent, (share, low, high) in board.profiles.items()
        },
    }
