"""The grid of a sweep: some fields of an environment and some options of agents, each with its values.

A grid is written as flags (`--vary b=0,0.01 --vary agent.alpha=0.5,1`) or as a YAML file:

    environment: high
    agents: [linucb, thompson, discounted-linucb@gamma=0.9]
    vary:
      horizon: 200                 # a single value is set, not varied
      b: [0, 0.01, 0.018]
      agent.alpha: [0.5, 1, 2]     # of the agents that have it; the others play once
    runs: 200
    seed: 0

A file may come from anyone: its size and depth are limited, and only plain values are read.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, cast

import yaml

from driftformer.agents.registry import AGENTS, ALIASES, POLICY, POLICY_OPTIONS, BaseAgent
from driftformer.environments.registry import PRESETS
from driftformer.errors import InputError, require_choice, require_count, unknown_name

OPTION = "agent."
"""The prefix of options of agents; other names are fields of the environment."""

LARGEST = 100_000
"""Rows of a grid: cells times agents."""

_LARGEST_FILE = 1_000_000
_DEEPEST = 4
_KEYS = ("environment", "vary", "agents", "runs", "seed")


@dataclass(frozen=True)
class Variant:
    """An agent with some of its options varied."""

    agent: str  # as it was asked for
    options: Mapping[str, Any]

    @property
    def written(self) -> str:
        """What `make_agent` reads."""
        options = ",".join(f"{name}={value}" for name, value in self.options.items())
        return self.agent + ("," if "@" in self.agent else "@") * bool(options) + options


@dataclass(frozen=True)
class Grid:
    """Each cell is an environment, and every agent plays `runs` problems in all of them."""

    environment: str
    agents: tuple[str, ...]
    vary: Mapping[str, tuple[Any, ...]]
    runs: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        require_count("runs", self.runs)
        require_count("seed", self.seed, 0, most=2**63)

    @property
    def fields(self) -> dict[str, tuple[Any, ...]]:
        return {name: values for name, values in self.vary.items() if not name.startswith(OPTION)}

    def options(self, agent: str) -> dict[str, tuple[Any, ...]]:
        """The varied options that an agent has."""
        varied = {name.removeprefix(OPTION): v for name, v in self.vary.items() if name.startswith(OPTION)}
        return {name: values for name, values in varied.items() if name in options_of(agent)}

    @property
    def varied(self) -> list[str]:
        """The names with more than one value: the axes of a figure."""
        return [name for name, values in self.vary.items() if len(values) > 1]

    def cells(self) -> Iterator[dict[str, Any]]:
        """The environment's settings in each cell."""
        return _combinations(self.fields)

    def variants(self) -> list[Variant]:
        """Each agent with each combination of the varied options that it has."""
        return [Variant(agent, chosen) for agent in self.agents for chosen in _combinations(self.options(agent))]

    @property
    def size(self) -> int:
        """The number of rows, without making them."""
        variants = sum(math.prod(map(len, self.options(agent).values())) for agent in self.agents)
        return variants * math.prod(map(len, self.fields.values()))


