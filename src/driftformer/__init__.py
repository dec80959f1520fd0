"""driftformer: decision-making in a changing world, measured by dynamic regret.

Heavy parts (torch, matplotlib) are imported when they are first used, so that `import driftformer` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from driftformer.environments.presets import make_env
from driftformer.errors import InputError

if TYPE_CHECKING:
    from driftformer.agents.incontext import load_policy
    from driftformer.agents.registry import make_agent
    from driftformer.environments.nonstationarity import nonstationarity
    from driftformer.evaluation.evaluate import evaluate
    from driftformer.evaluation.result import Result, load_result
    from driftformer.simulation.rollout import rollout

__version__ = "0.1.0"

_WHERE = {
    "load_policy": "driftformer.agents.incontext",
    "make_agent": "driftformer.agents.registry",
    "nonstationarity": "driftformer.environments.nonstationarity",
    "evaluate": "driftformer.evaluation.evaluate",
    "Result": "driftformer.evaluation.result",
    "load_result": "driftformer.evaluation.result",
    "rollout": "driftformer.simulation.rollout",
}

__all__ = [
    "InputError",
    "Result",
    "evaluate",
    "load_policy",
    "load_result",
    "make_agent",
    "make_env",
    "nonstationarity",
    "rollout",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'driftformer' has no attribute '{name}'")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_WHERE])


def _register_with_gymnasium() -> None:
    """Make `gymnasium.make("driftformer/High-v0")` work once driftformer is imported."""
    try:
        from gymnasium.envs.registration import register
    except ImportError:
        return
    from driftformer.environments.presets import PRESETS

    for name in PRESETS:
        register(
            id=f"driftformer/{name.capitalize()}-v0",
            entry_point="driftformer.environments.gymnasium:DriftingBandit",
            vector_entry_point="driftformer.environments.gymnasium:DriftingBanditVector",
            kwargs={"preset": name},
        )


_register_with_gymnasium()
