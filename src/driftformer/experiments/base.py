"""What an experiment is: environments, the agents that play each of them, and its counterpart in the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from driftformer.environments.presets import Preset


@dataclass(frozen=True)
class Case:
    """One environment of an experiment and the agents that play it."""

    name: str
    title: str
    preset: Preset
    agents: tuple[str, ...]
    value: float = 0.0
    """Its position on the axis of a sweep."""


@dataclass(frozen=True)
class Panel:
    """Agents that are shown together."""

    title: str
    agents: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Settings as data; `driftformer reproduce` runs them."""

    name: str
    title: str
    question: str
    """What it should answer, in a sentence."""
    paper: str = ""
    """The figures of the paper that it reproduces; empty where it goes beyond the paper."""
    cases: tuple[Case, ...]
    panels: tuple[Panel, ...] = ()
    """As in the paper; empty: one panel with all agents."""
    axis: str = ""
    """What a sweep varies from case to case; empty: the cases are separate worlds."""


@dataclass(frozen=True)
class Scale:
    """How many problems an experiment plays, the same ones for every agent."""

    runs: int
    long_runs: int
    """Where there are more than 400 rounds."""

    def runs_for(self, horizon: int) -> int:
        return self.runs if horizon <= 400 else self.long_runs


ScaleName = Literal["quick", "paper"]
SCALES: dict[str, Scale] = {"quick": Scale(64, 64), "paper": Scale(512, 192)}
