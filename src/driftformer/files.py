"""Files that are whole or not there: written beside their place, flushed to disk, then renamed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from driftformer.errors import InputError


def write_atomically(path: Path, content: bytes) -> None:
    """Put a whole file in place, or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    write_atomically(path, (json.dumps(value, indent=1, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """A JSON file of ours, or an error that names it."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"file {path} is broken ({error}); delete it and run the command again") from None
