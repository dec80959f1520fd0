"""Policies on disk: config.json and model.safetensors, as transformers writes them; checked before they are used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from driftformer.errors import InputError
from driftformer.files import write_atomically
from driftformer.models.configuration import PolicyConfig
from driftformer.models.incontext import InContextPolicy
from driftformer.policies import WEIGHTS

CONFIG = "config.json"


def save_policy(policy: InContextPolicy, folder: Path, dtype: torch.dtype = torch.bfloat16) -> None:
    """Write a policy, by default with weights of two bytes; `InContextPolicy.from_pretrained(folder)` reads it too."""
    weights = {name: value.detach().to("cpu", dtype).contiguous() for name, value in policy.state_dict().items()}
    config = PolicyConfig(**policy_sizes(policy.config), architectures=[type(policy).__name__], dtype=str(dtype)[6:])
    write_atomically(folder / WEIGHTS, save(weights, metadata={"format": "pt"}))
    write_atomically(folder / CONFIG, (json.dumps(config.to_dict(), indent=1, sort_keys=True) + "\n").encode())


def policy_sizes(config: PolicyConfig) -> dict[str, Any]:
    """What a config says about a policy's form and size."""
    names = ("form", "backbone", "dim", "arms", "horizon", "layers", "heads", "width")
    return {name: getattr(config, name) for name in names}


def read_policy(folder: Path) -> InContextPolicy:
    """A policy in float32, ready to play; refuses what is broken, of another kind, or not a number."""
    config = _read_config(folder / CONFIG)
    path = folder / WEIGHTS
    if not path.exists():
        raise InputError(f"policy {folder} has no {WEIGHTS}; name a folder that a training or save_pretrained wrote")
    try:
        weights = load_file(path)
    except SafetensorError as error:
        raise InputError(f"policy {path} is broken or cut off ({error}); copy or train it again") from None
    with torch.device("meta"):
        policy = InContextPolicy(config)
    expected = {name: value.shape for name, value in policy.state_dict().items()}
    found = {name: value.shape for name, value in weights.items()}
    if expected != found:
        name = next(name for name in [*expected, *found] if expected.get(name) != found.get(name))
        raise InputError(
            f"policy {path} is of another architecture than its {CONFIG} says: {name} is "
            f"{_shape(found.get(name))} there, {_shape(expected.get(name))} is expected"
        )
    for name, value in weights.items():
        if not bool(value.isfinite().all()):
            raise InputError(f"policy {path} has NaN or infinite weights in {name}; train it again")
    policy.load_state_dict({name: value.float() for name, value in weights.items()}, assign=True)
    policy.train(False)
    return policy.requires_grad_(False)


def _shape(shape: torch.Size | None) -> str:
    return "missing" if shape is None else str(list(shape))


def _read_config(path: Path) -> PolicyConfig:
    if not path.exists():
        raise InputError(f"policy {path.parent} has no {path.name}; name a folder that holds a policy")
    try:
        settings = json.loads(path.read_bytes())
    except ValueError as error:
        raise InputError(f"policy file {path} is broken ({error}); copy or train it again") from None
    kind = settings.get("model_type") if isinstance(settings, dict) else None
    if kind != PolicyConfig.model_type:
        raise InputError(f"policy {path.parent} is of kind {kind!r}; a {PolicyConfig.model_type!r} one is needed")
    try:
        return PolicyConfig(**settings)
    except TypeError as error:
        raise InputError(f"policy file {path} is broken ({error}); copy or train it again") from None
