"""What can be named on the command line, as tables. Imports no torch, so it answers at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from driftformer.agents.registry import AGENTS, ALIASES, POLICY, POLICY_OPTIONS
from driftformer.environments.presets import PRESETS, Preset
from driftformer.experiments import EXPERIMENTS, RATES, THEORY, TRAININGS
from driftformer.experiments.rates import sweeps
from driftformer.policies import shipped
from driftformer.pretraining.recipes import RECIPES

if TYPE_CHECKING:
    from driftformer.experiments.rates import Exponent
    from driftformer.theory.checks import Row


def tables() -> list[Table]:
    """Environments, agents, policies, recipes and experiments."""
    return [_environments(), _agents(), _policies(), _recipes(), _experiments()]


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _environments() -> Table:
    shared = {field.name: field.default for field in dataclasses.fields(Preset)}
    every = "  ".join(_flag(name, value) for name, value in shared.items())
    table = _table(f"\nEnvironments (all of them: {every})", "name", "what it is", "its options")
    for name, preset in PRESETS.items():
        own = {field.name: field.default for field in dataclasses.fields(preset)}
        options = [_flag(key, value) for key, value in own.items() if key not in shared or shared[key] != value]
        table.add_row(name, (preset.__doc__ or "").strip(), "  ".join(options))
    return table


def _flag(name: str, value: object) -> str:
    """An option and its default as they stand on a command line."""
    words = str(value).replace("(", "").replace(")", "").replace(",", "")
    return f"--{name.replace('_', '-')} {words or '…'}"


def speeds(measured: Mapping[str, Mapping[int, float]], device: str, arm_mode: str) -> Table:
    """Rounds per second of agents by batch size."""
    unit = "CPU-second" if device == "cpu" else "second"
    sizes = [f"{size:,} problems" for size in next(iter(measured.values()))]
    table = _table(f"\nRounds per {unit} on {device}, d=32, 10 {arm_mode} arms", "agent", *sizes)
    for column in table.columns[1:]:
        column.justify = "right"
    for agent, by_size in measured.items():
        table.add_row(agent, *(f"{speed:,.0f}" for speed in by_size.values()))
    return table


def exponents(found: Mapping[str, Mapping[str, Exponent]], longest: int) -> Table:
    """Fitted exponents of each sweep beside what the paper's table says."""
    table = _table("\nExponents of dynamic regret, with 95% intervals", "sweep", "agent", "exponent", "in the paper")
    for sweep in sweeps(longest):
        for place, (agent, slope) in enumerate(found[sweep.name].items()):
            words = f"{slope.slope:.2f} [{slope.low:.2f}, {slope.high:.2f}]"
            table.add_row(
                "" if place else f"{sweep.name} ({sweep.axis})", agent, words, "" if place else sweep.expected
            )
    return table


def checked(rows: Mapping[str, Row], n: int) -> Table:
    """The table of checks."""
    table = Table(
        title=f"\nThe proof, run (blocks of {2**n} rounds)", title_justify="left", box=SIMPLE_HEAD, pad_edge=False
    )
    table.add_column("name", no_wrap=True)
    for column in ("statement: built", "size: claimed / built", "error: claimed / measured", "verdict"):
        table.add_column(column, overflow="fold")
    for name, row in rows.items():
        cells = (
            f"{row.statement}: {row.built}",
            f"{row.size_claimed} / {row.size_built}",
            f"{row.error_claimed} / {row.error_measured}",
            row.verdict,
        )
        table.add_row(name, *map(escape, cells))
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


def _policies() -> Table:
    options = "  ".join(f"{key}={value}" for key, value in POLICY_OPTIONS.items())
    table = _table(f"\nPolicies: pretrained transformers, agents like any other ({options})", "name", "what it is")
    for name in shipped():
        table.add_row(POLICY + name, RECIPES[name].summary)
    table.add_row(f"{POLICY}FOLDER", "one of your own, such as policy:runs/mine/best")
    return table


def _recipes() -> Table:
    table = _table("\nRecipes (driftformer pretrain)", "name", "what it makes", "model", "steps (on regret)")
    for name, recipe in RECIPES.items():
        model = f"{recipe.form}, {recipe.layers} x {recipe.heads}, D={recipe.width}"
        tuning = f" ({recipe.tuning_steps:,})" if recipe.tuning_steps else ""
        table.add_row(name, recipe.summary, model, f"{recipe.steps:,}{tuning}")
    return table


def _experiments() -> Table:
    table = _table("\nExperiments (driftformer reproduce)", "name", "what it is", "in the paper")
    for name, experiment in EXPERIMENTS.items():
        table.add_row(name, experiment.title, experiment.paper or "beyond it")
    for name, training in TRAININGS.items():
        table.add_row(name, f"{training.title} (trains small policies)", training.paper)
    table.add_row(THEORY, "the proof's constructions, run and checked (also driftformer theory)", "Sections 2 to 4")
    table.add_row(RATES, "how regret grows with T, J and Δ (also driftformer rates)", "tab:rate")
    return table
