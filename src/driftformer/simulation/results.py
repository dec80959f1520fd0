"""A folder of results: its config, one small file for each agent and chunk, a summary.

    DIR/config.json                                   what the numbers belong to
    DIR/chunks/AGENT/00003.safetensors                regret of one agent on one whole chunk
    DIR/chunks/AGENT/00003-first-8.safetensors        … on the first 8 problems of one
    DIR/chunks/AGENT/00003….trajectories.safetensors  arms, rewards, …, where asked for
    DIR/summary.json, DIR/timing.json                 what people and figures read
    DIR/events.jsonl                                  what happened: starts, retries, ends (see `events.py`)

Every file is written beside its place, flushed to disk and renamed, so what stands there is whole. Each chunk file
carries a checksum and the fingerprint of its config and place; one that does not match is refused, never guessed at. A
folder is claimed by its first result, not before: a command that fails at the door leaves nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from driftformer.agents.ridge import LONG
from driftformer.errors import InputError
from driftformer.randomness import CHUNK
from driftformer.simulation.chunks import Chunk
from driftformer.simulation.regret import ChunkRegret
from driftformer.storage.events import EVENTS
from driftformer.storage.files import is_partial, read_json, tidy, write_atomically, write_json
from driftformer.storage.fingerprint import is_identified
from driftformer.storage.tensors import Broken, read_sealed

CONFIG = "config.json"

FORMAT = 2
"""Changes when stored numbers change their meaning, or when the same seed would give others."""

LONG_FORMAT = 3
"""The same for problems past `LONG` rounds: since they are learned in float64, their seeds give other numbers."""

Arrays = Mapping[str, NDArray[Any]]

_CURVES = [field.name for field in fields(ChunkRegret) if field.name != "diagnostics"]
_TOLD = "diagnostics."


class ResultsFolder:
    """The results of one environment and seed, for any number of agents and runs."""

    def __init__(self, path: Path | str, config: dict[str, Any]) -> None:
        """Open a folder, or begin one; refuse one whose results belong to something else."""
        self.path = Path(path)
        current = LONG_FORMAT if config["environment"]["horizon"] > LONG else FORMAT
        self.config = json.loads(json.dumps({"format": current, **config}))
        self._fingerprint = hashlib.sha256(json.dumps(self.config, sort_keys=True).encode()).hexdigest()
        known = self.path / CONFIG
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"out is '{self.path}', which is a file; name a folder")
        if not is_identified(self.config):
            raise InputError(
                f"out is '{self.path}', but this environment's drift holds something that cannot be told apart from "
                "its like, so its results cannot be stored; make it a frozen dataclass of plain values, or drop out"
            )
        if known.exists():
            other = read_json(known)
            if other != self.config:
                raise InputError(
                    f"out is '{self.path}', whose results are for another setting ({_difference(other, self.config)}); "
                    "name another folder, or repeat that setting"
                )
        elif self.path.exists() and not (self.path / "chunks").exists() and any(map(_is_foreign, self.path.iterdir())):
            raise InputError(
                f"out is '{self.path}', a folder that is not empty and holds no results; name a new or empty one"
            )
        tidy(self.path)

    def claim(self) -> None:
        """Say whose results these are, if that is not said yet."""
        known = self.path / CONFIG
        if not known.exists():
            write_json(known, self.config)

    def _place(self, agent: str, chunk: Chunk, kind: str = "") -> Path:
        part = "" if chunk.count == CHUNK else f"-first-{chunk.count}"
        return self.path / "chunks" / quote(agent, safe="@=,") / f"{chunk.index:05d}{part}{kind}.safetensors"

    def has(self, agent: str, chunk: Chunk, trajectories: bool) -> bool:
        kinds = ["", ".trajectories"] if trajectories else [""]
        return all(self._place(agent, chunk, kind).exists() for kind in kinds)

    def save(self, agent: str, chunk: Chunk, regret: ChunkRegret, trajectories: Arrays | None) -> None:
        self.claim()
        if trajectories is not None:
            self._write(self._place(agent, chunk, ".trajectories"), trajectories)
        arrays = {name: getattr(regret, name) for name in _CURVES}
        told = {f"{_TOLD}{name}": value for name, value in regret.diagnostics.items()}
        self._write(self._place(agent, chunk), arrays | told)

    def load(self, agent: str, chunk: Chunk) -> ChunkRegret:
        path = self._place(agent, chunk)
        arrays = self._read(path)
        horizon = self.config["environment"]["horizon"]
        told = {name.removeprefix(_TOLD): arrays.pop(name) for name in list(arrays) if name.startswith(_TOLD)}
        shapes = {name: ((chunk.count if name == "regret" else horizon),) for name in _CURVES}
        if {name: array.shape for name, array in arrays.items()} != shapes:
            raise _broken(path, "its arrays have other names or sizes")
        if any(value.shape != (chunk.count,) for value in told.values()):
            raise _broken(path, "its diagnostics have another size")
        return ChunkRegret(**arrays, diagnostics=told)

    def load_trajectories(self, agent: str, chunk: Chunk) -> Arrays:
        """Arms, rewards, suboptimality and auxiliary values, each `[count, T]`."""
        return self._read(self._place(agent, chunk, ".trajectories"))

    def _write(self, path: Path, arrays: Arrays) -> None:
        content = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        # One entry only: safetensors writes several in any order, and equal results should be equal files.
        stamp = {"driftformer": f"{self._stamp(path)} {_checksum(content)}"}
        write_atomically(path, save(content, metadata=stamp))

    def _read(self, path: Path) -> dict[str, NDArray[Any]]:
        try:
            arrays, stamp = read_sealed(path, load)
        except Broken as error:
            raise _broken(path, str(error)) from None
        config, _, checksum = stamp.partition(" ")
        if checksum != _checksum(arrays):
            raise _broken(path, "its checksum does not match")
        if config != self._stamp(path):
            raise _broken(path, "it belongs to another setting or place")
        return arrays

    def _stamp(self, path: Path) -> str:
        """What a file belongs to: the setting, and by its place the agent, the chunk and how much of it."""
        place = path.relative_to(self.path).as_posix()
        return hashlib.sha256(f"{self._fingerprint} {place}".encode()).hexdigest()


def _is_foreign(path: Path) -> bool:
    """Whether a file is none of ours; a killed write may have left a partial one."""
    return not is_partial(path) and path.name != EVENTS


def _broken(path: Path, why: str) -> InputError:
    return InputError(f"results file {path} is broken ({why}); delete it and run the command again")


def _checksum(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape} ".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()


def _difference(stored: Any, asked: Any, at: str = "") -> str:
    """The first place where two configs differ, in words."""
    if isinstance(stored, dict) and isinstance(asked, dict):
        for key in [*stored, *asked]:
            if stored.get(key) != asked.get(key):
                return _difference(stored.get(key), asked.get(key), f"{at}.{key}".lstrip("."))
    return f"{at or 'config'} is {stored} there and {asked} here"
