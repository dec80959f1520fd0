"""Policies made anew for a reproduction, in the place of the shipped ones: `driftformer reproduce --pretrain`.

Each is trained as its recipe says, into OUT/policies/NAME, and plays under the name that the experiments know it by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from driftformer.experiments.base import POLICY
from driftformer.pretraining.recipes import recipe_of
from driftformer.pretraining.run import Report, train

_NAMED = re.compile(re.escape(POLICY) + r"([\w-]+)")

OnReport = Callable[[str, Report], None]


def pretrain_policies(agents: Iterable[str], out: Path, device: str, on_report: OnReport) -> None:
    """Train every policy that some agents name, unless it is there already."""
    for name in dict.fromkeys(found for agent in agents for found in _NAMED.findall(agent)):
        _pretrain(name, out, device, on_report)


def _pretrain(name: str, out: Path, device: str, on_report: OnReport) -> None:
    recipe = recipe_of(name)
    if recipe.start is not None:  # another policy's weights: those are made anew too
        _pretrain(recipe.start, out, device, on_report)
        recipe = recipe_of(name, start=str(_folder(out, recipe.start) / "best"))
    train(recipe, _folder(out, name), device=device, on_report=lambda report: on_report(name, report))


def in_place(agent: str, out: Path) -> str:
    """An agent whose policies are those that were trained here."""
    return _NAMED.sub(lambda found: f"{POLICY}{_folder(out, found[1]) / 'best'}", agent)


def _folder(out: Path, name: str) -> Path:
    return out / "policies" / name
