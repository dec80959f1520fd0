"""Environments of every kind in small, for tests that run over all of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import driftformer as df
from driftformer.environments.registry import PRESETS


def small(name: str, **sizes: Any) -> Any:
    """A named environment with those of the given options that it has; an MDP has episodes of five steps, a dark room
    16 fields.
    """
    known = {field.name for field in dataclasses.fields(PRESETS[name])}
    if "episodes" in known and "horizon" in sizes:
        sizes = {"episodes": sizes["horizon"] // 5, "stages": 5, "actions": sizes.get("arms", 2), "size": 4} | sizes
    return df.make_env(name, **{option: value for option, value in sizes.items() if option in known})
