"""The named agents and their options. Nothing here imports torch, so that `driftformer list` answers at once.

An agent is written as its name, or as its name with options behind an @: `linucb@alpha=2,ridge=0.5`. To add one, write
its file and one entry here; the contract tests pick it up by themselves.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from driftformer.errors import InputError, unknown_name

if TYPE_CHECKING:
    from driftformer.agents.base import Agent


@dataclass(frozen=True)
class Entry:
    """Where an agent lives and what a reader of the list should know."""

    module: str
    kind: str
    summary: str
    options: dict[str, Any]  # with their defaults, shown by `list`; a test holds them to the class itself
    privileged: bool = False


AGENTS: dict[str, Entry] = {
    "random": Entry("reference", "Random", "uniform over the offered arms", {}),
    "linucb": Entry("linucb", "LinUCB", "optimism over ridge regression", {"alpha": 1.0, "ridge": 1.0}),
    "thompson": Entry(
        "thompson", "Thompson", "posterior sampling over ridge regression", {"variance": 0.3, "ridge": 1.0}
    ),
    "oracle": Entry(
        "oracle", "Oracle", "knows drift, noise and prior, not w*: the limit", {"alpha": 1.0, "explore": "ucb"}, True
    ),
    "optimal": Entry("reference", "Optimal", "knows every mean reward: regret zero", {}, True),
}


def make_agent(spec: str, **options: Any) -> Agent:
    """An agent from its name, with options behind an @ or as keywords."""
    name, _, written = spec.partition("@")
    if name not in AGENTS:
        raise unknown_name("agent", name, AGENTS)
    entry = AGENTS[name]
    kind = getattr(importlib.import_module(f"driftformer.agents.{entry.module}"), entry.kind)
    if "@" in spec:
        options = _parse(spec, written) | options
    for option in options:
        if option not in entry.options:
            raise unknown_name(f"agent '{name}', option", option, entry.options or ["(none)"])
    for option, value in options.items():
        options[option] = _convert(name, option, value, entry.options[option])
    agent: Agent = kind(**options)
    return agent


def label(agent: Agent) -> str:
    """An agent's name with those of its options that differ from the defaults: what `make_agent` would read."""
    return _written(agent, lambda value, default: value != default)


def full_label(agent: Agent) -> str:
    """An agent's name with all its options: what its stored results are known by."""
    return _written(agent, lambda value, default: True)


def _written(agent: Agent, shown: Callable[[Any, Any], bool]) -> str:
    parts = []
    for field in dataclasses.fields(cast(Any, agent)):
        default: Any = field.default
        value = type(default)(getattr(agent, field.name))  # alpha=2 and alpha=2.0 are one agent
        if shown(value, default):
            parts.append(f"{field.name}={value}")
    return agent.name + ("@" + ",".join(parts) if parts else "")


def _parse(spec: str, written: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in written.split(","):
        key, equals, value = part.partition("=")
        if not equals or not key or not value:
            raise InputError(f"agent '{spec}': '{part}' is no option; write name@option=value,option=value")
        if key in options:
            raise InputError(f"agent '{spec}': option {key} stands twice; give it once")
        options[key] = value
    return options


def _convert(name: str, option: str, value: Any, default: Any) -> Any:
    """A value, perhaps text from a command line, in the type of the option's default."""
    try:
        return type(default)(value)
    except (TypeError, ValueError):
        raise InputError(f"agent '{name}': {option} is {value!r}; give a {type(default).__name__}") from None
