"""The pages of help: the overview of all commands, and one for each, whose examples are never broken by wrapping."""

from __future__ import annotations

import io
import re
import shutil
import sys
import textwrap
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from typing import Any

from driftformer import __version__
from driftformer.commands import GROUPS
from driftformer.commands.options import pending

VERSION = f"driftformer {__version__}"
_COLUMN = max(len(kind.__name__) for kinds in GROUPS.values() for kind in kinds) + 2
_INDENT = max(map(len, GROUPS)) + 2
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def overview() -> str:
    """All commands by what they are for, on one screen."""
    lines = [
        f"{VERSION}: deciding well in a changing world, measured by dynamic regret",
        "usage: driftformer COMMAND [OPTIONS]; driftformer COMMAND --help explains one",
        "",
    ]
    for group, kinds in GROUPS.items():
        for place, kind in enumerate(kinds):
            heading = "" if place else group
            summary = (kind.__doc__ or "").partition("\n")[0].rstrip(".")
            lines.append(f"{heading:{_INDENT}}{kind.__name__.lower():{_COLUMN}}{summary}")
    lines += ["", "To begin: driftformer evaluate high --agents linucb policy:drift oracle"]
    return "\n".join(lines)


def page_of(kind: Any, words: list[str], show: Callable[[], object]) -> str:
    """What `show` prints for a command, with prose in the width of the terminal and examples as they are."""
    printed = _Printed(sys.stdout)
    with redirect_stdout(printed), suppress(SystemExit):
        show()
    lines = printed.text().rstrip().splitlines()
    boxes = next((at for at, line in enumerate(lines) if _COLOURS.sub("", line).startswith(("╭", "+"))), len(lines))
    width = min(shutil.get_terminal_size().columns, 100)
    head = [_named_choices(lines[0], kind, words), *lines[1:boxes]] if lines else []
    filled = (line if line.startswith(" ") else textwrap.fill(line, width) for line in head)
    return "\n".join([*filled, *lines[boxes:]])


def _named_choices(usage: str, kind: Any, words: list[str]) -> str:
    """The line of usage with ENVIRONMENT, say, instead of a list of all of them, which stands below."""
    for name, choices in pending(kind, words).items():
        usage = usage.replace("{" + ",".join(choices) + "}", name.upper())
    return usage


class _Printed(io.TextIOWrapper):
    """Takes what is printed, in the encoding and with the colours of where it will go."""

    def __init__(self, goes_to: Any) -> None:
        super().__init__(io.BytesIO(), encoding=goes_to.encoding or "utf-8", write_through=True)
        self._colours: bool = goes_to.isatty()

    def isatty(self) -> bool:
        return self._colours

    def text(self) -> str:
        self.seek(0)
        return self.read()
