"""Which agent to take for one's own data: all sensible ones play it in its own order.

Each agent passes once through the table, a row a round, and sees only what the arms that it chose paid (progressive
validation: every choice comes before its reward). So the drift that is in the data is part of the test. Agents that
draw lots play the same rounds several times with different luck. Intervals are over consecutive stretches of rounds:
see `paired.py`.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Grid

from driftformer.agents.first import First
from driftformer.agents.registry import POLICY, make_agent
from driftformer.environments.table import Table
from driftformer.errors import InputError, require_count
from driftformer.evaluation.evaluate import evaluate
from driftformer.evaluation.fitting import FittingTable
from driftformer.evaluation.paired import Interval, bootstrapped, stretches
from driftformer.simulation.rollout import Array
from driftformer.storage.files import write_json

SENSIBLE = (
    "random",
    "greedy",
    "epsilon-greedy@epsilon=0.05",
    "linucb",
    "linucb@alpha=0.25",
    "thompson@variance=0.05",
    "discounted-linucb@gamma=0.999,alpha=0.25",
    "discounted-linucb@gamma=0.99,alpha=0.25",
    "discounted-linucb@gamma=0.95,alpha=0.25",
    "sliding-window-linucb@window=200,alpha=0.25",
    "adaptive-linucb",
    "policy:drift",
)
"""What is tried unless other agents are named."""

STRETCHES = 20
LUCK = 4
"""How often the same rounds are played."""
LEAST_ROUNDS = 5 * STRETCHES
LEAST_OF_EACH = 10
"""Rounds for each arm."""


@dataclass(frozen=True)
class Standing:
    """How one agent did."""

    agent: str
    reward: float  # a round, on average
    score: float  # 0 = random, 100 = the best arm of every round
    behind: Interval  # reward a round that it earned less than the first one


@dataclass(frozen=True)
class Choice:
    """What `choose` found, the best agent first.

    >>> rng = np.random.default_rng(0)
    >>> context = rng.normal(size=(400, 2))
    >>> best = (context[:, 0] > 0).astype(int)  # which of two arms pays 1
    >>> choice = df.choose((context, best), agents=["greedy", "linucb"], progress=False)
    >>> choice.best.agent
    'greedy'
    >>> choice.code
    'service = df.make_agent("greedy").online(arms=2, scale=True)'
    """

    description: str
    rounds: int
    arms: int
    standings: tuple[Standing, ...]

    @property
    def best(self) -> Standing:
        return self.standings[0]

    @property
    def level(self) -> list[str]:
        """Agents that cannot be told from the best one: their intervals hold 0."""
        return [row.agent for row in self.standings[1:] if row.behind.low <= 0]

    @property
    def _chance(self) -> bool:
        return self.best.agent == "random" or "random" in self.level

    @property
    def code(self) -> str:
        """A line of Python that puts the best agent to work; empty if none is better than chance."""
        return (
            "" if self._chance else f'service = df.make_agent("{self.best.agent}").online(arms={self.arms}, scale=True)'
        )

    def advice(self) -> list[str]:
        """What to take, and how sure that is, for people."""
        best, apart = self.best, [row for row in self.standings[1:] if row.behind.low > 0]
        if self._chance:
            return ["No agent is ahead of choosing at random: these features do not tell the arms apart."]
        told = f"Take {best.agent}: {best.reward:.4g} of reward a round, a score of {best.score:.1f}."
        lines = [told]
        if apart:
            gap = apart[0].behind
            lines.append(
                f"It is ahead of {apart[0].agent} by {gap.mean:.3g} a round, 95% interval [{gap.low:.3g}, "
                f"{gap.high:.3g}], and of {len(apart)} of {len(self.standings) - 1} agents clearly."
            )
        if self.level:
            lines.append(f"Too close to tell from it: {', '.join(self.level)}.")
        return lines

    def render(self) -> Grid:
        caption = "score: 0 = random, 100 = the best arm of every round; less than the first: reward a round, "
        caption += f"95% interval over {STRETCHES} stretches of rounds"
        grid = FittingTable(f"\n{self.description}", spared=("reward", "less than the first"), notes={"": caption})
        grid.add_column("agent")
        for heading in ("reward", "score", "less than the first"):
            grid.add_column(heading, justify="right")
        for row in self.standings:
            gap = row.behind
            told = "" if row is self.best else f"{gap.mean:.3g} [{gap.low:.3g}, {gap.high:.3g}]"
            grid.add_row(row.agent, f"{row.reward:.4g}", f"{row.score:.1f}", told)
        return grid

    def table(self) -> str:
        """The same as plain text."""
        page = io.StringIO()
        Console(file=page, width=90, force_jupyter=False, force_terminal=False).print(self.render())
        return page.getvalue()

    def to_json(self) -> dict[str, Any]:
        rows = [{**vars(row), "behind": vars(row.behind)} for row in self.standings]
        return {"description": self.description, "rounds": self.rounds, "arms": self.arms, "standings": rows}


def choose(
    data: Any,
    *,
    target: str = "",
    rewards: Sequence[str] = (),
    drop: Sequence[str] = (),
    fill: bool = False,
    agents: Sequence[str] = SENSIBLE,
    horizon: int = 0,
    seed: int = 0,
    out: Path | str | None = None,
    progress: bool | None = None,
) -> Choice:
    """Play agents on one's own data in its own order, and say which to take.

    `data`, `target`, `rewards`, `drop` and `fill` are those of the environment `table`: a .csv or .parquet file, the
    name of a built-in table, or a pair of arrays. `horizon` plays only the first rows. With `out`, results are kept
    there, and only what it lacks is computed. An agent whose memory is longer than the data is left out.

    >>> choice = df.choose("iris", agents=["greedy", "adaptive-linucb"], progress=False)
    >>> print(choice.advice()[0])
    Take adaptive-linucb: 0.96 of reward a round, a score of 94.0.
    """
    require_count("horizon", horizon, 0)
    for option, given in (("rewards", rewards), ("drop", drop), ("agents", agents)):
        if isinstance(given, str):
            raise InputError(f"{option} is {given!r:.60}; give a list")
    environment = Table(
        data=data, target=target, rewards=tuple(rewards), drop=tuple(drop), fill=fill, horizon=horizon, order="stored"
    ).build()
    if environment.horizon < LEAST_ROUNDS:
        raise InputError(
            f"data has {environment.horizon} rounds, too few to tell agents apart; give at least {LEAST_ROUNDS}"
        )
    if environment.arms * LEAST_OF_EACH > environment.horizon:
        raise InputError(
            f"data has {environment.arms} classes in {environment.horizon} rounds, too few to learn of each; choose "
            "another target, or give rewards, a column for each arm"
        )
    named = dict.fromkeys(["random", *agents])
    players = {name: First(make_agent(name), LUCK) for name in named if _fits(name, environment.horizon)}
    if len(players) < 2:
        raise InputError("agents is empty; name some, or leave it out")
    found = evaluate(environment, players, runs=LUCK, seed=seed, out=out, progress=progress).summary
    best_arm = float(np.asarray(_best_rewards(environment)).mean())
    losses = {name: stretches(row.suboptimality_curve, STRETCHES) for name, row in found.agents.items()}
    choice = Choice(found.description, found.horizon, environment.arms, _ranked(losses, environment.horizon, best_arm))
    if out is not None:
        write_json(Path(out) / "choice.json", choice.to_json())
    return choice


def _fits(name: str, horizon: int) -> bool:
    return getattr(make_agent(name), "window", 0) <= horizon


def _best_rewards(environment: Any) -> Array:
    """What the best arm of each round pays, `[T]`."""
    pays = environment.data.pays[: environment.horizon]
    best: Array = np.ones(len(pays)) if pays.ndim == 1 else pays.max(axis=1)
    return best


def _ranked(losses: dict[str, Array], rounds: int, best_arm: float) -> tuple[Standing, ...]:
    order = sorted(losses, key=lambda name: (float(losses[name].sum()), POLICY in name))
    first, chance = losses[order[0]], float(losses["random"].sum())
    rows = []
    for name in order:
        loss = float(losses[name].sum())
        behind = bootstrapped((losses[name] - first) * len(first) / rounds)
        score = 100 * (1 - loss / chance) if chance else 0.0
        rows.append(Standing(name, best_arm - loss / rounds, score, behind))
    return tuple(rows)
