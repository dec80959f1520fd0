"""`driftformer list`: everything that has a name. Imports no torch, so it answers at once."""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rich.markup import escape
from rich.table import Table
from tyro.conf import Positional

from driftformer.agents.registry import AGENTS, ALIASES, POLICY, POLICY_OPTIONS
from driftformer.commands.options import Command
from driftformer.commands.tables import new_table, show
from driftformer.environments.registry import PRESETS
from driftformer.evaluation.fitting import terminal
from driftformer.experiments import EXPERIMENTS, RATES, THEORY, TRAININGS
from driftformer.policies import shipped
from driftformer.pretraining.recipes import RECIPES

_GAP = 2
"""Spaces between two options, and between columns."""
Kind = Literal["environments", "agents", "policies", "recipes", "experiments"]


@dataclass(frozen=True)
class List(Command):
    """List environments, agents, policies, recipes, experiments.

    For example:
        driftformer list
        driftformer list agents policies

    The options of each stand below it, with their defaults.
    """

    computes: ClassVar[bool] = False
    kinds: Positional[tuple[Kind, ...]] = ("environments", "agents", "policies", "recipes", "experiments")
    """What to list."""

    def run(self) -> None:
        sections = {
            "environments": _environments,
            "agents": _agents,
            "policies": _policies,
            "recipes": _recipes,
            "experiments": _experiments,
        }
        show(*(table for kind in self.kinds for table in sections[kind]()))


def _table(title: str, rows: Iterable[tuple[str, str, Iterable[str]]]) -> Table:
    """Names and what they mean; options below that, none of them broken in two."""
    rows = list(rows)
    table, room = (
        new_table(title, ("name", "description"), []),
        terminal().width - _GAP - max(len(row[0]) for row in rows),
    )
    for name, text, options in rows:
        lines = [f"[dim]{escape(line)}[/dim]" for line in _filled(options, room)]
        table.add_row(escape(name), "\n".join([escape(text), *lines]))
    return table


def _filled(options: Iterable[str], room: int) -> list[str]:
    """Lines with as many options as there is room for."""
    lines: list[str] = []
    for option in options:
        if lines and len(lines[-1]) + _GAP + len(option) <= room:
            lines[-1] += " " * _GAP + option
        else:
            lines.append(option)
    return lines


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
            rows.append((name, " ".join((PRESETS[name].__doc__ or "").split()), own))
        yield _table(title, rows)


def _flags(kind: Any) -> list[str]:
    """The options of a dataclass and their defaults, as they are written on a command line."""
    flags = []
    for field in dataclasses.fields(kind):
        default = "…" if field.default in (None, (), "", dataclasses.MISSING) else str(field.default)
        flags.append(f"--{field.name.replace('_', '-')} {default.translate(str.maketrans('', '', '(),'))}")
    return flags


def _agents() -> Iterator[Table]:
    rows = [
        (name + " *" * entry.privileged, entry.summary, [f"{key}={value}" for key, value in entry.options.items()])
        for name, entry in AGENTS.items()
    ]
    rows += [(name, f"short for {written}", []) for name, written in ALIASES.items()]
    table = _table("Agents (options follow an @, as in linucb@alpha=2,ridge=0.5)", rows)
    table.caption, table.caption_justify = "* knows something that no real agent can know", "left"
    yield table


def _policies() -> Iterator[Table]:
    options = ", ".join(f"{key}={value}" for key, value in POLICY_OPTIONS.items())
    title = f"Policies: pretrained transformers, used like any other agent (options: {options})"
    rows = [(POLICY + name, RECIPES[name].summary) for name in shipped()]
    own = (f"{POLICY}FOLDER", f"a policy of your own, such as {POLICY}runs/tiny/best")
    yield new_table(title, ("name", "description"), [*rows, own])


def _recipes() -> Iterator[Table]:
    rows = []
    for name, recipe in RECIPES.items():
        model = f"{recipe.form}, {recipe.layers} x {recipe.heads}, D={recipe.width}"
        tuning = f", {recipe.tuning_steps:,} on regret" if recipe.tuning_steps else ""
        rows.append((name, recipe.summary, [model, f"{recipe.steps:,} steps{tuning}"]))
    yield _table("Recipes (driftformer pretrain)", rows)


def _experiments() -> Iterator[Table]:
    rows = [
        *((name, played.title, _where(played.paper)) for name, played in EXPERIMENTS.items()),
        *((name, f"{one.title} (trains small policies)", _where(one.paper)) for name, one in TRAININGS.items()),
        (THEORY, "The proofs' constructions, built and checked (driftformer theory)", _where("Sections 2 to 4")),
        (RATES, "How regret grows with T, J and Δ (driftformer rates)", _where("Table 1")),
    ]
    yield _table("Experiments (driftformer reproduce)", rows)


def _where(paper: str) -> list[str]:
    """Where an experiment stands in the paper."""
    return [f"in the paper: {paper}"] if paper else []
