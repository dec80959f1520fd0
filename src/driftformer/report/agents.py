"""What each agent is, in the words of `driftformer list`."""

from __future__ import annotations

from collections.abc import Sequence

from driftformer.agents.registry import AGENTS, ALIASES, POLICY
from driftformer.pretraining.recipes import RECIPES
from driftformer.report.markup import anchored, escaped, looks, swatch
from driftformer.report.page import Section


def described(spec: str) -> str:
    """A few words on an agent by the name it was asked for by, even one that is not known here."""
    name, _, options = spec.partition("@")
    if name.startswith(POLICY):
        recipe = RECIPES.get(name.removeprefix(POLICY))
        text = f"a pretrained transformer: {recipe.summary}" if recipe else "a pretrained transformer of one's own"
    elif name in ALIASES:
        text = f"short for {ALIASES[name]}: {AGENTS[ALIASES[name].partition('@')[0]].summary}"
    else:
        text = AGENTS[name].summary if name in AGENTS else "an agent of another package"
    return text + (f"; here with {options.replace(',', ', ')}" if options else "")


def agents_section(names: Sequence[str], privileged: frozenset[str] = frozenset()) -> Section:
    """All agents of a page, each beside its line."""
    shown = looks(names)
    items = "".join(
        f'<dt id="agent-{anchored(name)}">{swatch(shown[name])}<code>{escaped(name)}</code>'
        f"{' *' if name in privileged else ''}</dt><dd>{escaped(described(name))}</dd>"
        for name in names
    )
    note = '<p class="quiet">* knows something that no real agent can know.</p>' if privileged & {*names} else ""
    return Section("agents", "Who plays", f"<dl>{items}</dl>{note}", "Agents")


def linked(name: str) -> str:
    """An agent's name as a link to its description."""
    return f'<a href="#agent-{anchored(name)}">{escaped(name)}</a>'
