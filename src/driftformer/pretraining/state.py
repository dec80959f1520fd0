"""The state of a training, in one file that is whole or not there: weights, the optimizer's moments, where it stands.

No pickle: tensors and plain JSON. What the random numbers were is not stored, since they come from the seed and the
step alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from driftformer.errors import InputError
from driftformer.pretraining.recipes import Recipe
from driftformer.storage.files import write_atomically
from driftformer.storage.tensors import BrokenFile, parse_object, read_tensors, with_checksum

_FORMAT = 2


@dataclass
class TrainingState:
    """Where a training stands."""

    step: int = 0  # steps on labels done
    generation: int = 0  # generations used up
    used: int = 0  # batches used of the one after them
    tuning_step: int = 0
    seconds: float = 0.0  # of training, over all sittings
    tokens: int = 0  # tokens seen
    best: float | None = None  # least regret so far, as a share of the uniform policy's
    best_at: int = 0  # the step, of either kind, where that was
    log_bytes: int = 0  # of the log that belong to these steps
    log_sha256: str = ""  # their checksum


def _names(optimizer: torch.optim.Optimizer, policy: nn.Module) -> dict[str, nn.Parameter]:
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    return {name: parameter for name, parameter in policy.named_parameters() if id(parameter) in held}


_FREE = ("tokens", "generation", "tuning_tokens", "summary", "start")
"""May change from one sitting to the next: how much is done at once, as far as memory goes, and where the first weights
lay, whose checksum is in the setting."""


def save_state(
    path: Path,
    recipe: Recipe,
    setting: dict[str, Any],
    policy: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: TrainingState,
    earlier: Mapping[str, Tensor],
) -> None:
    """`setting` is what else must stay as it is: the data, the worlds, the weights at the start.

    `earlier` are the weights at the beginning of a generation that is under way: they have played part of it.
    """
    tensors: dict[str, Tensor] = {f"weights.{name}": value for name, value in policy.state_dict().items()}
    tensors |= {f"earlier.{name}": value for name, value in earlier.items()}
    for name, parameter in _names(optimizer, policy).items():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"optimizer.{name}:{key}"] = value
    content = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    about = {"format": _FORMAT, "recipe": _fixed(recipe), "setting": setting, "progress": asdict(state)}
    about["sizes"] = _sizes(recipe)
    write_atomically(path, with_checksum(save(content), about))


def _fixed(recipe: Recipe) -> dict[str, Any]:
    return {key: value for key, value in asdict(recipe).items() if key not in _FREE}


def load_state(
    path: Path, recipe: Recipe, setting: dict[str, Any], policy: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[TrainingState, dict[str, Tensor]]:
    """Take up a training where it stopped, and the weights `earlier`; refuse what is broken or of another recipe."""
    try:
        tensors, text = read_tensors(path, load)
        about = parse_object(text)
        stored = {"format": about["format"], **about["recipe"], **about["setting"]}
        progress, same_sizes = _progress(about["progress"]), about["sizes"] == _sizes(recipe)
    except (BrokenFile, KeyError, TypeError) as error:
        raise _broken(path, error) from None
    asked = json.loads(json.dumps({"format": _FORMAT, **_fixed(recipe), **setting}))
    for key, value in asked.items():
        if stored.get(key) != value:
            raise InputError(
                f"training state {path} is of another training ({key} is {stored.get(key)!s:.60} there and "
                f"{value!s:.60} here); repeat that one, or name another folder"
            )
    _check_tensors(path, tensors, policy, optimizer)
    policy.load_state_dict(_part(tensors, "weights."))
    for name, parameter in _names(optimizer, policy).items():
        moments = _part(tensors, f"optimizer.{name}:")
        if moments:
            optimizer.state[parameter] = {
                key: value.to(parameter.device) if key != "step" or optimizer.defaults["capturable"] else value
                for key, value in moments.items()
            }
    if progress.used and not same_sizes:  # its batches would be others: go on with the next generation
        progress.generation, progress.used = progress.generation + 1, 0
    return progress, _part(tensors, "earlier.") if progress.used else {}


def _sizes(recipe: Recipe) -> list[int]:
    """What decides how a generation is cut into batches."""
    return [recipe.tokens, recipe.generation]


def _part(tensors: Mapping[str, Tensor], mark: str) -> dict[str, Tensor]:
    return {name.removeprefix(mark): value for name, value in tensors.items() if name.startswith(mark)}


def _progress(stored: dict[str, Any]) -> TrainingState:
    """Where a training stood; numbers only where numbers belong."""
    progress = TrainingState(**stored)
    names = ("step", "generation", "used", "tuning_step", "tokens", "best_at", "log_bytes")
    plain = all(type(count) is int and 0 <= count < 2**62 for count in (getattr(progress, name) for name in names))
    timed = isinstance(progress.seconds, (int, float)) and 0 <= progress.seconds < math.inf
    judged = progress.best is None or (isinstance(progress.best, float) and math.isfinite(progress.best))
    if not (plain and timed and judged and isinstance(progress.log_sha256, str)):
        raise TypeError(f"progress is {stored!s:.60}")
    return progress


def _check_tensors(path: Path, tensors: dict[str, Tensor], policy: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Refuse a state whose tensors are not those of this policy and its optimizer."""
    expected = {f"weights.{name}": value.shape for name, value in policy.state_dict().items()}
    shapes = {f"earlier.{name}": value.shape for name, value in policy.state_dict().items()} | expected
    trained = {f"optimizer.{name}": parameter.shape for name, parameter in _names(optimizer, policy).items()}
    for name, value in tensors.items():
        owner, colon, moment = name.rpartition(":")
        shape = (trained.get(owner) if moment != "step" else torch.Size()) if colon else shapes.get(name)
        expected.pop(name, None)
        if value.shape != shape or (colon and owner not in trained) or not value.dtype.is_floating_point:
            raise _broken(path, f"{name:.60} does not belong there")
    if expected:
        raise _broken(path, f"{next(iter(expected))} is missing")


def _broken(path: Path, why: object) -> InputError:
    return InputError(f"training state {path} is broken ({why}); delete its folder and begin again")
