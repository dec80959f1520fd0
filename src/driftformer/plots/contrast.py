"""Colours that can be seen on a light and on a dark page: the same hue, as light or dark as the page asks for.

Contrast is that of the Web Content Accessibility Guidelines 2.2: lines need 3:1, text 4.5:1.
"""

from __future__ import annotations

LIGHT, DARK = "#ffffff", "#1c1c20"
"""The pages that colours are seen on."""
LINE, TEXT = 3.0, 4.5
"""The least contrast."""
_STEPS = 50


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def seen_on(page: str, colour: str, least: float) -> str:
    """The colour itself, or the nearest that stands out: mixed with white on a dark page, with black on a light one."""
    end = (255, 255, 255) if _luminance(page) < 0.2 else (0, 0, 0)
    for step in range(_STEPS + 1):
        mixed = _mixed(colour, end, step / _STEPS)
        if contrast(mixed, page) >= least:
            return mixed
    return _mixed(colour, end, 1.0)


def _mixed(colour: str, end: tuple[int, int, int], share: float) -> str:
    return "#" + "".join(
        f"{round(part + (last - part) * share):02x}" for part, last in zip(_parts(colour), end, strict=True)
    )


def _luminance(colour: str) -> float:
    linear = [part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in _parts(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _parts(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))
