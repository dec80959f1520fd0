"""Files that are whole or not there, and that tell when a bit of them has changed.

A file is written beside its place, flushed to disk and renamed; then its folder is flushed too, so that the new name
survives a power cut. JSON carries a checksum of itself under `sha256`, tensors theirs as `tensors.py` says. A file from
an older version, or written by hand, has none and is read without one.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from driftformer.errors import InputError
from driftformer.storage.checksum import checksum
from driftformer.storage.events import EVENTS

CHECKSUM = "sha256"
LARGEST_JSON = 64 * 2**20
"""Bytes. No setting, manifest or card comes near it; what is larger is refused before it is read."""
MEND = "delete it and run the command again"
_DAY = 86_400.0


def write_atomically(path: Path, content: bytes) -> None:
    """Put a whole file in place, or nothing; an error of the disk names the file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    require_no_file_above(path)
    with named(path):
        _make_folder(path.parent)
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            with contextlib.suppress(OSError):  # what went wrong before matters more
                temporary.unlink(missing_ok=True)
        _flush_folder(path.parent)


def require_no_file_above(path: Path) -> None:
    """Refuse a path with a file where a folder must be."""
    for folder in path.parents:
        if folder.is_dir():
            return
        if folder.exists():
            raise InputError(f"path is '{path}', but '{folder}' is a file; name a folder")


@contextlib.contextmanager
def named(path: Path) -> Iterator[None]:
    """Errors of the disk as one that says which file was meant: a failed write does not know its own name."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, each flushed into the one that holds it."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _flush_folder(folder.parent)


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def tidy(folder: Path) -> None:
    """Remove what killed writes have left anywhere in a folder; a write that is under way is left alone."""
    _sweep(folder.rglob(".*.partial"))


def tidy_beside(path: Path) -> None:
    """Remove what killed writes of one file have left."""
    _sweep(path.parent.glob(f".{glob.escape(path.name)}.*.partial"))


def _sweep(remains: Iterable[Path]) -> None:
    for path in remains:
        with contextlib.suppress(OSError):  # it may be gone by now, or the folder may be read-only
            if not _is_written(path):
                path.unlink()


def is_partial(path: Path) -> bool:
    """Whether a file is what a killed write has left, or one that is being written."""
    return re.fullmatch(r"\..*\.\d+\.partial", path.name) is not None


def require_new_folder(out: Path, what: str, *ours: str) -> None:
    """Refuse a file, and a folder that holds more than `ours`, events and what killed writes have left."""
    if out.exists() and not out.is_dir():
        raise InputError(f"out is '{out}', which is a file; name a folder")
    if any(path.name not in (EVENTS, *ours) and not is_partial(path) for path in out.glob("*")):
        raise InputError(f"out is '{out}', which is not empty and holds no {what}; name a new or empty folder")


def _is_written(path: Path) -> bool:
    """Whether the process in a partial file's name may still be at work on it."""
    writer = re.fullmatch(r"\..*\.(\d{1,9})\.partial", path.name)
    if writer is None:
        return True  # none of ours
    if time.time() - path.stat().st_mtime > _DAY:
        return False
    try:
        os.kill(int(writer[1]), 0)
    except (ProcessLookupError, PermissionError) as error:
        return isinstance(error, PermissionError)  # another user's process, which lives
    return True


def write_json(path: Path, value: dict[str, Any]) -> None:
    """An object with a checksum of itself."""
    write_atomically(path, _json({**value, CHECKSUM: digest(value)}))


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=1, allow_nan=False) + "\n").encode()


def digest(value: dict[str, Any]) -> str:
    """The checksum that an object is stored with."""
    return checksum(_json(value))


def read_json(path: Path, most: int = LARGEST_JSON, remedy: str = MEND) -> dict[str, Any]:
    """An object of ours as it was written, or an error that names the file and the remedy; `most` is in bytes."""
    if (size := path.stat().st_size) > most:
        raise InputError(f"file {path} has {size:,} bytes, more than the {most:,} that such a file may have; {remedy}")
    try:
        value = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
        if not isinstance(value, dict):
            raise ValueError("it is no JSON object")
        stored = value.pop(CHECKSUM, None)
        if stored is not None and stored != digest(value):
            raise ValueError("its checksum does not match")
    except (ValueError, RecursionError) as error:
        raise InputError(f"file {path} is broken ({error}); {remedy}") from None
    return value


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"it holds {word}, which is no number")
