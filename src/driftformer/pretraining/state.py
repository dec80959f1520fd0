"""The state of a training, in one file that is whole or not there: weights, the optimizer's moments, where it stands.

No pickle: tensors and plain JSON. What the random numbers were is not stored, since they come from the seed and the
step alone.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from driftformer.errors import InputError
from driftformer.files import write_atomically
from driftformer.pretraining.recipes import Recipe

_FORMAT = 1


@dataclass
class Progress:
    """Where a training stands."""

    step: int = 0  # steps on labels done
    generation: int = 0  # generations used up
    tuning_step: int = 0
    seconds: float = 0.0  # of training, over all sittings
    tokens: int = 0  # tokens seen
    best: float | None = None  # least regret so far, as a share of the uniform policy's
    best_at: int = 0  # the step, of either kind, where that was


def _names(optimizer: torch.optim.Optimizer, policy: nn.Module) -> dict[str, nn.Parameter]:
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    return {name: parameter for name, parameter in policy.named_parameters() if id(parameter) in held}


_SIZES = ("tokens", "generation", "tuning_tokens", "summary")
"""May change from one sitting to the next: how much is done at once, as far as memory goes."""


def save_state(
    path: Path,
    recipe: Recipe,
    setting: dict[str, Any],
    policy: nn.Module,
    optimizer: torch.optim.Optimizer,
    progress: Progress,
) -> None:
    """`setting` is what else must stay as it is: the data, the worlds, the number of processes."""
    tensors: dict[str, Tensor] = {f"weights.{name}": value for name, value in policy.state_dict().items()}
    for name, parameter in _names(optimizer, policy).items():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"optimizer.{name}:{key}"] = value
    content = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    about = {"format": _FORMAT, "recipe": _fixed(recipe), "setting": setting, "progress": asdict(progress)}
    write_atomically(path, save(content, metadata={"driftformer": json.dumps(about)}))


def _fixed(recipe: Recipe) -> dict[str, Any]:
    return {key: value for key, value in asdict(recipe).items() if key not in _SIZES}


def load_state(
    path: Path, recipe: Recipe, setting: dict[str, Any], policy: nn.Module, optimizer: torch.optim.Optimizer
) -> Progress:
    """Take up a training where it stopped; refuse a state that is broken or of another recipe."""
    try:
        with safe_open(path, framework="pt") as file:
            about: dict[str, Any] = json.loads(file.metadata()["driftformer"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        stored = {"format": about["format"], **about["recipe"], **about["setting"]}
        progress = Progress(**about["progress"])
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"training state {path} is broken ({error}); delete its folder and begin again") from None
    asked = json.loads(json.dumps({"format": _FORMAT, **_fixed(recipe), **setting}))
    for key, value in asked.items():
        if stored.get(key) != value:
            raise InputError(
                f"training state {path} is of another training ({key} is {_brief(stored.get(key))} there and "
                f"{_brief(value)} here); repeat that one, or name another folder"
            )
    weights = {name.removeprefix("weights."): value for name, value in tensors.items() if name.startswith("weights.")}
    policy.load_state_dict(weights)
    for name, parameter in _names(optimizer, policy).items():
        mark = f"optimizer.{name}:"
        moments = {key.removeprefix(mark): value for key, value in tensors.items() if key.startswith(mark)}
        if moments:
            optimizer.state[parameter] = {
                key: value.to(parameter.device) if key != "step" or optimizer.defaults["capturable"] else value
                for key, value in moments.items()
            }
    return progress


def _brief(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "…"
