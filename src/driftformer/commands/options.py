"""What commands have in common: the protocol, and the options that several of them take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol, Union, get_args

from tyro.conf import arg, subcommand

from driftformer.environments.presets import PRESETS, Preset


class Command(Protocol):
    """A dataclass of options that can be run."""

    computes: ClassVar[bool] = True
    """Whether it needs torch. If so, it runs with one thread: more would change the last bits of the results."""

    def run(self) -> None: ...


def one_of(kinds: Mapping[str, type]) -> Any:
    """The type of a field that takes one of several dataclasses, each by its name on the command line."""
    return Union[tuple(Annotated[kind, name, subcommand(name)] for name, kind in kinds.items())]  # noqa: UP007


def choices_of(field_type: Any) -> dict[str, type]:
    """The inverse of `one_of`; empty for any other type."""
    named = [member for member in get_args(field_type) if hasattr(member, "__metadata__")]
    return {member.__metadata__[0]: member.__origin__ for member in named}


if TYPE_CHECKING:
    Environment = Preset
else:
    Environment = one_of(PRESETS)

Folder = Annotated[Path | None, arg(metavar="FOLDER", help_behavior_hint="(optional)")]

LogJson = Annotated[bool, arg(help="Write progress, retries and errors to standard error as JSON lines.")]


@dataclass(frozen=True)
class Crew:
    """Where the work is done. The results are the same, bit for bit, wherever that is."""

    workers: Annotated[
        int | None, arg(metavar="INT", help_behavior_hint="(default: 1; with --engine ray, every core of the cluster)")
    ] = None
    """Number of processes, one thread each."""
    engine: Literal["local", "ray"] = "local"
    """Processes on this machine, or a Ray cluster that replaces lost workers (pip install 'driftformer[ray]')."""
    address: Annotated[
        str | None, arg(metavar="HOST:PORT", help_behavior_hint="(default: a new cluster on this machine)")
    ] = None
    """Ray cluster to join, or auto for the one this machine belongs to."""


CREW = Crew()
