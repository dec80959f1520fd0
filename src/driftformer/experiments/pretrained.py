"""Policies trained for a reproduction instead of the shipped ones: `driftformer reproduce --pretrain`.

Each is trained by its recipe, into OUT/policies/NAME, and plays under the name that the experiments use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from driftformer.agents.registry import POLICY
from driftformer.pretraining.recipes import recipe_of

if TYPE_CHECKING:
    from driftformer.pretraining.run import Report

_NAMED = re.compile(re.escape(POLICY) + r"([\w-]+)")

OnReport = Callable[["Report", str], None]
"""Is told how a training goes, and its name."""


def pretrain_policies(agents: Iterable[str], out: Path, device: str, on_report: OnReport) -> None:
    """Train every policy that some agents use, unless it is there already."""
    for name in dict.fromkeys(found for agent in agents for found in _NAMED.findall(agent)):
        _pretrain(name, out, device, on_report)


def _pretrain(name: str, out: Path, device: str, on_report: OnReport) -> None:
    from driftformer.pretraining.run import train  # brings what only training needs

    recipe = recipe_of(name)
    if recipe.start is not None:  # from another policy's weights: that one is trained here too
        _pretrain(recipe.start, out, device, on_report)
        recipe = recipe_of(name, start=str(_folder(out, recipe.start) / "best"))
    train(recipe, _folder(out, name), device=device, on_report=lambda report: on_report(report, name))


def in_place(agent: str, out: Path) -> str:
    """An agent with the policies that were trained here."""
    return _NAMED.sub(lambda found: f"{POLICY}{_folder(out, found[1]) / 'best'}", agent)


def _folder(out: Path, name: str) -> Path:
    return out / "policies" / name
