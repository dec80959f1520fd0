"""The bake-off: agents, ours and other libraries', on streams made of real tables, with and without drift.

OUT/bakeoff.json              settings, scores of all agents on all streams, what they add up to
OUT/bakeoff.md                the same as tables for the docs
OUT/bakeoff.png, .svg         interquartile means with their intervals
OUT/streams/NAME/             the results of one evaluation (see `evaluate`): a second call only adds up

A stream is a table, a way to offer it, and a drift. *Item*: five random rows are on offer, those of the wanted class
pay 1. *Value*: the same, and every row pays by a random linear law of its features, with noise. *Block*: a row is the
context, its classes are the arms, and each arm has a block of features to itself. The score of an agent is 0 for random
play and 100 for the best arm of every round. In a table's own order there is one problem only; the units of its
statistics are consecutive stretches of rounds instead of problems (`evaluation/paired.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np

from driftformer.agents.base import Agent
from driftformer.agents.first import First
from driftformer.agents.peers import PEERS, Peer, installed
from driftformer.agents.registry import full_label, make_agent
from driftformer.environments.items import Items
from driftformer.environments.presets import Preset
from driftformer.environments.table import Change, Table
from driftformer.environments.table_sources import AIRPORTS, GENERATED
from driftformer.errors import InputError, require_count, unknown_name
from driftformer.evaluation.evaluate import Plan, compute_missing
from driftformer.evaluation.paired import Interval, interquartile, sign_flip_p, stretches
from driftformer.plots.bakeoff import draw_bakeoff
from driftformer.randomness import CHUNK
from driftformer.simulation.engines import opened
from driftformer.simulation.rollout import Array
from driftformer.simulation.summary import Summary
from driftformer.storage.files import tidy, write_atomically, write_json

Family = Literal["item", "value", "block"]
FAMILIES: tuple[Family, ...] = ("item", "value", "block")
DRIFTS = {"none": "at rest", "abrupt": "abrupt", "gradual": "gradual", "own": "own order"}
_CHANGE: dict[str, Change] = {"none": "none", "abrupt": "permute", "gradual": "handover", "own": "none"}

TABLES: dict[Family, tuple[str, ...]] = {
    "item": ("image-segments", "breast-cancer", "phishing"),
    "value": ("image-segments", "phishing"),
    "block": ("image-segments", "phishing", "shuttle"),
}
OWN_ORDER = ("image-segments", "phishing", "shuttle", "bananas", AIRPORTS, *GENERATED)

AGENTS = (
    "greedy",
    "epsilon-greedy@epsilon=0.05",
    "linucb",
    "linucb@alpha=0.25",
    "thompson@variance=0.05",
    "discounted-linucb",
    "discounted-linucb@gamma=0.99,alpha=0.25",
    "sliding-window-linucb@window=200,alpha=0.25",
    "adaptive-linucb",
    "policy:drift",
)
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class BakeOff:
    """What is played."""

    horizon: int = 1000
    """Rounds of each stream; fewer where a table in blocks has fewer rows."""
    problems: int = 10
    """Of each stream; so many stretches of rounds in a table's own order."""
    changes: int = 2
    """In random rounds of each problem."""
    agents: tuple[str, ...] = AGENTS
    peers: tuple[str, ...] = tuple(peer.name for peer in PEERS)
    tables: tuple[str, ...] = ()
    """Only streams of these; empty: all."""
    seed: int = 0

    def __post_init__(self) -> None:
        require_count("horizon", self.horizon, 50)
        require_count("problems", self.problems, 6, most=CHUNK)  # with five, no difference would be significant
        require_count("changes", self.changes)
        known = {*itertools.chain(*TABLES.values()), *OWN_ORDER}
        for name in self.tables:
            if name not in known:
                raise unknown_name("tables", name, known)
        for name in self.peers:
            if name not in (names := [peer.name for peer in PEERS]):
                raise unknown_name("peers", name, names)


@dataclass(frozen=True)
class Stream:
    """One way to play one table."""

    family: Family
    data: str
    drift: str
    preset: Preset

    @property
    def name(self) -> str:
        return f"{self.family}-{self.data}-{self.drift}"


