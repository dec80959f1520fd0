"""What an experiment is: an environment, the agents to compare on it, and where it stands in the paper."""

from __future__ import annotations

from dataclasses import dataclass

from driftformer.environments.presets import Preset


@dataclass(frozen=True)
class Experiment:
    """Settings as data; `driftformer reproduce` runs them."""

    name: str
    title: str
    paper: str
    """The figures of the paper that this is the counterpart of."""
    preset: Preset
    agents: tuple[str, ...] = ("random", "linucb", "thompson", "master-linucb", "master-thompson", "oracle")
