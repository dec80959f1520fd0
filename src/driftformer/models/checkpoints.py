"""Policies on disk: config.json and model.safetensors, as transformers writes them, checked before use.

A policy may come from a stranger. Only these two files are ever opened: numbers and JSON, no pickle, no code. Only the
sizes are taken from the config, and they are compared with the weights; everything else in it is ignored. Weights that
a training wrote carry a checksum and those sizes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from driftformer.errors import InputError
from driftformer.models.configuration import PolicyConfig
from driftformer.models.incontext import InContextPolicy
from driftformer.models.query import QueryPolicy
from driftformer.models.tabular import TabularPolicy
from driftformer.policies import WEIGHTS
from driftformer.storage.files import read_json, write_atomically
from driftformer.storage.tensors import BrokenFile, parse_object, read_tensors, with_checksum

CONFIG = "config.json"
LARGEST_CONFIG = 2**20
"""Bytes."""
_AGAIN = "copy or train it again"
_NUMBERS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
SIZES = ("form", "backbone", "dim", "arms", "horizon", "layers", "heads", "width")


Policy = InContextPolicy | QueryPolicy | TabularPolicy


def new_policy(config: PolicyConfig) -> Policy:
    """A policy of some form and size, with random weights."""
    forms: dict[str, type[QueryPolicy | TabularPolicy]] = {"query": QueryPolicy, "tabular": TabularPolicy}
    return forms[config.form](config) if config.form in forms else InContextPolicy(config)


def save_policy(policy: Policy, folder: Path, dtype: torch.dtype = torch.bfloat16) -> None:
    """Write a policy, by default with two bytes per weight; its class' `from_pretrained(folder)` reads it too."""
    weights = {name: value.detach().to("cpu", dtype).contiguous() for name, value in policy.state_dict().items()}
    config = PolicyConfig(**policy_sizes(policy.config), architectures=[type(policy).__name__], dtype=str(dtype)[6:])
    content = with_checksum(save(weights, metadata={"format": "pt"}), policy_sizes(config))
    write_atomically(folder / WEIGHTS, content)
    write_atomically(folder / CONFIG, (json.dumps(config.to_dict(), indent=1, sort_keys=True) + "\n").encode())


def policy_sizes(config: PolicyConfig) -> dict[str, Any]:
    """The form and sizes of a policy."""
    return {name: getattr(config, name) for name in SIZES}


def read_policy(folder: Path) -> Policy:
    """A policy in float32, ready to play; refuses one that is broken, of another kind, or has NaN weights."""
    config, path = _read_config(folder / CONFIG), folder / WEIGHTS
    if not path.exists():
        raise InputError(f"policy {folder} has no {WEIGHTS}; name a folder that a training or save_pretrained wrote")
    try:
        weights, text = read_tensors(path, load)
        written = parse_object(text) if text else {}
    except BrokenFile as error:
        raise InputError(f"policy {path} is broken or cut off ({error}); {_AGAIN}") from None
    for name, size in policy_sizes(config).items():
        if written and written.get(name) != size:
            raise InputError(
                f"policy {folder / CONFIG} says that {name} is {size}, but {WEIGHTS} was written with "
                f"{written.get(name)!r:.60}; {_AGAIN}"
            )
    if len(weights) < config.layers:
        claim = f"the {config.layers} layers that {CONFIG} claims"
        raise InputError(f"policy {path} has {len(weights)} tensors, too few for {claim}; {_AGAIN}")
    with torch.device("meta"):
        policy = new_policy(config)
    expected, found = _shapes(policy.state_dict()), _shapes(weights)
    for name in [*expected, *found]:
        if expected.get(name) != found.get(name):
            raise InputError(
                f"policy {path} has another architecture than its {CONFIG}: {name} is "
                f"{found.get(name, 'missing')}, expected {expected.get(name, 'missing')}; {_AGAIN}"
            )
    for name, value in weights.items():
        if value.dtype not in _NUMBERS:
            raise InputError(f"policy {path} has {value.dtype} in {name}; save it in float32, bfloat16 or float16")
        if not bool(value.isfinite().all()):
            raise InputError(f"policy {path} has NaN or infinite weights in {name}; train it again")
    policy.load_state_dict({name: value.float() for name, value in weights.items()}, assign=True)
    policy.train(False)
    return policy.requires_grad_(False)


def _shapes(weights: Mapping[str, Tensor]) -> dict[str, list[int]]:
    return {name: list(value.shape) for name, value in weights.items()}


def _read_config(path: Path) -> PolicyConfig:
    if not path.exists():
        raise InputError(f"policy {path.parent} has no {path.name}; name a folder that holds a policy")
    settings = read_json(path, LARGEST_CONFIG, _AGAIN)
    if (kind := settings.get("model_type")) != PolicyConfig.model_type:
        raise InputError(f"policy {path.parent} is of kind {kind!r:.60}; name one of kind {PolicyConfig.model_type!r}")
    try:
        return PolicyConfig(**{name: settings[name] for name in SIZES if name in settings})
    except InputError as error:
        raise InputError(f"policy file {path}: {error}") from None
