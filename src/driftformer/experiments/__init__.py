"""Frozen settings of the paper's experiments and of those beyond it. Nothing here imports torch."""

from __future__ import annotations

from driftformer.experiments.base import Experiment
from driftformer.experiments.beyond import BEYOND
from driftformer.experiments.paper import PAPER

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in (*PAPER, *BEYOND)}
