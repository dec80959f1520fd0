"""Errors for people: what was wrong, with the value, and what to do about it."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable


class InputError(ValueError):
    """Something that was asked for or handed in cannot be used; the message says what to do."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name that is not registered, with the nearest one suggested."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"choose from {', '.join(names)}"
    return InputError(f"{kind}: there is no '{name}'; {hint}")


def require_count(field: str, value: int, least: int = 1) -> None:
    """Refuse anything that is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{field} is {value!r}; give a whole number of at least {least}")


def require_real(
    field: str, value: float, least: float = -math.inf, *, above: bool = False, most: float = math.inf
) -> None:
    """Refuse what is not a finite number in [least, most], or in (least, most] where `above` is set."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not number or value < least or value > most or (above and value == least):
        bounds = [f"{'above' if above else 'of at least'} {least:g}"] if least > -math.inf else []
        bounds += [f"at most {most:g}"] if most < math.inf else []
        raise InputError(f"{field} is {value!r}; give a finite number {' and '.join(bounds)}".rstrip())


def require_choice(field: str, value: str, choices: Iterable[str]) -> None:
    """Refuse a value outside a short list of words."""
    if value not in (words := list(choices)):
        raise unknown_name(field, str(value), words)
