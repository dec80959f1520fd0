"""All checks of the proof, kept in a folder with their pictures, for the report."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from driftformer.files import write_json
from driftformer.theory.checks import CHECKS
from driftformer.theory.figures import draw_overview, draw_scheduler

CHECKED = "theory.json"
PICTURES = {"overview.svg": draw_overview, "scheduler.svg": draw_scheduler}
N = 4
"""Blocks of 2^4 rounds."""


def check_theory(folder: Path) -> None:
    """Run what the folder lacks."""
    for name, draw in PICTURES.items():
        if not (folder / name).exists():
            draw(N, folder / name)
    if not (folder / CHECKED).exists():
        write_json(folder / CHECKED, {name: asdict(check(N)) for name, check in CHECKS.items()})
