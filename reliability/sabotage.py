"""The product, broken on purpose: what the harness of faults must notice, or it would be worth nothing.

Functions keep their identity and get other code, since other modules have imported them by name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import FunctionType


def _write_carelessly(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for part in (content[: len(content) // 2], content[len(content) // 2 :]):
            file.write(part)
            file.flush()
            os.fsync(file.fileno())  # type: ignore[name-defined]  # noqa: F821 (of the module it is put into)


def _any(*_: object) -> str:
    return "0"


def _put(function: object, other: object) -> None:
    assert isinstance(function, FunctionType)
    assert isinstance(other, FunctionType)
    function.__code__ = other.__code__


def careless_writes() -> None:
    """Files are written in place, in two halves."""
    from driftformer.storage import files

    _put(files.write_atomically, _write_carelessly)


def blind_checksums() -> None:
    """Every checksum is the same."""
    from driftformer.storage import checksum

    _put(checksum.checksum, _any)


SABOTAGE: dict[str, Callable[[], None]] = {"writes": careless_writes, "checksums": blind_checksums}
