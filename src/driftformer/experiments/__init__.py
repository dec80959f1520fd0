"""Frozen settings of the paper's experiments. Nothing here imports torch."""

from __future__ import annotations

from driftformer.experiments.base import Experiment
from driftformer.experiments.high import HIGH_018, HIGH_025
from driftformer.experiments.low import LOW

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in (LOW, HIGH_018, HIGH_025)}
