"""Run experiments that train policies: each training has its own folder, can be resumed, and is then measured.

OUT/EXPERIMENT/TRAINING/result.json   regret in each world, as a share of chance's
OUT/EXPERIMENT/results.json           all of them, and reference agents on the same problems
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from driftformer.agents.registry import make_agent
from driftformer.errors import InputError
from driftformer.experiments.pretrained import OnReport
from driftformer.experiments.trainings import REFERENCES, RESULTS, Training, TrainingExperiment
from driftformer.models.checkpoints import read_policy
from driftformer.models.incontext import placed
from driftformer.pretraining.dataset import collect_dataset
from driftformer.pretraining.players import player_of
from driftformer.pretraining.recipes import Recipe, recipe_of
from driftformer.pretraining.run import train
from driftformer.pretraining.validation import Validation
from driftformer.pretraining.worlds import worlds_of
from driftformer.problem import traits_of, why_not
from driftformer.storage.files import digest, read_json, write_json

_PROBLEMS = {"quick": 1024, "paper": 2048}


def run_trainings(
    experiment: TrainingExperiment, out: Path, scale: str, seed: int, device: str, on_report: OnReport | None = None
) -> dict[str, Any]:
    """Train and measure what is missing, and return all results."""
    rows = []
    for training in experiment.trainings[scale]:
        folder = out / experiment.name / training.name
        path = folder / "result.json"
        recipe = recipe_of("tiny" if scale == "quick" else "cosine", **training.settings, tuning_steps=0)
        own = 0.0 if training.trajectories else recipe.own
        recipe = replace(recipe, name=training.name, seed=seed, own=own)
        made = {"recipe": digest(asdict(recipe)), "trajectories": training.trajectories}
        if not path.exists():
            _train(training, recipe, folder, device, on_report)
            player = player_of(placed(read_policy(folder / "training" / "best"), torch.device(device), torch.float32))
            shares = {world: _validation(world, scale, device).shares(player) for world in experiment.worlds[scale]}
            found = {world: _summary(share) for world, share in shares.items()}
            write_json(path, {"label": training.label, "value": training.value, "worlds": found, "made": made})
        row = read_json(path)
        if row.pop("made", None) != made:
            raise InputError(f"file {path} belongs to another training; delete {folder} and run the command again")
        rows.append(row)
    path = out / experiment.name / RESULTS
    references = read_json(path)["references"] if path.exists() else _references(experiment, scale, device)
    where = torch.cuda.get_device_name() if torch.device(device).type == "cuda" else "CPU core"
    results = {"scale": scale, "seed": seed, "device": where, "trainings": rows, "references": references}
    write_json(path, results)
    return results


def _train(training: Training, recipe: Recipe, folder: Path, device: str, on_report: OnReport | None) -> None:
    data = None
    if training.trajectories is not None:
        options: dict[str, Any] = {name: getattr(recipe, name) for name in ("behaviours", "labels", "seed")}
        data = collect_dataset(folder / "data", recipe.worlds, training.trajectories, device=device, **options)
    report = None if on_report is None else lambda one: on_report(one, training.label)
    train(recipe, folder / "training", device=device, data=data, evaluate_every=recipe.steps, on_report=report)


def _references(experiment: TrainingExperiment, scale: str, device: str) -> dict[str, dict[str, dict[str, float]]]:
    """Other agents on the same problems, where they can play."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for agent in REFERENCES:
        player = make_agent(agent)
        for world in experiment.worlds[scale]:
            if all(why_not(player, traits_of(one.environment)) is None for one in worlds_of(world)):
                found.setdefault(agent, {})[world] = _summary(_validation(world, scale, device).shares_of(agent))
    return found


def _validation(world: str, scale: str, device: str) -> Validation:
    worlds = worlds_of(world)
    return Validation(worlds, _PROBLEMS[scale], max(one.environment.dim for one in worlds), torch.device(device))


def _summary(shares: list[Tensor]) -> dict[str, float]:
    """The mean over worlds, and its standard error."""
    means = [float(share.double().mean()) for share in shares]
    variances = [float(share.double().var()) / len(share) for share in shares]
    return {"mean": sum(means) / len(means), "stderr": sum(variances) ** 0.5 / len(variances)}
