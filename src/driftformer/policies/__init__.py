"""The policies that come with the package, each a folder of config, weights, how it was made, and its card.

Nothing here imports torch, so that lists and help texts come at once.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from driftformer.errors import InputError, unknown_name
from driftformer.storage.checksum import short_checksum

WEIGHTS = "model.safetensors"
TRAINING = "training.json"
"""How a policy was made."""
PREFIX = "policy:"
"""Before a policy's name where it stands among other agents."""
_HERE = Path(__file__).parent


def shipped() -> list[str]:
    """Names of the policies in the package."""
    return sorted(folder.name for folder in _HERE.iterdir() if (folder / WEIGHTS).exists())


def folder_of(source: str) -> Path:
    """Where a policy lies: a shipped one by its name, any other by its folder."""
    if not source or any(letter in source for letter in "@,=+") or source != source.strip():
        raise InputError(f"policy is {source!r}; give a name, or a folder without any of @ , = +")
    if source in shipped():
        return _HERE / source
    folder = Path(source)
    if folder.is_dir():
        return folder
    if "/" in source or "\\" in source:
        raise InputError(f"policy is '{source}', but there is no such folder; see `driftformer list` for shipped ones")
    raise unknown_name("policy", source, shipped())


def digest_of(source: str) -> str:
    """The first letters of the checksum of a policy's weights."""
    path = folder_of(source) / WEIGHTS
    if not path.exists():
        raise InputError(f"policy {source} has no {WEIGHTS}; name a folder that a training or save_pretrained wrote")
    stamp = path.stat()
    return _digest(path, stamp.st_mtime_ns, stamp.st_size)


@lru_cache(maxsize=32)
def _digest(path: Path, changed: int, size: int) -> str:
    return short_checksum(path.read_bytes(), 12)