def _combinations(values: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    return (dict(zip(values, chosen, strict=True)) for chosen in product(*values.values()))


def options_of(agent: str) -> dict[str, Any]:
    """The options of an agent, with their defaults, by its name."""
    name = agent.partition("@")[0]
    if name.startswith(POLICY):
        return POLICY_OPTIONS
    name = ALIASES.get(name, name).partition("@")[0]
    if name not in AGENTS:
        raise unknown_name("agent", name, [*AGENTS, *ALIASES])
    return {key: value for key, value in AGENTS[name].options.items() if not isinstance(value, BaseAgent)}


def make_grid(environment: str, agents: Sequence[str], vary: Mapping[str, Any]) -> Grid:
    """A grid of typed values; refuses unknown names and too many rows."""
    require_choice("environment", environment, PRESETS)
    if not agents:
        raise InputError("agents is empty; name at least one, as `driftformer list` shows them")
    fields = {field.name: field.default for field in dataclasses.fields(cast(Any, PRESETS[environment]))}
    options = {name: value for agent in agents for name, value in options_of(agent).items()}
    typed = {}
    for name, values in vary.items():
        short = name.removeprefix(OPTION)
        known = fields if short == name else options
        if short not in known:
            kind = f"environment '{environment}', field" if short == name else "option of agents"
            raise unknown_name(f"vary, {kind}", short, known or ["(none)"])
        if short != name:
            _refuse_fixed(short, agents)
        typed[name] = _values(name, values, known[short])
    grid = Grid(environment, tuple(agents), typed)
    if not grid.varied:
        raise InputError("vary has nothing with two values; write --vary b=0,0.01, or use driftformer evaluate")
    if grid.size > LARGEST:
        raise InputError(
            f"the grid has {grid.size:,} rows (cells times agents), more than {LARGEST:,}; give fewer values"
        )
    return grid


def _refuse_fixed(option: str, agents: Sequence[str]) -> None:
    for agent in agents:
        if any(part.startswith(f"{option}=") for part in agent.partition("@")[2].split(",")):
            raise InputError(f"agents: '{agent}' sets {option}, which vary changes too; drop one of the two")


def _values(name: str, values: Any, default: Any) -> tuple[Any, ...]:
    """One or more different values, in the type of the default."""
    listed = values if isinstance(values, (list, tuple)) else [values]
    if isinstance(default, tuple):
        raise InputError(f"vary: {name} takes a list and cannot be varied; vary another field")
    if not listed:
        raise InputError(f"vary: {name} has no values; give at least one")
    typed = tuple(_value(name, value, type(default)) for value in listed)
    value, count = Counter(typed).most_common(1)[0]
    if count > 1:
        raise InputError(f"vary: {name} has {value} twice; give each value once")
    return typed


def _value(name: str, value: Any, kind: type) -> Any:
    plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    with suppress(TypeError, ValueError, OverflowError):
        typed = kind(value)
        if plain and (kind is str or (math.isfinite(typed) and typed == float(value))):
            return typed
    words = {int: "a whole number", float: "a finite number"}.get(kind, "a word")
    raise InputError(f"vary: {name} is {str(value)[:60]!r}; give {words}")


def read_flags(written: Sequence[str]) -> dict[str, list[str]]:
    """Names and values of `--vary name=value,value`."""
    vary: dict[str, list[str]] = {}
    for word in written:
        name, equals, values = word.partition("=")
        if not equals or not name or not values:
            raise InputError(f"vary: '{word}' is not of the form name=value,value; write --vary b=0,0.01,0.018")
        if name in vary:
            raise InputError(f"vary: {name} is given twice; give all of its values at once")
        vary[name] = values.split(",")
    return vary


def asked_for(
    file: Path | None,
    environment: str | None,
    vary: Sequence[str],
    agents: Sequence[str],
    runs: int | None,
    seed: int | None,
) -> Grid:
    """A grid from a file or from flags; runs and seed given as flags override those of the file."""
    if file is not None and (environment or vary or agents):
        raise InputError("grid is given both as a file and as flags; give --grid, or --environment and --vary")
    if file is not None:
        grid = read_file(file)
    elif environment is not None:
        grid = make_grid(environment, agents or ("linucb",), read_flags(vary))
    else:
        raise InputError(
            "neither grid nor environment is given; write --environment high --vary b=0,0.01, or --grid FILE"
        )
    return replace(grid, runs=grid.runs if runs is None else runs, seed=grid.seed if seed is None else seed)


def read_file(path: Path) -> Grid:
    """A grid from a YAML file."""
    if not path.is_file():
        raise InputError(f"grid is '{path}', which is not a file; name a YAML file")
    if (size := path.stat().st_size) > _LARGEST_FILE:
        raise InputError(f"grid file {path} has {size:,} bytes; at most {_LARGEST_FILE:,} are read")
    try:
        asked = yaml.load(path.read_text(encoding="utf-8"), Loader=_Plain)
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"grid file {path} cannot be used ({' '.join(str(error).split())[:200]})") from None
    if not isinstance(asked, dict) or not isinstance(asked.get("vary"), dict):
        raise InputError(f"grid file {path} has no `vary:` with fields and values; see driftformer sweep --help")
    for key in asked:
        require_choice(f"grid file {path}, key", key, _KEYS)
    agents = asked.get("agents", ["linucb"])
    if not isinstance(agents, list) or not all(isinstance(agent, str) for agent in agents):
        raise InputError(f"grid file {path}: agents is {str(agents)[:60]!r}; give a list of names")
    vary = {str(name): values for name, values in asked["vary"].items()}
    grid = make_grid(str(asked.get("environment")), agents, vary)
    return replace(grid, **{name: asked[name] for name in ("runs", "seed") if name in asked})


class _Plain(yaml.SafeLoader):  # type: ignore[misc]
    """YAML's safe loader, which by itself takes aliases, any depth, and silently the last of several equal keys."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise ValueError(f"it uses an alias (*{self.peek_event().anchor}); write the values out")
        if self.depth >= _DEEPEST and not self.check_event(yaml.ScalarEvent):
            raise ValueError(f"it is nested more than {_DEEPEST} deep; see driftformer sweep --help")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
        for key, count in Counter(str(key.value) for key, _ in node.value).items():
            if count > 1:
                raise ValueError(f"'{key[:60]}' is there twice")
        return super().construct_mapping(node, deep)
