"""The command line: reads a command, runs it, and turns every foreseeable error into one line."""

import dataclasses
import difflib
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import Any, Never, get_type_hints

import tyro
from tyro import conf

from driftformer.commands import COMMANDS
from driftformer.commands.options import Command, choices_of, one_of
from driftformer.errors import InputError, unknown_name
from driftformer.storage.events import JSON_LINES, as_json_lines, say

_FLAT = (conf.CascadeSubcommandArgs, conf.OmitArgPrefixes, conf.OmitSubcommandPrefixes, conf.FlagCreatePairsOff)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; errors that a user can mend end it with one line and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    with as_json_lines() if "--log-json" in arguments else nullcontext():
        try:
            command = _parse(arguments)
            with import_module("driftformer.randomness").one_thread() if command.computes else nullcontext():
                command.run()
        except InputError as error:
            _fail(str(error))
        except MemoryError as error:
            _fail(f"not enough memory ({error}); use fewer runs, arms, dims or rounds")
        except OSError as error:
            path = os.fsdecode(error.filename or "file")
            _fail(f"{path}: {error.strerror}; check the disk and the permissions")
        except KeyboardInterrupt:
            print("\ninterrupted; results in --out are kept: run the same command to resume", file=sys.stderr)
            sys.exit(130)


def _fail(message: str) -> Never:
    message = " ".join(message.split())
    if JSON_LINES.get():
        say("error", message=message)
    else:
        print(f"driftformer: error: {message}", file=sys.stderr)
    sys.exit(2)


def _parse(arguments: list[str]) -> Command:
    """The command with its options. Without a command, tyro shows all of them, or writes a shell completion."""
    name = next(iter(arguments), "")
    if name and not name.startswith("-") and name not in COMMANDS:
        raise unknown_name("command", name, COMMANDS)
    kind: Any = COMMANDS.get(name)
    words = arguments[1:] if kind else arguments

    def refuse(event: Any) -> Never:
        raise InputError(_explained(event, kind, words))

    # tyro hands its errors over as data, but not by a public name: without it, they are printed in tyro's own way.
    errors_to = getattr(getattr(tyro, "_errors", None), "on_parse_error", nullcontext)
    with errors_to(refuse):
        command: Command = tyro.cli(
            kind or one_of(COMMANDS),
            prog=f"driftformer {name}" if kind else "driftformer",
            description=None if kind else "Decision-making in a changing world, measured by dynamic regret.",
            args=words,
            config=_FLAT,
        )
    return command


def _explained(event: Any, kind: Any, words: Sequence[str]) -> str:
    """What is wrong with the words of a command, and what to do."""
    see = f"see {event.prog} --help"
    match type(event).__name__:
        case "UnrecognizedArgs":
            return _unrecognized(event.tokens[0], kind, words, see)
        case "InvalidChoice":
            return str(unknown_name(event.argument.display_name(), event.value, event.choices))
        case "InstantiationFailure" if event.argument is None:
            return str(event.message)
        case "InstantiationFailure":
            reason = str(event.message).rpartition("'>: ")[2]  # of an optional value, what its type says
            return f"{event.argument.display_name()} takes {event.argument.lowered.metavar}; {reason}"
        case "BadValue":
            return f"{event.argument.display_name()} needs a value; {see}"
        case "MissingSubcommand":
            return f"name one of {', '.join(event.subcommand_spec.parser_from_name)}; {see}"
        case "MissingArgs":
            names = [missing.arg.display_name() for missing in event.missing_arguments]
            return f"{' and '.join(names)} must be given; {see}"
    return f"these arguments cannot be used ({type(event).__name__}); {see}"


def _unrecognized(word: str, kind: Any, words: Sequence[str], see: str) -> str:
    """What to write instead: the nearest option, or the nearest name where one of several had to be chosen."""
    options = []
    kinds = [kind] if dataclasses.is_dataclass(kind) else []
    for one in kinds:  # grows by the dataclasses inside it
        types = get_type_hints(one, include_extras=True)
        for name in (field.name for field in dataclasses.fields(one)):
            if choices := choices_of(types[name]):
                chosen = [choices[word] for word in words if word in choices]
                if not chosen and not word.startswith("-"):
                    return str(unknown_name(name, word, choices))
                kinds += chosen
            elif dataclasses.is_dataclass(types[name]):
                kinds.append(types[name])
            elif conf.Positional not in getattr(types[name], "__metadata__", ()):
                options.append(f"--{name.replace('_', '-')}")
    if not word.startswith("-"):
        return f"'{word}' is one word too many; {see}"
    near = difflib.get_close_matches(word, options, n=1, cutoff=0.8)  # both begin with --
    return f"there is no option {word}; {f'did you mean {near[0]}?' if near else see}"
