"""A folder of results: its config, one small file for each agent and chunk, a summary.

    DIR/config.json                                   what the numbers belong to
    DIR/chunks/AGENT/00003.safetensors                regret of one agent on one whole chunk
    DIR/chunks/AGENT/00003-first-8.safetensors        … on the first 8 problems of one
    DIR/chunks/AGENT/00003….trajectories.safetensors  arms, rewards, …, where asked for
    DIR/summary.json, DIR/timing.json                 what people and figures read
    DIR/events.jsonl                                  what happened: starts, retries, ends (see `events.py`)

Every file is written beside its place, flushed to disk and renamed, so what is there is whole. Each chunk file carries
a checksum and the fingerprint of its config and place; one that does not match is refused, never guessed at. A folder
is claimed by its first result, so a command that fails before it computes anything leaves nothing behind.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from driftformer.agents.linucb import LONG
from driftformer.errors import InputError
from driftformer.randomness import CHUNK, Chunk
from driftformer.simulation.rollout import ChunkRegret
from driftformer.storage.checksum import checksum, json_checksum
from driftformer.storage.files import read_json, require_new_folder, tidy, write_atomically, write_json
from driftformer.storage.fingerprint import is_identified
from driftformer.storage.tensors import BrokenFile, parse_object, read_tensors, with_checksum

CONFIG = "config.json"

FORMAT = 4
"""Raised when stored numbers change their meaning, or when the same seed gives other numbers."""

LONG_FORMAT = 5
"""The same for problems of more than `LONG` rounds, which are learned in float64."""

Arrays = Mapping[str, NDArray[Any]]

_CURVES = [field.name for field in fields(ChunkRegret) if field.name != "diagnostics"]
_DIAGNOSTICS = "diagnostics."


class ResultsFolder:
    """The results of one environment and seed, for any number of agents and runs."""

    def __init__(self, path: Path | str, config: dict[str, Any], horizon: int) -> None:
        """Open a folder, or begin one; refuse one whose results belong to something else."""
        self.path, self._horizon = Path(path), horizon
        self.config = json.loads(json.dumps({**config, "format": LONG_FORMAT if horizon > LONG else FORMAT}))
        self._fingerprint = json_checksum(self.config)
        if not is_identified(self.config):
            raise InputError(
                f"out is '{self.path}', but this environment holds something, such as a drift, that cannot be told "
                "apart from others of its kind, so its results cannot be stored; make it a frozen dataclass of plain "
                "values, or drop out"
            )
        if (self.path / CONFIG).exists():
            self._check_config(read_json(self.path / CONFIG))
        elif not (self.path / "chunks").exists():
            require_new_folder(self.path, "results")
        tidy(self.path)

    def _check_config(self, stored: dict[str, Any]) -> None:
        """Refuse results of an earlier version, or of another setting."""
        version = stored.get("format")
        if isinstance(version, int) and version < FORMAT:
            raise InputError(
                f"out is '{self.path}', whose results were written by an earlier version of driftformer (format "
                f"{version}, now {self.config['format']}); name another folder, or delete it"
            )
        if stored != self.config:
            raise InputError(
                f"out is '{self.path}', whose results are for another setting ({_difference(stored, self.config)}); "
                "name another folder, or repeat that setting"
            )

    def claim(self) -> None:
        """Write what the results belong to, unless that is there."""
        if not (self.path / CONFIG).exists():
            write_json(self.path / CONFIG, self.config)

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
        told = {f"{_DIAGNOSTICS}{name}": value for name, value in regret.diagnostics.items()}
        self._write(self._place(agent, chunk), arrays | told)

    def load(self, agent: str, chunk: Chunk) -> ChunkRegret:
        path = self._place(agent, chunk)
        arrays = self._read(path)
        told = {
            name.removeprefix(_DIAGNOSTICS): arrays.pop(name) for name in list(arrays) if name.startswith(_DIAGNOSTICS)
        }
        shapes = {name: ((chunk.count if name == "regret" else self._horizon),) for name in _CURVES}
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
        write_atomically(path, with_checksum(save(content), {"belongs_to": self._stamp(path)}))

    def _read(self, path: Path) -> dict[str, NDArray[Any]]:
        try:
            arrays, about = read_tensors(path, load)
            stamp = parse_object(about).get("belongs_to")
        except BrokenFile as error:
            raise _broken(path, str(error)) from None
        if stamp != self._stamp(path):
            raise _broken(path, "it belongs to another setting or place")
        return arrays

    def _stamp(self, path: Path) -> str:
        """What a file belongs to: the setting, and by its place the agent, the chunk and how much of it."""
        place = path.relative_to(self.path).as_posix()
        return checksum(f"{self._fingerprint} {place}".encode())


def _broken(path: Path, why: str) -> InputError:
    return InputError(f"results file {path} is broken ({why}); delete it and run the command again")


def _difference(stored: Any, asked: Any, at: str = "") -> str:
    """The first place where two configs differ, in words."""
    if isinstance(stored, dict) and isinstance(asked, dict):
        for key in [*stored, *asked]:
            if stored.get(key) != asked.get(key):
                return _difference(stored.get(key), asked.get(key), f"{at}.{key}".lstrip("."))
    return f"{at or 'config'} is {stored} there and {asked} here"
