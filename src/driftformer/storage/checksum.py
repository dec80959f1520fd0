"""SHA-256, the one checksum of every file and setting."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def checksum(*parts: bytes | memoryview) -> str:
    """Of the parts, one after the other."""
    running = running_checksum(b"")
    for part in parts:
        running.update(part)
    return running.hexdigest()


def short_checksum(content: bytes, letters: int = 16) -> str:
    """Enough letters to tell a handful of things apart."""
    return checksum(content)[:letters]


def json_checksum(value: Any) -> str:
    """Of plain data, whatever the order of its keys."""
    return checksum(json.dumps(value, sort_keys=True).encode())


def running_checksum(content: bytes) -> hashlib._Hash:
    """For content that grows: `update` takes more of it, `hexdigest` tells the checksum so far."""
    return hashlib.sha256(content)
