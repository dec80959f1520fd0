"""What commands have in common: the protocol, and the options that several of them take."""

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol, Union, get_args, get_type_hints

from tyro.conf import Positional, Suppress, arg, subcommand

from driftformer.environments.presets import Preset
from driftformer.environments.registry import PRESETS


class Command(Protocol):
    """A dataclass of options that can be run."""

    computes: ClassVar[bool] = True
    """Whether it needs torch. If so, it runs with one thread: more would change the last bits of the results."""

    def run(self) -> None: ...


def one_of(kinds: Mapping[str, type]) -> Any:
    """The type of a field that takes one of several dataclasses, by name; help shows how their texts begin."""
    summaries = {name: (kind.__doc__ or "").partition("\n\n")[0] for name, kind in kinds.items()}
    members = [Annotated[kind, name, subcommand(name, description=summaries[name])] for name, kind in kinds.items()]
    return Union[tuple(members)]  # noqa: UP007


def choices_of(field_type: Any) -> dict[str, type]:
    """The inverse of `one_of`; empty for any other type."""
    named = [member for member in get_args(field_type) if hasattr(member, "__metadata__")]
    return {member.__metadata__[0]: member.__origin__ for member in named}


@dataclass(frozen=True)
class Option:
    """One thing that a command takes."""

    name: str
    type: Any
    positional: bool

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"


def options_of(kind: Any, words: Collection[str]) -> list[Option]:
    """What a command takes, with the options of what the words choose."""
    return [Option(name, of, Positional in _marks(of)) for name, of in _fields(kind, words) if not choices_of(of)]


def pending(kind: Any, words: Collection[str]) -> dict[str, dict[str, type]]:
    """The choices that the words leave open, by the name of their field."""
    found = {name: choices_of(of) for name, of in _fields(kind, words)}
    return {name: choices for name, choices in found.items() if choices and not set(choices) & set(words)}


def _fields(kind: Any, words: Collection[str]) -> Iterator[tuple[str, Any]]:
    """The fields of a dataclass, those of the dataclasses in it, and those of what the words choose."""
    types = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        of = types[field.name]
        if dataclasses.is_dataclass(of):
            yield from _fields(of, words)
        elif Suppress not in _marks(of):
            yield field.name, of
            for chosen in (choice for name, choice in choices_of(of).items() if name in words):
                yield from _fields(chosen, words)


def _marks(of: Any) -> tuple[Any, ...]:
    return getattr(of, "__metadata__", ())


if TYPE_CHECKING:
    Environment = Preset
else:
    Environment = one_of(PRESETS)

Name = Annotated[Positional[str], arg(metavar="NAME")]
Several = Annotated[tuple[str, ...], arg(help_behavior_hint="")]
"""Words, by default none."""
OptionalFile = Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="(optional)")]
OptionalFolder = Annotated[Path | None, arg(metavar="FOLDER", help_behavior_hint="(optional)")]
Seed = Annotated[int, arg(help="Random seed. The same seed gives the same results.")]
Workers = Annotated[int, arg(help="Number of processes, one thread each.")]
Device = Annotated[str, arg(help="cpu or cuda, each with random numbers of its own.")]
Figure = Annotated[Path, arg(metavar="FILE", help="Figure to write, .png or .svg.")]
LogJson = Annotated[bool, arg(help="Write progress, retries and errors to standard error as JSON lines.")]


@dataclass(frozen=True)
class Crew:
    """Where the work is done. The results are the same, bit for bit, wherever that is."""

    workers: Annotated[int | None, arg(metavar="INT", help_behavior_hint="(default: 1; with Ray, all cores)")] = None
    """Number of processes, one thread each."""
    engine: Literal["local", "ray"] = "local"
    """Processes on this machine, or a Ray cluster that replaces lost workers (pip install 'driftformer[ray]')."""
    address: Annotated[str | None, arg(metavar="HOST:PORT", help_behavior_hint="(default: a new one, here)")] = None
    """Ray cluster to join, or auto for the one this machine belongs to."""


def keywords(command: Any, *without: str) -> dict[str, Any]:
    """The options of a command with a crew, as keyword arguments of the function that does its work."""
    options = vars(command) | vars(command.crew)
    return {name: value for name, value in options.items() if name not in ("crew", "log_json", *without)}
