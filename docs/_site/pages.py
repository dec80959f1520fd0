"""Pages that are not written by hand: lists of names, the help of every command, cards of policies."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sphinx.util import logging

from _site.links import broken
from driftformer.cli import main
from driftformer.commands import COMMANDS
from driftformer.policies import folder_of, shipped

ROOT = Path(__file__).parents[2]

_LINKS = (
    (r"\]\((?:\.\./)+src/driftformer/policies/([\w-]+)/card\.md", r"](/reference/cards.md#\1"),
    (r"\]\((?:\.\./)+src/driftformer/policies\)", r"](/reference/cards.md)"),
    (r"\]\((?:\.\./)+CONTRIBUTING\.md", r"](/contributing.md"),
    (r"\]\((?:\.\./)+CHANGELOG\.md", r"](/changelog.md"),
    (r"\]\(docs/", r"](/"),
)
"""Links as they are right in a clone, and where they lead on the site."""


def printed(*words: str) -> str:
    """What a command prints."""
    page = io.StringIO()
    with patch.dict(os.environ, COLUMNS="90"), redirect_stdout(page):
        main(list(words))
    return "\n".join(line.rstrip() for line in page.getvalue().strip("\n").splitlines())


def fenced(text: str) -> str:
    return f"```text\n{text}\n```\n"


def commands() -> str:
    """The help of every command."""
    return "\n".join(f"## {name}\n\n{fenced(printed(name, '--help'))}" for name in COMMANDS)


def names() -> str:
    """Everything that has a name."""
    kinds = {
        "environments": "Environments",
        "agents": "Agents",
        "policies": "Policies",
        "recipes": "Recipes of trainings",
        "experiments": "Experiments",
    }
    return "\n".join(f"## {title}\n\n{fenced(printed('list', kind))}" for kind, title in kinds.items())


def cards() -> str:
    """The cards of all policies, a level below this page's title."""
    return "\n".join(re.sub(r"^#", "##", card(name), flags=re.MULTILINE) for name in shipped())


def card(name: str) -> str:
    path = folder_of(name) / "card.md"
    return path.read_text() if path.exists() else f"# {name}\n\nIt has not been measured yet.\n"


_MADE: dict[str, Callable[[], str]] = {
    "reference/commands": commands,
    "reference/names": names,
    "reference/cards": cards,
    "contributing": (ROOT / "CONTRIBUTING.md").read_text,
    "changelog": (ROOT / "CHANGELOG.md").read_text,
}


def read(app: Any, name: str, content: list[str]) -> None:
    """Add what is made to a page, and turn links that leave docs/ to their pages."""
    text = content[0] + (_MADE[name]() if name in _MADE else "")
    for pattern, page in _LINKS:
        text = re.sub(pattern, page, text)
    content[0] = text


def check_links(app: Any, failure: Exception | None) -> None:
    """A warning for each link on the site that leads nowhere; `make docs` fails at warnings."""
    for line in () if failure else broken(Path(app.outdir)):
        logging.getLogger(__name__).warning(line)


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", read)
    app.connect("build-finished", check_links)
    return {"parallel_read_safe": True}
