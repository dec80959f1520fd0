"""The High environment of Section 5: rewards under a cosine, at the two frequencies that the paper evaluates."""

from __future__ import annotations

from driftformer.environments.presets import High
from driftformer.experiments.base import Experiment

HIGH_018 = Experiment(
    name="high-0.018",
    title="High non-stationarity, b = 0.018",
    paper="fig:regret (bottom row), fig:subopt-large0.018",
    preset=High(b=0.018),
)
HIGH_025 = Experiment(
    name="high-0.025",
    title="High non-stationarity, b = 0.025",
    paper="fig:linucb-large0.025, fig:ts-large0.025",
    preset=High(b=0.025),
)
