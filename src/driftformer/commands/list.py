"""`driftformer list`: everything that has a name. Imports no torch, so it answers at once."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.table import Table

from driftformer.agents.registry import AGENTS, ALIASES, POLICY, POLICY_OPTIONS
from driftformer.commands.options import Command
from driftformer.commands.tables import new_table, show
from driftformer.environments.registry import PRESETS
from driftformer.experiments import EXPERIMENTS, RATES, THEORY, TRAININGS
from driftformer.policies import shipped
from driftformer.pretraining.recipes import RECIPES


@dataclass(frozen=True)
class List(Command):
    """List environments, agents, policies, recipes and experiments."""

    computes: ClassVar[bool] = False

    def run(self) -> None:
        show(*_environments(), _agents(), _policies(), _recipes(), _experiments())


def _environments() -> Iterator[Table]:
    """A table for each family: the presets of one base class, whose options are named once."""
    families: dict[type | None, list[str]] = {}
    for name, preset in PRESETS.items():
        bases = [base for base in preset.__mro__[1:] if dataclasses.is_dataclass(base)]
        families.setdefault(bases[0] if bases else None, []).append(name)
    for base, names in families.items():
        shared = _flags(base) if base else []
        title = f"Environments, all with the options {'  '.join(shared)}" if shared else "Environments"
        rows = []
        for name in names:
            own = [flag for flag in _flags(PRESETS[name]) if flag not in shared]
            rows.append((name, " ".join((PRESETS[name].__doc__ or "").split()), "  ".join(own)))
        yield new_table(title, ("name", "description", "options and defaults"), rows)


def _flags(kind: Any) -> list[str]:
    """The options of a dataclass and their defaults, as they are written on a command line."""
    flags = []
    for field in dataclasses.fields(kind):
        default = "…" if field.default in (None, (), dataclasses.MISSING) else str(field.default)
        flags.append(f"--{field.name.replace('_', '-')} {default.translate(str.maketrans('', '', '(),'))}")
    return flags


def _agents() -> Table:
    rows = [(name, f"short for {written}", "") for name, written in ALIASES.items()]
    for name, entry in reversed(AGENTS.items()):
        options = "  ".join(f"{key}={value}" for key, value in entry.options.items())
        rows.insert(0, (name + " *" * entry.privileged, entry.summary, options))
    title = "Agents (options follow an @, as in linucb@alpha=2,ridge=0.5)"
    table = new_table(title, ("name", "description", "options and defaults"), rows)
    table.caption, table.caption_justify = "* knows something that no real agent can know", "left"
    return table


def _policies() -> Table:
    options = ", ".join(f"{key}={value}" for key, value in POLICY_OPTIONS.items())
    title = f"Policies: pretrained transformers, used like any other agent (options: {options})"
    rows = [(POLICY + name, RECIPES[name].summary) for name in shipped()]
    own = (f"{POLICY}FOLDER", f"a policy of your own, such as {POLICY}runs/tiny/best")
    return new_table(title, ("name", "description"), [*rows, own])


def _recipes() -> Table:
    rows = []
    for name, recipe in RECIPES.items():
        model = f"{recipe.form}, {recipe.layers} x {recipe.heads}, D={recipe.width}"
        tuning = f" ({recipe.tuning_steps:,})" if recipe.tuning_steps else ""
        rows.append((name, recipe.summary, model, f"{recipe.steps:,}{tuning}"))
    return new_table("Recipes (driftformer pretrain)", ("name", "description", "model", "steps (on regret)"), rows)


def _experiments() -> Table:
    rows = [
        *((name, played.title, played.paper or "no") for name, played in EXPERIMENTS.items()),
        *((name, f"{trained.title} (trains small policies)", trained.paper) for name, trained in TRAININGS.items()),
        (THEORY, "The proofs' constructions, built and checked (driftformer theory)", "Sections 2 to 4"),
        (RATES, "How regret grows with T, J and Δ (driftformer rates)", "tab:rate"),
    ]
    return new_table("Experiments (driftformer reproduce)", ("name", "description", "in the paper"), rows)
