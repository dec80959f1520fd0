"""Trajectories on disk: arms, rewards and labels in shards, and a manifest that says what they belong to.

    DIR/manifest.json               worlds, seed, behaviours, labels, and each shard's count and checksum
    DIR/shards/00003.safetensors    arms, rewards and labels of one shard
    DIR/events.jsonl                what happened: starts, retries, ends (see `events.py`)

What was on offer is not stored: it comes from the seed, and is made again when a shard is read. A shard is in the
manifest once it is whole, so a killed collection goes on with the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save

from driftformer.errors import InputError, require_count
from driftformer.models.configuration import tokens_in
from driftformer.pretraining.data import TRAINING_SEED, Batch, batch_of
from driftformer.pretraining.labels import check_labels, label
from driftformer.pretraining.play import Player
from driftformer.pretraining.processes import Part
from driftformer.pretraining.recipes import Recipe
from driftformer.pretraining.worlds import TrainingWorld, describe, worlds_of
from driftformer.randomness import Randomness, one_thread
from driftformer.simulation.collect import check_behaviours, collect
from driftformer.simulation.engines import Engine, OnEvent, ReportRounds, opened
from driftformer.simulation.tape import problems_of
from driftformer.simulation.trajectories import played
from driftformer.storage.checksum import checksum
from driftformer.storage.events import sitting
from driftformer.storage.files import read_json, require_new_folder, tidy, write_atomically, write_json
from driftformer.storage.tensors import BrokenFile, parse_tensors

_FORMAT = 1

_HELD = ("arms", "labels", "rewards")

_MEND = "repeat its collect command, which makes it again"

SHARD = {"cpu": 640, "cuda": 16_384}
"""Trajectories in a shard, by device: as many as are fastest to simulate at once."""


@dataclass(frozen=True)
class _Shard:
    """One shard: which world it shows, how many trajectories it has, and all else that a worker must know."""

    number: int
    place: int  # of its world
    world: TrainingWorld
    count: int
    behaviours: Mapping[str, float]
    labels: str
    seed: int
    device: str

    @property
    def label(self) -> str:
        return f"shard {self.number}"

    @property
    def rounds(self) -> int:
        return self.count * self.world.environment.horizon


def _plan(worlds: list[TrainingWorld], trajectories: int, shard: int) -> list[tuple[int, int]]:
    """The world and the size of each shard: exactly as many trajectories as asked, by share."""
    total = sum(world.share for world in worlds)
    ends = np.cumsum([world.share / total for world in worlds])
    ends = np.round(ends * trajectories).astype(int)
    counts = np.diff(ends, prepend=0)
    return [
        (place, min(shard, int(count) - start))
        for place, count in enumerate(counts)
        for start in range(0, int(count), shard)
    ]


def collect_dataset(
    out: Path,
    worlds_name: str,
    trajectories: int,
    *,
    behaviours: Mapping[str, float],
    labels: str = "optimal",
    seed: int = 0,
    device: str = "cpu",
    workers: int | None = None,
    engine: str | Engine = "local",
    address: str | None = None,
    on_trajectories: Callable[[int], None] = lambda count: None,
    on_event: OnEvent = lambda kind, **details: None,
) -> Path:
    """Collect and label trajectories, or go on with what `out` holds.

    `workers`, `engine` and `address` are those of `evaluate`: they change who makes a shard, not what is in it.
    """
    require_count("trajectories", trajectories)
    require_count("seed", seed, 0, most=2**62)
    check_behaviours(behaviours)
    check_labels(labels, worlds_of(worlds_name))
    worlds, kind = worlds_of(worlds_name), torch.device(device).type
    about = {
        "format": _FORMAT,
        "worlds": worlds_name,
        "environments": describe(worlds),
        "trajectories": trajectories,
        "seed": seed,
        "device": kind,
        "behaviours": dict(behaviours),
        "labels": labels,
    }
    with opened(engine, workers, address) as crew:
        if kind == "cuda" and (crew.name != "local" or crew.workers > 1):
            raise InputError(f"device is '{device}' with several workers; a GPU takes one, of the engine local")
        done = _begun(out, about, len(worlds))
        tidy(out)
        shards = [
            _Shard(number, place, worlds[place], count, behaviours, labels, seed, device)
            for number, (place, count) in enumerate(_plan(worlds, trajectories, SHARD[kind]))
        ]
        missing = [shard for shard in shards if shard.number >= len(done) or not _is_whole(out, done[shard.number])]
        there = trajectories - sum(shard.count for shard in missing)
        if there:
            on_trajectories(there)
        if missing:
            _make(missing, _Manifest(out, about, done), crew, on_trajectories, on_event)
    return out


def _make(
    missing: list[_Shard],
    manifest: _Manifest,
    crew: Engine,
    on_trajectories: Callable[[int], None],
    on_event: OnEvent,
) -> None:
    about: dict[str, Any] = {"engine": crew.name, "workers": crew.workers, "shards_missing": len(missing)}
    with sitting(manifest.folder, **about) as events:

        def told(kind: str, **details: Any) -> None:
            events.tell(kind, **details)
            on_event(kind, **details)

        for shard, content in crew.run(_collect_shard, missing, lambda shard, rounds: None, told):
            manifest.add(shard, content)
            on_trajectories(shard.count)


class _Manifest:
    """The list of whole shards, in order: one that comes before its turn waits for it."""

    def __init__(self, folder: Path, about: dict[str, Any], done: list[dict[str, Any]]) -> None:
        self.folder, self._about, self._done = folder, about, done
        self._early: dict[int, dict[str, Any]] = {}

    def add(self, shard: _Shard, content: bytes) -> None:
        """Put a shard in place, then in the list."""
        name = _name(shard.number)
        write_atomically(self.folder / "shards" / name, content)
        entry = {"file": name, "world": shard.place, "count": shard.count, "sha256": checksum(content)}
        if shard.number < len(self._done):  # a broken one, mended
            self._done[shard.number] = entry
        else:
            self._early[shard.number] = entry
        while len(self._done) in self._early:
            self._done.append(self._early.pop(len(self._done)))
        write_json(self.folder / "manifest.json", {**self._about, "shards": self._done})


def _name(number: int) -> str:
    return f"{number:05d}.safetensors"


def _begun(out: Path, about: dict[str, Any], worlds: int) -> list[dict[str, Any]]:
    """The shards that an earlier collection of the same kind has finished; the folder is claimed if there is none."""
    if not (out / "manifest.json").exists():
        require_new_folder(out, "dataset", "shards")  # which may have lost their manifest
        write_json(out / "manifest.json", {**about, "shards": []})
        return []
    known = read_json(out / "manifest.json")
    for key, value in about.items():
        if known.get(key) != value:
            raise InputError(
                f"out is '{out}', a dataset of another kind ({key} is {known.get(key)} there and {value} here); "
                "name another folder"
            )
    _check_shards(out, known.get("shards"), worlds)
    return list(known["shards"])


def _check_shards(folder: Path, shards: Any, worlds: int) -> None:
    """Refuse a manifest that names other files than a dataset's own, or shards that cannot be."""

    def fits(number: int, shard: Any) -> bool:
        return (
            isinstance(shard, dict)
            and shard.get("file") == _name(number)  # so that no manifest leads out of its folder
            and type(shard.get("world")) is int
            and 0 <= shard["world"] < worlds
            and type(shard.get("count")) is int
            and 0 < shard["count"] <= max(SHARD.values())
        )

    if not isinstance(shards, list) or not all(fits(number, shard) for number, shard in enumerate(shards)):
        raise InputError(
            f"file {folder / 'manifest.json'} is broken (its shards are not those of a dataset); delete it and repeat "
            "its collect command"
        )


