"""Frozen settings of the paper's experiments and of those beyond it. Nothing here imports torch."""

from __future__ import annotations

from driftformer.experiments.base import Experiment
from driftformer.experiments.beyond import BEYOND
from driftformer.experiments.paper import PAPER
from driftformer.experiments.trainings import TRAININGS

__all__ = ["EXPERIMENTS", "NAMES", "RATES", "TRAININGS", "Experiment"]

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in (*PAPER, *BEYOND)}
RATES = "rates"
NAMES = (*EXPERIMENTS, *TRAININGS, RATES)
"""All that `driftformer reproduce` can be asked for: agents that play, policies to train, measured rates."""
