"""All checks of the proof with their figures, saved in a folder for the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from driftformer.plots.schedule import draw_equivalence
from driftformer.storage.files import write_json
from driftformer.theory.checks import CHECKS, Scale, run_checks
from driftformer.theory.figures import draw_overview, draw_scheduler

CHECKED = "theory.json"
N = 4
"""Blocks of 2^4 rounds."""


def check_theory(folder: Path, on_check: Callable[[str], object] = lambda name: None) -> None:
    """Draw and run whatever the folder does not have yet; `on_check` is told the name of each check before it runs."""
    figures: dict[str, Callable[[Path], None]] = {
        "overview.svg": lambda path: draw_overview(N, path),
        "scheduler.svg": lambda path: draw_scheduler(N, path),
        "equivalence.svg": lambda path: draw_equivalence(12, 4, path),
    }
    for name, draw in figures.items():
        if not (folder / name).exists():
            draw(folder / name)
    if not (folder / CHECKED).exists():
        rows = run_checks(CHECKS, Scale(N), on_check)
        write_json(folder / CHECKED, {name: asdict(row) for name, row in rows.items()})
