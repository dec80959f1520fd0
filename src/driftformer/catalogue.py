"""What can be named on the command line, as tables. Imports no torch, so it answers at once."""

from __future__ import annotations

import dataclasses

from rich.table import Table

from driftformer.agents.registry import AGENTS, ALIASES
from driftformer.environments.presets import PRESETS, Preset
from driftformer.experiments import EXPERIMENTS


def tables() -> list[Table]:
    """Environments, agents and experiments."""
    return [_environments(), _agents(), _experiments()]


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _environments() -> Table:
    shared = {field.name: field.default for field in dataclasses.fields(Preset)}
    every = ", ".join(f"{name}={value}" for name, value in shared.items())
    table = _table(f"\nEnvironments (all of them: {every})", "name", "what it is", "its options")
    for name, preset in PRESETS.items():
        own = {field.name: field.default for field in dataclasses.fields(preset)}
        options = [f"{key}={value}" for key, value in own.items() if key not in shared or shared[key] != value]
        table.add_row(name, (preset.__doc__ or "").strip(), "  ".join(options))
    return table


def _agents() -> Table:
    table = _table("\nAgents (options follow an @: linucb@alpha=2,ridge=0.5)", "name", "what it is", "its options")
    for name, entry in AGENTS.items():
        options = "  ".join(f"{key}={value}" for key, value in entry.options.items())
        table.add_row(name + (" *" if entry.privileged else ""), entry.summary, options)
    for name, written in ALIASES.items():
        table.add_row(name, f"the same as {written}", "")
    table.caption, table.caption_justify = "* is told what no agent can know", "left"
    return table


def _experiments() -> Table:
    table = _table("\nExperiments (driftformer reproduce)", "name", "what it is", "in the paper")
    for name, experiment in EXPERIMENTS.items():
        table.add_row(name, f"{experiment.title}: {', '.join(experiment.agents)}", experiment.paper)
    return table
