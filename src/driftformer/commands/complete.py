"""What may come next on a command line: commands, options, names, and what follows the @ of an agent.

A shell asks with `driftformer __complete LINE`, where LINE ends at the cursor; nothing here imports torch. An empty
answer leaves it to the shell, which completes the names of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args, get_origin

from driftformer.agents.registry import AGENTS, ALIASES, POLICY, POLICY_OPTIONS
from driftformer.commands.options import Option, options_of, pending
from driftformer.commands.theory import NAMES as CHECKS
from driftformer.environments.registry import PRESETS
from driftformer.experiments import NAMES
from driftformer.policies import shipped

COMPLETE = "__complete"

_NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "agents": lambda: [*AGENTS, *ALIASES, *(POLICY + name for name in shipped())],
    "agent": lambda: _NAMES["agents"](),
    "behaviours": lambda: _NAMES["agents"](),
    "labels": lambda: ["optimal", "behaviour", *AGENTS, *ALIASES],
    "policy": shipped,
    "start": shipped,
    "environment": lambda: PRESETS,
    "worlds": lambda: PRESETS,
    "only": lambda: CHECKS,
    "experiments": lambda: [*NAMES, "all"],
    "device": lambda: ["cpu", "cuda"],
}
"""Values by the name of the option that takes them."""


def candidates(line: str, ending: str | None = None) -> list[str]:
    """The words that could stand at the end of a line; of each, what takes the place of the ending.

    Bash breaks words at colons and more, and wants to hear only what replaces the last piece.
    """
    _, *words = [*line.split(), *([""] if line[-1:].isspace() else [])]
    if not words:
        return []
    found = [word for word in _following(words) if word.startswith(words[-1])]
    kept = 0 if ending is None else len(words[-1]) - len(ending)
    return [word[kept:] for word in found]


def _following(words: list[str]) -> Iterable[str]:
    from driftformer.commands import COMMANDS

    *before, typed = words
    if not before:
        return [*COMMANDS, "help", "--help", "--version"]
    if before == ["help"]:
        return COMMANDS
    if before[0] not in COMMANDS:
        return []
    kind = COMMANDS[before[0]]
    options = {option.flag: option for option in options_of(kind, before[1:]) if not option.positional}
    if typed.startswith("-"):
        return [*options, "--help"]
    if (option := _being_filled(before, options)) is not None:
        return _values(option, typed)
    for choices in pending(kind, before[1:]).values():
        return choices
    for option in options_of(kind, before[1:]):
        if option.positional:
            return _values(option, typed)
    return []


def _being_filled(before: list[str], options: dict[str, Option]) -> Option | None:
    """The option whose value the cursor is at: the last one, if it takes a value, and has none yet or takes many."""
    place = max((at for at, word in enumerate(before) if word in options), default=None)
    if place is None:
        return None
    option, given = options[before[place]], len(before) - 1 - place
    return option if _many(option.type) or (given == 0 and _plain(option.type) is not bool) else None


def _values(option: Option, typed: str) -> Iterable[str]:
    literal = next((kind for kind in _kinds(option.type) if get_origin(kind) is Literal), None)
    if literal is not None:
        return list(map(str, get_args(literal)))
    if "@" in typed and option.name in ("agents", "agent"):
        return _agent_options(typed)
    return _NAMES.get(option.name, list)()


def _agent_options(typed: str) -> list[str]:
    """An agent up to the option being written, with each option that it takes."""
    written = typed[: max(typed.rfind(","), typed.index("@")) + 1]
    name = typed.partition("@")[0]
    entry = AGENTS.get(ALIASES.get(name, name).partition("@")[0])
    options = POLICY_OPTIONS if name.startswith(POLICY) else entry.options if entry else {}
    return [f"{written}{option}=" for option in options]


def _plain(of: Any) -> Any:
    """A type without what tyro was told about it."""
    return _plain(of.__origin__) if hasattr(of, "__metadata__") else of


def _kinds(of: Any) -> tuple[Any, ...]:
    """The type, and those that it may be instead or that it has many of."""
    plain = _plain(of)
    return (plain,) if get_origin(plain) is Literal else (plain, *map(_plain, get_args(plain)))


def _many(of: Any) -> bool:
    return get_origin(_plain(of)) is tuple
