"""All checks of the proof, kept in a folder with their pictures, for the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from driftformer.plots.schedule import draw_equivalence
from driftformer.storage.files import write_json
from driftformer.theory.checks import CHECKS
from driftformer.theory.figures import draw_overview, draw_scheduler

CHECKED = "theory.json"
N = 4
"""Blocks of 2^4 rounds."""


def check_theory(folder: Path) -> None:
    """Run what the folder lacks."""
    pictures: dict[str, Callable[[Path], None]] = {
        "overview.svg": lambda path: draw_overview(N, path),
        "scheduler.svg": lambda path: draw_scheduler(N, path),
        "equivalence.svg": lambda path: draw_equivalence(12, 4, path),
    }
    for name, draw in pictures.items():
        if not (folder / name).exists():
            draw(folder / name)
    if not (folder / CHECKED).exists():
        write_json(folder / CHECKED, {name: asdict(check(N)) for name, check in CHECKS.items()})