@dataclass(frozen=True)
class Found:
    """Scores of every agent on every stream: `[units]` each, 0 = random, 100 = the best arm of every round."""

    scores: dict[str, dict[str, Array]]  # by stream and agent
    streams: dict[str, Stream]
    settings: BakeOff
    missing: tuple[str, ...] = ()  # peers whose package is not installed
    labels: dict[str, str] = field(default_factory=dict)  # each agent with all its options

    @cached_property
    def agents(self) -> list[str]:
        """The best ones first, by their interquartile mean over all streams."""
        names = list(self.labels)
        return sorted(names, key=lambda name: -self.overall(name).mean)

    def of(self, agent: str, family: str = "", drift: str = "") -> list[Array]:
        """An agent's scores on some streams."""
        chosen = (one for one in self.streams.values() if one.family in (family or one.family))
        return [self.scores[one.name][agent] for one in chosen if one.drift in (drift or one.drift)]

    def mean(self, agent: str, family: str, drift: str) -> float | None:
        held = [float(units.mean()) for units in self.of(agent, family, drift)]
        return sum(held) / len(held) if held else None

    def overall(self, agent: str, drift: str = "") -> Interval:
        return interquartile(self.of(agent, drift=drift))

    @cached_property
    def wins(self) -> dict[tuple[str, str], int]:
        """On how many streams one agent is significantly ahead of another."""
        won = dict.fromkeys(itertools.permutations(self.labels, 2), 0)
        for scores in self.scores.values():
            for one, other in itertools.combinations(self.labels, 2):
                gaps = scores[one] - scores[other]
                if sign_flip_p(gaps) < SIGNIFICANT:
                    won[(one, other) if gaps.sum() > 0 else (other, one)] += 1
        return won

    def to_json(self) -> dict[str, Any]:
        return {
            "settings": {
                key: list(value) if isinstance(value, tuple) else value for key, value in vars(self.settings).items()
            },
            "agents": self.labels,
            "missing": list(self.missing),
            "tables": score_tables(self),
            "scores": {
                stream: {agent: units.tolist() for agent, units in rows.items()} for stream, rows in self.scores.items()
            },
            "wins": {
                one: {other: self.wins[one, other] for other in self.agents if other != one} for one in self.agents
            },
        }


def streams_of(settings: BakeOff) -> list[Stream]:
    """All streams, tables that have fewer rows than rounds played as far as they go."""
    made = []
    for family, drift in itertools.product(FAMILIES, DRIFTS):
        tables = OWN_ORDER if (family, drift) == ("block", "own") else () if drift == "own" else TABLES[family]
        for data in tables:
            if not settings.tables or data in settings.tables:
                made.append(Stream(family, data, drift, _preset(settings, family, data, drift)))
    return made