def _is_whole(out: Path, shard: dict[str, Any]) -> bool:
    path = out / "shards" / shard["file"]
    return path.is_file() and not _leads_out(path, out) and checksum(path.read_bytes()) == shard.get("sha256")


def _leads_out(path: Path, folder: Path) -> bool:
    """Whether a shard is a link to somewhere outside its dataset."""
    return not path.resolve().is_relative_to(folder.resolve())


def _collect_shard(shard: _Shard, report: ReportRounds) -> bytes:
    """What a shard's file holds."""
    world = shard.world
    randomness = Randomness(TRAINING_SEED + shard.seed, (shard.number,), size=shard.count, device=shard.device)
    with one_thread(), torch.inference_mode():
        problems = problems_of(world.environment, randomness)
        trajectories = collect(problems, shard.behaviours, randomness)
        chosen = label(trajectories, shard.labels, randomness)
    small = torch.uint8 if world.environment.arms <= 256 else torch.int32
    return bytes(
        save(
            {
                "arms": trajectories.arms.to("cpu", small).contiguous(),
                "rewards": trajectories.rewards.to("cpu", torch.float32).contiguous(),
                "labels": chosen.to("cpu", small).contiguous(),
            }
        )
    )


class StoredData:
    """A dataset as a training reads it: each generation is a shard; every epoch has them in another order.

    Of several processes each takes its rows of every batch; rows that cannot be shared evenly are left out.
    """

    def __init__(self, folder: Path, recipe: Recipe, dim: int, device: torch.device, part: Part) -> None:
        self._folder, self._recipe, self._dim, self._device, self._part = folder, recipe, dim, device, part
        if not (folder / "manifest.json").exists():
            raise InputError(f"data is '{folder}', which holds no dataset; make one with driftformer collect")
        self._about = read_json(folder / "manifest.json", remedy="delete it and repeat its collect command")
        self.worlds = worlds_of(recipe.worlds)
        self._check()
        self._shards = self._about["shards"]
        self.identity = checksum((folder / "manifest.json").read_bytes())[:12]

    def _check(self) -> None:
        about = self._about
        if about.get("format") != _FORMAT or not about.get("shards"):
            raise InputError(f"data is '{self._folder}', whose manifest is of another version or empty; collect anew")
        wanted = {
            "worlds": self._recipe.worlds,
            "environments": describe(self.worlds),
            "labels": self._recipe.labels,
            "device": self._device.type,
        }
        for key, value in wanted.items():
            if about.get(key) != value:
                hint = "features are made from the seed, and each kind of device has its own numbers; "
                raise InputError(
                    f"data is '{self._folder}', where {key} is {about.get(key)!s:.200}, but the training has {value}; "
                    f"{hint if key == 'device' else ''}collect it anew for this"
                )
        _check_shards(self._folder, about["shards"], len(self.worlds))
        counts = [shard["count"] for shard in about["shards"]]
        if max(counts) < self._part.processes:
            raise InputError(
                f"data is '{self._folder}', whose largest shard has {max(counts)} trajectories, too few to share among "
                f"{self._part.processes} processes; collect more, or use fewer processes"
            )
        collected = sum(counts)
        require_count(f"the seed of dataset {self._folder}", about.get("seed", -1), 0, most=2**62)
        if collected != about.get("trajectories"):
            raise InputError(
                f"data is '{self._folder}', with {collected} of {about.get('trajectories')} trajectories; finish "
                "collecting with the same command"
            )

    def _shard_of(self, generation: int) -> int:
        epoch, place = divmod(generation, len(self._shards))
        order = np.random.default_rng([self._recipe.seed, epoch]).permutation(len(self._shards))
        return int(order[place])

    def world_of(self, generation: int, step: int) -> TrainingWorld:
        place: int = self._shards[self._shard_of(generation)]["world"]
        return self.worlds[place]

    def generation(self, number: int, step: int, player: Player) -> Iterator[Batch]:
        place = self._shard_of(number)
        shard, world = self._shards[place], self.world_of(number, step)
        stored = self._read(shard, world)
        randomness = Randomness(TRAINING_SEED + self._about["seed"], (place,), size=shard["count"], device=self._device)
        with torch.no_grad():
            arms, labels = stored["arms"].long(), stored["labels"].long()
            problems = problems_of(world.environment, randomness, self._dim)
            trajectories = played(problems.along(arms), arms, stored["rewards"])
        size = max(1, self._recipe.tokens // tokens_in(self._recipe.form, world.environment.horizon))
        mixed = np.random.default_rng([self._recipe.seed, number]).permutation(shard["count"])
        processes = self._part.processes
        for rows in torch.split(torch.from_numpy(mixed).to(self._device), max(processes, size)):
            rows = rows[: len(rows) // processes * processes][self._part.process :: processes]
            if not len(rows):
                continue
            yield batch_of(trajectories, labels, rows)

    def _read(self, shard: dict[str, Any], world: TrainingWorld) -> dict[str, torch.Tensor]:
        path = self._folder / "shards" / shard["file"]
        if not path.exists():
            raise InputError(f"dataset shard {path} is missing; {_MEND}")
        if _leads_out(path, self._folder):
            raise InputError(f"dataset shard {path} is a link out of its folder; {_MEND}")
        content = path.read_bytes()
        if checksum(content) != shard.get("sha256"):
            raise InputError(
                f"dataset shard {path} does not match its checksum; repeat its collect command, which mends it"
            )
        try:
            stored, _ = parse_tensors(content, load)
        except BrokenFile as error:
            raise InputError(f"dataset shard {path} is broken ({error}); {_MEND}") from None
        size, arms = (shard["count"], world.environment.horizon), world.environment.arms
        fits = {name: value.shape for name, value in stored.items()} == dict.fromkeys(_HELD, size)
        if not fits or any(int(stored[name].max()) >= arms or int(stored[name].min()) < 0 for name in _HELD[:2]):
            raise InputError(f"dataset shard {path} is not of these worlds (other names, sizes or arms); {_MEND}")
        return {name: value.to(self._device) for name, value in stored.items()}
