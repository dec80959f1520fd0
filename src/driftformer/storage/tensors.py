"""Tensors in one file that tells when a bit of it has changed: safetensors with a checksum among its metadata.

The checksum covers everything else in the file: names, types, shapes, the other metadata and the numbers. A file that
has none, from elsewhere or from an older version, is read without it. Nothing here can run code: safetensors holds
plain numbers, its header is JSON, and the sizes it claims are compared with the file before anything is allocated.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError

from driftformer.storage.checksum import checksum

T = TypeVar("T")

CHECKSUM = "sha256"
ABOUT = "driftformer"
LARGEST = 8 * 2**30
"""Bytes. What is larger is refused before it is read."""

_LARGEST_HEADER = 16 * 2**20
_LENGTH = struct.Struct("<Q")


class BrokenFile(ValueError):
    """Why a file of tensors cannot be used; the caller adds which file it is and what to do."""


def with_checksum(content: bytes, about: dict[str, Any] | None = None) -> bytes:
    """What `safetensors.save` gave, with `about` and a checksum in its metadata; equal tensors give equal bytes."""
    header, body = _split(content)
    metadata = dict(header.pop("__metadata__", {}))
    if about is not None:
        metadata[ABOUT] = json.dumps(about)
    metadata[CHECKSUM] = _checksum(header, metadata, body)
    written = json.dumps({"__metadata__": metadata, **header}, separators=(",", ":")).encode()
    written += b" " * (-len(written) % 8)  # the numbers begin on a multiple of eight bytes
    return b"".join((_LENGTH.pack(len(written)), written, body))


def read_tensors(path: Path, load: Callable[[bytes], dict[str, T]]) -> tuple[dict[str, T], str]:
    """A file's tensors, by safetensors' `load` for NumPy or torch, and the text about them; or `BrokenFile`."""
    if (size := path.stat().st_size) > LARGEST:
        raise BrokenFile(f"it has {size:,} bytes, more than the {LARGEST:,} that can be read")
    return parse_tensors(path.read_bytes(), load)


def parse_tensors(content: bytes, load: Callable[[bytes], dict[str, T]]) -> tuple[dict[str, T], str]:
    """The same for the content of a file."""
    header, body = _split(content)
    metadata = dict(header.pop("__metadata__", {}))
    stored = metadata.pop(CHECKSUM, None)
    if stored is not None and stored != _checksum(header, metadata, body):
        raise BrokenFile("its checksum does not match")
    about = metadata.get(ABOUT, "")
    try:
        tensors = load(content)  # checks sizes, offsets and types against the file
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise BrokenFile(str(error)) from None
    return tensors, about if isinstance(about, str) else ""


def _split(content: bytes) -> tuple[dict[str, Any], memoryview]:
    """The header and the numbers behind it."""
    if len(content) < _LENGTH.size:
        raise BrokenFile("it is cut off")
    (length,) = _LENGTH.unpack_from(content)
    end = _LENGTH.size + length
    if end > len(content) or length > _LARGEST_HEADER:
        raise BrokenFile(f"its header claims {length:,} bytes, more than there are or may be")
    header = parse_object(content[_LENGTH.size : end])
    if not isinstance(header.get("__metadata__", {}), dict):
        raise BrokenFile("its metadata is no JSON object")
    return header, memoryview(content)[end:]


def parse_object(text: str | bytes) -> dict[str, Any]:
    """A JSON object, such as the text about some tensors; or `BrokenFile`."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BrokenFile(f"its header is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise BrokenFile("its header is no JSON object")
    return found


def _checksum(header: dict[str, Any], metadata: dict[str, Any], body: memoryview) -> str:
    try:
        return checksum(json.dumps([header, metadata], sort_keys=True).encode(), body)
    except RecursionError:
        raise BrokenFile("its header is nested too deep") from None
