"""The command line: reads a command, runs it, and turns every foreseeable error into one line."""

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import Any, Never

import tyro
from tyro import conf

from driftformer.commands import COMMANDS
from driftformer.commands.complete import COMPLETE, candidates
from driftformer.commands.help import VERSION, overview, page_of
from driftformer.commands.options import Command, options_of, pending
from driftformer.errors import InputError, nearest, unknown_name
from driftformer.storage.events import JSON_LINES, as_json_lines, say

_FLAT = (conf.CascadeSubcommandArgs, conf.OmitArgPrefixes, conf.OmitSubcommandPrefixes, conf.FlagCreatePairsOff)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; errors that a user can mend end it with one line and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    with as_json_lines() if "--log-json" in arguments else nullcontext():
        try:
            if (command := _parse(arguments)) is None:
                return
            with import_module("driftformer.randomness").one_thread() if command.computes else nullcontext():
                command.run()
        except InputError as error:
            _fail(str(error))
        except MemoryError as error:
            _fail(f"not enough memory ({error}); use fewer runs, arms, dims or rounds")
        except BrokenPipeError:  # whoever reads has seen enough, as head has
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
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


def _parse(arguments: list[str]) -> Command | None:
    """The command with its options; None where a page of help or candidates for a shell were asked for and printed."""
    name, *words = arguments or ["--help"]
    if name == COMPLETE:
        print(*candidates(*words), sep="\n")
        return None
    if name == "help" and words:
        name, *words = *words, "--help"
    if name in ("--help", "-h", "help", "--version"):
        print(VERSION if name == "--version" else overview())
        return None
    if name not in COMMANDS:
        raise _unknown_command(name)
    kind = COMMANDS[name]

    def read() -> Command:
        command: Command = tyro.cli(kind, prog=f"driftformer {name}", args=words, config=_FLAT)
        return command

    def refuse(event: Any) -> Never:
        raise InputError(_explained(event, kind, words))

    # tyro hands its errors over as data, but not by a public name: without it, they are printed in tyro's own way.
    errors_to = getattr(getattr(tyro, "_errors", None), "on_parse_error", nullcontext)
    with errors_to(refuse):
        if not {"-h", "--help"} & set(words):
            return read()
        print(page_of(kind, words, read))
    return None


def _unknown_command(name: str) -> InputError:
    """For a picture, an environment or a recipe, the command that takes it."""
    within: dict[str, str] = {}
    for outer, kind in COMMANDS.items():
        for choice in _first_choices(kind):
            within.setdefault(choice, f"{outer} {choice}")
    if not nearest(name, COMMANDS) and (near := nearest(name, within)):
        return InputError(f"command: there is no '{name}'; did you mean '{within[near]}'?")
    return unknown_name("command", name, COMMANDS)


def _first_choices(kind: Any) -> list[str]:
    return [choice for choices in pending(kind, ()).values() for choice in choices]


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
    if not word.startswith("-"):
        for name, choices in pending(kind, words).items():
            return str(unknown_name(name, word, choices))
        return f"'{word}' is one word too many; {see}"
    flags = [option.flag for option in options_of(kind, words) if not option.positional]
    near = nearest(word, flags, cutoff=0.8)  # both begin with --
    return f"there is no option {word}; {f'did you mean {near}?' if near else see}"
