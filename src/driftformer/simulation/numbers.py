"""How a number is written: the same digits in tables, figures, the report and cards.

Values come here unrounded: 13.646 that was first rounded to 13.65 would be 13.7.
"""

from __future__ import annotations


def number(value: float) -> str:
    """One decimal, or two digits where one decimal would hide a small number."""
    return format(value + 0.0, ".2g" if 0 < abs(value) < 0.995 else ".1f")


def signed(value: float) -> str:
    """The same with its sign."""
    return ("-" if value < 0 else "+") + number(abs(value))


def with_error(mean: float, stderr: float | None) -> str:
    """A mean and its standard error, which a single run does not have."""
    return number(mean) + ("" if stderr is None else f" ± {number(stderr)}")


def share(value: float) -> str:
    """A part of one."""
    return f"{value:.3f}"
