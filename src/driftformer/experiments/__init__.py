"""The paper's experiments and those beyond it: settings, runners and claims. Settings import no torch."""

from __future__ import annotations

from driftformer.experiments.base import Experiment
from driftformer.experiments.beyond import BEYOND
from driftformer.experiments.mdps import MDPS
from driftformer.experiments.paper import PAPER
from driftformer.experiments.readings import READINGS
from driftformer.experiments.trainings import TRAININGS

__all__ = ["EXPERIMENTS", "NAMES", "RATES", "THEORY", "TRAININGS", "Experiment"]

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in (*PAPER, READINGS, *BEYOND, *MDPS)}
RATES, THEORY = "rates", "theory"
NAMES = (*EXPERIMENTS, *TRAININGS, RATES, THEORY)
"""What `driftformer reproduce` takes: agents that play, policies to train, rates, checks of the proof."""
