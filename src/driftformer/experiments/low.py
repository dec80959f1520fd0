"""The Low environment of Section 5: a thousand rounds, rewards lifted in two windows."""

from __future__ import annotations

from driftformer.environments.presets import Low
from driftformer.experiments.base import Experiment

LOW = Experiment(name="low", title="Low non-stationarity", paper="fig:regret (top row), fig:subopt-small", preset=Low())