def _preset(settings: BakeOff, family: Family, data: str, drift: str) -> Preset:
    change, width = _CHANGE[drift], max(1, settings.horizon // 5)
    if family != "block":
        return Items(
            data=data,
            pays="linear" if family == "value" else "class",
            horizon=settings.horizon,
            change=change,
            changes=settings.changes,
            width=width,
        )
    rows = len(Table(data=data).build().data.contexts)
    return Table(
        data=data,
        horizon=min(settings.horizon, rows) if drift != "own" else min(2 * settings.horizon, rows),
        order="stored" if drift == "own" else "shuffled",
        change=change,
        changes=settings.changes,
        width=min(width, rows // 5),
    )


def bakeoff(settings: BakeOff, out: Path, *, workers: int | None = None) -> Found:
    """Compute what `out` lacks, and add it all up."""
    tidy(out)
    peers, missing = _peers(settings.peers)
    ours: dict[str, Agent] = {name: make_agent(name) for name in ("random", *settings.agents)}
    players = {name: First(agent, settings.problems) for name, agent in (ours | peers).items()}
    streams = {stream.name: stream for stream in streams_of(settings)}
    if not streams:
        raise InputError("tables leaves no stream; name others")
    with nullcontext() if workers in (None, 1) else opened("local", workers, None) as crew:
        plans = {
            name: Plan(
                stream.preset.build(),
                players,
                runs=settings.problems,
                seed=settings.seed,
                out=out / "streams" / name,
            )
            for name, stream in streams.items()
        }
        compute_missing(list(plans.values()), crew, f"{len(plans)} streams", out, "streams")
    scores = {name: _scores(plans[name].finish().summary, streams[name], settings.problems) for name in streams}
    labels = {name: full_label(agent) for name, agent in (ours | peers).items() if name != "random"}
    found = Found(scores, streams, settings, missing, labels)
    write_json(out / "bakeoff.json", found.to_json())
    write_atomically(out / "bakeoff.md", ("\n".join(markdown(found)) + "\n").encode())
    return found


def _peers(names: Sequence[str]) -> tuple[dict[str, Peer], tuple[str, ...]]:
    """The peers that can be played, and those whose package is missing."""
    peers: dict[str, Peer] = {}
    missing = []
    for kind in PEERS:
        if kind.name in names:
            try:
                installed(kind.package)
                peers[kind.name] = kind()
            except InputError:
                missing.append(kind.name)
    return peers, tuple(missing)


def _scores(summary: Summary, stream: Stream, units: int) -> dict[str, Array]:
    """The score of each agent on each unit: a problem, or a stretch of rounds."""
    rows = summary.agents.items()
    if stream.drift == "own":
        losses = {name: stretches(row.suboptimality_curve, units) for name, row in rows}
    else:
        losses = {name: np.array(row.regret_runs) for name, row in rows}
    chance = float(losses["random"].mean())
    return {name: 100 * (1 - loss / chance) for name, loss in losses.items() if name != "random"}


HEADS = ("agent", *FAMILIES, "interquartile mean")


def score_tables(found: Found) -> dict[str, list[tuple[str, ...]]]:
    """A table for each drift; for each agent its mean score in each family, and its interquartile mean."""
    tables: dict[str, list[tuple[str, ...]]] = {}
    for drift, title in DRIFTS.items():
        if not any(stream.drift == drift for stream in found.streams.values()):
            continue
        tables[title] = []
        for agent in found.agents:
            means = [found.mean(agent, family, drift) for family in FAMILIES]
            whole = found.overall(agent, drift)
            cells = ["–" if mean is None else f"{mean:.0f}" for mean in means]
            tables[title].append((agent, *cells, f"{whole.mean:.1f} [{whole.low:.1f}, {whole.high:.1f}]"))
    return tables


def win_rows(found: Found) -> list[tuple[str, ...]]:
    """On how many streams the agent of the row is significantly ahead of the one of the column; then all of them."""
    rows = []
    for place, agent in enumerate(found.agents, 1):
        ahead = {rival: found.wins[agent, rival] for rival in found.agents if rival != agent}
        behind = sum(found.wins[rival, agent] for rival in ahead)
        cells = [str(ahead[rival]) if rival in ahead else "·" for rival in found.agents]
        rows.append((f"{place} {agent}", *cells, f"{sum(ahead.values())}", f"{behind}"))
    return rows


def markdown(found: Found) -> list[str]:
    """What stands in the docs."""
    settings = found.settings
    lines = [
        f"{len(found.streams)} streams, T = {settings.horizon:,}, {settings.problems} problems each, "
        f"{settings.changes} changes, seed {settings.seed}."
    ]
    packages = sorted({peer.package for peer in PEERS if peer.name in found.labels})
    if packages:
        lines[0] += f" With {', '.join(f'{package} {version(package)}' for package in packages)}."
    if found.missing:
        lines.append(f"Not installed, so not played: {', '.join(found.missing)}.")
    for title, rows in score_tables(found).items():
        lines += ["", f"| {title} | item | value | block | interquartile mean |", "|---|---:|---:|---:|---:|"]
        lines += [f"| `{row[0]}` | {' | '.join(row[1:])} |" for row in rows]
    names = found.agents
    lines += ["", "| ahead of | " + " | ".join(map(str, range(1, len(names) + 1))) + " | wins | losses |"]
    lines.append("|---|" + "---:|" * (len(names) + 2))
    lines += [f"| {' | '.join(row)} |" for row in win_rows(found)]
    return lines


def draw(found: Found, out: Path) -> None:
    """The figure, as PNG and SVG."""
    held = {stream.drift for stream in found.streams.values()}
    panels = {
        title: {
            agent: (whole.mean, whole.low, whole.high)
            for agent in found.agents
            for whole in [found.overall(agent, drift)]
        }
        for drift, title in DRIFTS.items()
        if drift in held
    }
    for ending in ("png", "svg"):
        draw_bakeoff(panels, found.agents, out / f"bakeoff.{ending}")
