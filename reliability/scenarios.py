"""What the faults strike: commands with results to compare, each as short as it can be while it still writes often.

A scenario is a list of commands that are run one after the other in one folder; a further kind of work is one more
entry of `SCENARIOS`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.numpy import load

from driftformer.models.checkpoints import SIZES
from driftformer.storage.events import EVENTS
from driftformer.storage.files import is_partial, read_json
from driftformer.storage.tensors import parse_object, parse_tensors
from reliability.service import Serve

Contents = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """Commands, and what of their folder must be the same as without faults."""

    name: str
    commands: tuple[str, ...]  # FOLDER stands for the folder
    kept: tuple[str, ...]  # patterns of files that never change once they are there
    workers: str = ""  # in the command lines of the processes that it computes on, where it starts any

    def arguments(self, folder: Path) -> list[list[str]]:
        return [command.replace("FOLDER", str(folder)).split() for command in self.commands]

    def results(self, folder: Path) -> Contents:
        """Everything in the folder, by name; times, TensorBoard's files and what killed writes left are no results."""
        found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
        return {name: content(path) for name, path in found.items() if _counts(name, path)}

    def treasures(self, folder: Path) -> Contents:
        """Results that no later run may take away."""
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for pattern in self.kept
            for path in folder.glob(pattern)
            if not is_partial(path)
        }

    def victims(self, folder: Path) -> list[Path]:
        """Files to damage."""
        return sorted(path for path in folder.rglob("*") if path.is_file() and "tensorboard" not in path.parts)


def _counts(name: str, path: Path) -> bool:
    return "tensorboard/" not in name and path.name not in ("timing.json", EVENTS) and not is_partial(path)


_OF_ONE_RUN = ("seconds", "log_bytes", "log_sha256")
"""Of a training's state: how long it took, and what its log was, which is compared on its own."""


def content(path: Path) -> Any:
    """A file's bytes; of a training's own files all but the seconds it took."""
    if path.name == "training.json":
        made = read_json(path)
        made["progress"].pop("seconds")
        return made
    if path.name == "state.safetensors":
        tensors, text = parse_tensors(path.read_bytes(), load)
        about = parse_object(text)
        about["progress"] = {key: value for key, value in about["progress"].items() if key not in _OF_ONE_RUN}
        return about, {name: value.tobytes() for name, value in tensors.items()}
    if path.parent.name == "best" and path.name == "config.json":  # the rest of it is never read
        config = json.loads(path.read_bytes())
        return {name: config[name] for name in SIZES}
    return path.read_bytes()


_EVALUATE = "evaluate high --horizon 40 --dim 4 --arms 3 --runs 320 --seed 5 --out FOLDER --agents random"
_ON_RAY = (
    "evaluate high --horizon 8000 --dim 4 --arms 3 --runs 320 --out FOLDER --agents linucb --workers 2 --engine ray"
)
_CHUNKS = ("chunks/*/*.safetensors",)
SERVICE = "a service"
_PRETRAIN = "pretrain tiny --layers 1 --width 16 --steps 8 --tuning-steps 2 --evaluate-every 4 --tuning-tokens 480"

SCENARIOS = (
    Scenario("evaluate", (f"{_EVALUATE} linucb master-linucb --trajectories",), _CHUNKS),
    Scenario("evaluate on two processes", (f"{_EVALUATE} linucb --workers 2",), _CHUNKS, "spawn_main"),
    Scenario("evaluate on a Ray cluster", (_ON_RAY,), _CHUNKS, "ray::_Worker.work"),
    Scenario(
        "collect",
        ("collect tiny --trajectories 400 --behaviours random=0.5 linucb=0.5 --out FOLDER",),
        ("shards/*.safetensors",),
    ),
    Scenario("train", (f"{_PRETRAIN} --out FOLDER",), ()),
    Scenario(
        "train on a dataset",
        (
            "collect tiny --trajectories 400 --out FOLDER/data",
            f"{_PRETRAIN} --data FOLDER/data --out FOLDER/run",
        ),
        ("data/shards/*.safetensors",),
    ),
    Scenario(SERVICE, ("serve --out FOLDER",), ("*/rounds/*.json",)),
)


def make_small() -> None:
    """Let short commands write as often as long ones do: small shards, a state after every generation; and serve."""
    from driftformer.commands import COMMANDS
    from driftformer.pretraining import dataset, recipes, run

    dataset.SHARD["cpu"] = 40
    assert run.train.__kwdefaults__ is not None
    run.train.__kwdefaults__ |= {"save_every": 0.0, "evaluate_problems": 16}
    tiny = recipes.RECIPES["tiny"]
    recipes.RECIPES["tiny"] = type(tiny)(**{**vars(tiny), "tokens": 480, "generation": 32, "warmup": 2})
    COMMANDS["serve"] = Serve
