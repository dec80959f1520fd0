"""What an evaluation found, as a typed value: stored as `summary.json`, and read back exactly as it was written.

It holds results only, no times, so equal evaluations have equal summaries. Of the environment it knows the config, as
plain data, and its description in one line; it expects nothing else of either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from driftformer.errors import InputError
from driftformer.simulation.numbers import signed, with_error
from driftformer.storage.files import read_json

FORMAT = 4
"""Changes when the fields of a summary do."""

_LARGEST = 2**30
"""Bytes of a summary: curves of many agents over a million rounds."""

Numbers = tuple[float, ...]

CHANCE = "random"
"""The agent that plays by chance."""


@dataclass(frozen=True)
class PairedDifference:
    """How much more regret `agent` has than `reference` on the same problems, with a 95% bootstrap interval."""

    agent: str
    reference: str
    runs: int
    mean: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """With its sign and, where there is one, its interval."""
        interval = f" [{signed(self.low)}, {signed(self.high)}]" if self.runs > 1 else ""
        return signed(self.mean) + interval

    @property
    def reversed(self) -> PairedDifference:
        """The same difference seen from the other agent."""
        return PairedDifference(self.reference, self.agent, self.runs, -self.mean, -self.high, -self.low)


@dataclass(frozen=True, repr=False)
class AgentSummary:
    """One agent's dynamic regret."""

    privileged: bool
    runs: int
    regret_mean: float
    regret_stderr: float | None  # None after a single run
    regret_std: float | None
    regret_runs: Numbers  # [runs] after the last round
    regret_curve: Numbers  # [T] the mean over runs
    regret_curve_std: Numbers
    regret_curve_stderr: Numbers
    suboptimality_curve: Numbers
    suboptimality_curve_std: Numbers
    suboptimality_curve_stderr: Numbers
    diagnostics: dict[str, dict[str, float]]  # what the agent reports about itself: the mean and the max over runs

    def __repr__(self) -> str:
        return f"AgentSummary(regret {with_error(self.regret_mean, self.regret_stderr)}, {self.runs} runs)"


@dataclass(frozen=True, repr=False)
class Summary:
    """Some agents on the same problems of one environment."""

    environment: dict[str, Any]
    description: str
    horizon: int
    runs: int
    seed: int
    agents: dict[str, AgentSummary]
    paired_differences: tuple[PairedDifference, ...]

    def __repr__(self) -> str:
        return f"Summary({self.title}: {', '.join(self.ranking)})"

    @property
    def title(self) -> str:
        return f"{self.description}, {self.runs} runs, seed {self.seed}"

    @property
    def stages(self) -> int:
        """Steps of an episode, over which what happens in a round is shown on average; 1 where there are none."""
        stages = self.environment.get("stages", 1)
        return stages if isinstance(stages, int) and stages > 0 and self.horizon % stages == 0 else 1

    @property
    def ranking(self) -> list[str]:
        """Agents by their mean regret, the best one first."""
        return sorted(self.agents, key=lambda name: self.agents[name].regret_mean)

    @property
    def contenders(self) -> list[str]:
        """The agents that can win, the best one first: not chance and not the privileged, the ends of the scale."""
        return [name for name in self.ranking if not self.agents[name].privileged and name != CHANCE]

    def difference(self, agent: str, reference: str) -> PairedDifference:
        """How much more regret one agent has than another, whichever way round it is stored."""
        for pair in self.paired_differences:
            if (pair.agent, pair.reference) == (agent, reference):
                return pair
            if (pair.agent, pair.reference) == (reference, agent):
                return pair.reversed
        raise KeyError(f"{agent} and {reference} were not compared")

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            **vars(self),
            "agents": {name: _plain(row) for name, row in self.agents.items()},
            "paired_differences": [_plain(pair) for pair in self.paired_differences],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], source: str = "summary") -> Summary:
        """A summary from its JSON; errors name the `source`."""
        version = stored.get("format", 0)
        if type(version) is int and version < FORMAT:
            raise InputError(f"{source} is of an earlier version of driftformer; run the evaluation again")
        try:
            _require(version == FORMAT, f"its format is {version!r:.20}")
            return _read({key: value for key, value in stored.items() if key != "format"})
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise InputError(f"{source} is broken ({error}); delete it and run the evaluation again") from None


def read_summary(path: Path) -> Summary:
    """A stored summary, or an error that names the file."""
    return Summary.from_json(read_json(path, _LARGEST), f"results file {path}")


def _plain(value: AgentSummary | PairedDifference) -> dict[str, Any]:
    return {name: list(held) if isinstance(held, tuple) else held for name, held in vars(value).items()}


def _read(stored: dict[str, Any]) -> Summary:
    _require_fields(Summary, stored)
    summary = Summary(**stored)
    _require(isinstance(summary.environment, dict), "its environment is no object")
    _require(isinstance(summary.description, str), "its description is no text")
    _require(all(type(stored[name]) is int for name in ("horizon", "runs", "seed")), "a count is no whole number")
    _require(isinstance(summary.agents, dict) and bool(summary.agents), "it has no agents")
    agents = {name: _read_agent(row, summary) for name, row in stored["agents"].items()}
    pairs = tuple(_read_pair(pair, agents) for pair in stored["paired_differences"])
    compared = {frozenset((pair.agent, pair.reference)) for pair in pairs}
    _require(compared == set(map(frozenset, combinations(agents, 2))), "it does not compare all of its agents")
    return replace(summary, agents=agents, paired_differences=pairs)


def _read_agent(stored: dict[str, Any], summary: Summary) -> AgentSummary:
    _require_fields(AgentSummary, stored)
    runs = stored["runs"]
    _require(type(runs) is int and runs == summary.runs, "an agent played other problems")
    _require(isinstance(stored["privileged"], bool), "privileged is neither true nor false")
    _require_numbers([stored["regret_mean"]])
    spread = [stored["regret_stderr"], stored["regret_std"]]
    _require_numbers(spread if runs > 1 or spread != [None, None] else [])
    _require_numbers(stored["regret_runs"], runs)
    curves = {name: tuple(stored[name]) for name in stored if "_curve" in name}
    for curve in curves.values():
        _require_numbers(curve, summary.horizon)
    for reported in stored["diagnostics"].values():
        _require(reported.keys() == {"mean", "max"}, "diagnostics are not a mean and a max")
        _require_numbers(reported.values())
    return AgentSummary(**{**stored, **curves, "regret_runs": tuple(stored["regret_runs"])})


def _read_pair(stored: dict[str, Any], agents: Mapping[str, AgentSummary]) -> PairedDifference:
    _require_fields(PairedDifference, stored)
    pair = PairedDifference(**stored)
    _require(pair.agent in agents and pair.reference in agents, "a difference is of unknown agents")
    _require(type(pair.runs) is int, "a count is no whole number")
    _require_numbers([pair.mean, pair.low, pair.high])
    return pair


def _require(sound: bool, why: str) -> None:
    if not sound:
        raise ValueError(why)


def _require_fields(kind: type, stored: Any) -> None:
    names = {field.name for field in fields(kind)}
    _require(isinstance(stored, dict) and stored.keys() == names, f"it is no {kind.__name__}")


def _require_numbers(values: Any, count: int | None = None) -> None:
    """Finite numbers, this many of them."""
    values = list(values)
    _require(count is None or len(values) == count, "a list has another length")
    _require(all(type(value) in (int, float) and -1e300 < value < 1e300 for value in values), "a number is none")
