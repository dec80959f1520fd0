"""driftformer: decision-making in a changing world, measured by dynamic regret.

Heavy parts (torch, matplotlib) are imported when they are first used, so that `import driftformer` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from driftformer.environments.registry import load_environments, make_env, register_environment, register_with_gymnasium
from driftformer.errors import InputError

if TYPE_CHECKING:
    from driftformer.agents.incontext import load_policy
    from driftformer.agents.registry import make_agent, register_agent
    from driftformer.environments.nonstationarity import nonstationarity
    from driftformer.environments.own_mdp import mdp
    from driftformer.evaluation.choose import Choice, choose
    from driftformer.evaluation.evaluate import evaluate
    from driftformer.evaluation.result import Result, load_result
    from driftformer.logs.replay import replay
    from driftformer.problem import Observation, Traits, Truth
    from driftformer.simulation.rollout import rollout

__version__ = "0.1.0"

_WHERE = {
    "Choice": "evaluation.choose",
    "Observation": "problem",
    "Result": "evaluation.result",
    "Traits": "problem",
    "Truth": "problem",
    "choose": "evaluation.choose",
    "evaluate": "evaluation.evaluate",
    "load_policy": "agents.incontext",
    "load_result": "evaluation.result",
    "make_agent": "agents.registry",
    "mdp": "environments.own_mdp",
    "nonstationarity": "environments.nonstationarity",
    "register_agent": "agents.registry",
    "replay": "logs.replay",
    "rollout": "simulation.rollout",
}

__all__ = [
    "Choice",
    "InputError",
    "Observation",
    "Result",
    "Traits",
    "Truth",
    "choose",
    "evaluate",
    "load_policy",
    "load_result",
    "make_agent",
    "make_env",
    "mdp",
    "nonstationarity",
    "register_agent",
    "register_environment",
    "replay",
    "rollout",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'driftformer' has no attribute '{name}'")
    return getattr(importlib.import_module(f"driftformer.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_WHERE])


register_with_gymnasium()
load_environments()
