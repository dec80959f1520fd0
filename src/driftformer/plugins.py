"""What other packages bring: environments and agents that they name as entry points in their metadata."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any


def load_plugins(group: str, register: Callable[[type[Any]], Any]) -> None:
    """Register the classes of a group; may be called again.

    A module that is itself just being imported is left out: its class does not exist yet.
    """
    for entry in entry_points(group=group):
        module = sys.modules.get(entry.module)
        if module is None or not getattr(module.__spec__, "_initializing", False):
            register(entry.load())
