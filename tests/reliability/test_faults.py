"""A short slice of `python -m reliability.faults`, and proof that it can fail."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def faults(*options: str) -> tuple[int, list[int], str]:
    """The exit code and the last row of the table: injected, recovered, refused, lost, wrong, tracebacks."""
    command = [sys.executable, "-m", "reliability.faults", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    row = re.search(r"^ *all +(.*)$", done.stdout, re.MULTILINE)
    assert row is not None, done.stdout + done.stderr
    return done.returncode, [int(word) for word in row[1].split()], done.stdout


def test_commands_recover_from_a_dozen_faults() -> None:
    code, (injected, recovered, refused, lost, wrong, tracebacks), page = faults(
        "--rounds", "12", "--seed", "6", "--scenarios", "evaluate", "collect", "train", "a service"
    )
    assert (code, lost, wrong, tracebacks) == (0, 0, 0, 0), page
    assert injected == recovered + refused >= 12


def test_the_harness_sees_writes_that_are_not_atomic() -> None:
    code, (_, _, _, lost, _, _), page = faults(
        "--rounds", "6", "--kinds", "kill at a write", "--scenarios", "collect", "--sabotage", "writes"
    )
    assert code == 1, page
    assert lost > 0


def test_the_harness_sees_damage_that_no_checksum_catches() -> None:
    code, (_, _, _, _, wrong, _), page = faults(
        "--rounds", "6", "--kinds", "flip a bit", "--scenarios", "collect", "--sabotage", "checksums"
    )
    assert code == 1, page
    assert wrong > 0
