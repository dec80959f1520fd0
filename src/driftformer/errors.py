"""Errors for people: what was wrong, with the value, and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec


class InputError(ValueError):
    """Something that was asked for or handed in cannot be used; the message says what to do.

    >>> try:
    ...     df.make_env("hihg")
    ... except df.InputError as error:
    ...     print(error)
    environment: there is no 'hihg'; did you mean 'high'?
    """


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name that is not registered, with the nearest one suggested."""
    names = sorted(known)
    near = nearest(name, names)
    hint = f"did you mean '{near}'?" if near else f"choose from {', '.join(names)}"
    return InputError(f"{kind}: there is no '{name}'; {hint}")


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The name that was most likely meant, if any is near; capital letters and _ instead of - are no distance."""
    plain = {_plain(one): one for one in known}
    near = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=cutoff)
    return plain[near[0]] if near else None


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def not_installed(package: str, extra: str) -> InputError:
    """The error for a package that an extra of ours would bring."""
    return InputError(f"{package} is not installed; pip install 'driftformer[{extra}]'")


def require_package(package: str, extra: str) -> None:
    """Refuse where a package of an extra is missing, without importing it."""
    if find_spec(package) is None:
        raise not_installed(package, extra)


@contextmanager
def brought_by(extra: str) -> Iterator[None]:
    """Within: imports of packages that an extra brings. The first that is missing is named with its extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise not_installed((error.name or "a package").partition(".")[0], extra) from None


LARGEST = 1e12
"""No option is larger than this: what follows from it must stay within float32."""


def require_count(field: str, value: int, least: int = 1, most: int = 10**9) -> None:
    """Refuse anything that is not a whole number in [least, most]."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        limit = f" and at most {most}" if isinstance(value, int) and value > most else ""
        raise InputError(f"{field} is {shown(value)}; give a whole number of at least {least}{limit}")


def require_real(
    field: str, value: float, least: float = -LARGEST, *, above: bool = False, most: float = LARGEST
) -> None:
    """Refuse what is not a number in [least, most], or in (least, most] where `above` is set."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not least <= value <= most or (above and value == least):
        bounds = [f"{'above' if above else 'of at least'} {least:g}"] if least > -LARGEST else []
        bounds += [f"at most {most:g}"] if most < LARGEST or (number and value > most) else []
        raise InputError(f"{field} is {shown(value)}; give a finite number {' and '.join(bounds)}".rstrip())


def require_choice(field: str, value: str, choices: Iterable[str]) -> None:
    """Refuse a value outside a short list of words."""
    if value not in (words := list(choices)):
        raise unknown_name(field, str(value)[:60], words)


def shown(value: object) -> str:
    """A value in a message, however long it is."""
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**30 else "a huge number"
    return text if len(text) <= 60 else text[:57] + "…"
