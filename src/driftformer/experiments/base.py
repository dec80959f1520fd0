"""What an experiment is: environments, the agents to compare on each, and its counterpart in the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from driftformer.environments.presets import Preset
from driftformer.errors import unknown_name


@dataclass(frozen=True)
class Case:
    """One environment of an experiment and who plays it."""

    name: str
    title: str
    preset: Preset
    agents: tuple[str, ...]
    value: float = 0.0
    """Its place on the axis of a sweep."""


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
    """What one wants to know from it, in a sentence."""
    paper: str
    """The figures of the paper that this is the counterpart of; empty where it goes beyond the paper."""
    cases: tuple[Case, ...]
    panels: tuple[Panel, ...] = ()
    """As the paper groups them; empty: all agents in one."""
    axis: str = ""
    """What differs from case to case in a sweep; empty: the cases are worlds of their own."""


@dataclass(frozen=True)
class Scale:
    """How many runs an experiment gets."""

    runs: int
    policy_runs: int
    """Of policies, which are slow."""
    long_policy_runs: int
    """Of policies where there are more than 400 rounds."""

    def runs_of(self, agent: str, horizon: int) -> int:
        if POLICY not in agent:
            return self.runs
        return self.policy_runs if horizon <= 400 else self.long_policy_runs


POLICY = "policy:"
ScaleName = Literal["quick", "paper"]
SCALES: dict[str, Scale] = {
    "quick": Scale(runs=200, policy_runs=64, long_policy_runs=64),
    "paper": Scale(runs=1000, policy_runs=512, long_policy_runs=192),
}


def scale_of(name: str) -> Scale:
    if name not in SCALES:
        raise unknown_name("scale", name, SCALES)
    return SCALES[name]
