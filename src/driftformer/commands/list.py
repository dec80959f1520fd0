"""`driftformer list`: everything that has a name. Imports no torch, so it answers at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.console import Console
from rich.table import Table

from driftformer.agents.registry import AGENTS, ALIASES, POLICY, POLICY_OPTIONS
from driftformer.commands.options import Command
from driftformer.commands.tables import new_table
from driftformer.environments.presets import PRESETS
from driftformer.experiments import EXPERIMENTS, RATES, THEORY, TRAININGS
from driftformer.policies import shipped
from driftformer.pretraining.recipes import RECIPES


@dataclass(frozen=True)
class List(Command):
    """List environments, agents, policies, recipes and experiments."""

    computes: ClassVar[bool] = False

    def run(self) -> None:
        for table in (*_environments(), _agents(), _policies(), _recipes(), _experiments()):
            Console().print(table)


def _environments() -> Iterator[Table]:
    """A table for each family: the presets of one base class, whose options are named once."""
    families: dict[type | None, list[str]] = {}
    for name, preset in PRESETS.items():
        bases = [base for base in preset.__mro__[1:] if dataclasses.is_dataclass(base)]
        families.setdefault(bases[0] if bases else None, []).append(name)
    for base, names in families.items():
        shared = {} if base is None else _defaults(base)
        title = "Environments" + (f", all with the options {_flags(shared)}" if shared else "")
        table = new_table(title, "name", "description", "options and defaults")
        for name in names:
            own = {key: value for key, value in _defaults(PRESETS[name]).items() if (key, value) not in shared.items()}
            table.add_row(name, " ".join((PRESETS[name].__doc__ or "").split()), _flags(own))
        yield table


def _defaults(kind: Any) -> dict[str, Any]:
    return {
        field.name: "…" if field.default in (None, (), dataclasses.MISSING) else field.default
        for field in dataclasses.fields(kind)
    }


def _flags(options: dict[str, Any]) -> str:
    """Options and their values as they are written on a command line."""
    words = {name: str(value).translate(str.maketrans("", "", "(),")) for name, value in options.items()}
    return "  ".join(f"--{name.replace('_', '-')} {value}" for name, value in words.items())


def _agents() -> Table:
    title = "Agents (options follow an @, as in linucb@alpha=2,ridge=0.5)"
    table = new_table(title, "name", "description", "options and defaults")
    for name, entry in AGENTS.items():
        options = "  ".join(f"{key}={value}" for key, value in entry.options.items())
        table.add_row(name + (" *" if entry.privileged else ""), entry.summary, options)
    for name, written in ALIASES.items():
        table.add_row(name, f"short for {written}", "")
    table.caption, table.caption_justify = "* knows something that no real agent can know", "left"
    return table


def _policies() -> Table:
    options = ", ".join(f"{key}={value}" for key, value in POLICY_OPTIONS.items())
    title = f"Policies: pretrained transformers, used like any other agent (options: {options})"
    table = new_table(title, "name", "description")
    for name in shipped():
        table.add_row(POLICY + name, RECIPES[name].summary)
    table.add_row(f"{POLICY}FOLDER", f"a policy of your own, such as {POLICY}runs/tiny/best")
    return table


def _recipes() -> Table:
    table = new_table("Recipes (driftformer pretrain)", "name", "description", "model", "steps (on regret)")
    for name, recipe in RECIPES.items():
        model = f"{recipe.form}, {recipe.layers} x {recipe.heads}, D={recipe.width}"
        tuning = f" ({recipe.tuning_steps:,})" if recipe.tuning_steps else ""
        table.add_row(name, recipe.summary, model, f"{recipe.steps:,}{tuning}")
    return table


def _experiments() -> Table:
    table = new_table("Experiments (driftformer reproduce)", "name", "description", "in the paper")
    for name, experiment in EXPERIMENTS.items():
        table.add_row(name, experiment.title, experiment.paper or "no")
    for name, training in TRAININGS.items():
        table.add_row(name, f"{training.title} (trains small policies)", training.paper)
    table.add_row(THEORY, "The proofs' constructions, built and checked (driftformer theory)", "Sections 2 to 4")
    table.add_row(RATES, "How regret grows with T, J and Δ (driftformer rates)", "tab:rate")
    return table
