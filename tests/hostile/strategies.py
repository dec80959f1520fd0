"""Bytes and JSON as an enemy, or a failing disk, would make them.

`DRIFTFORMER_EXAMPLES` sets how many are tried by each test; `python -m reliability.fuzz` does that.
"""

from __future__ import annotations

import copy
import os
import struct
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from driftformer.errors import InputError

EXAMPLES = int(os.environ.get("DRIFTFORMER_EXAMPLES", "25"))
fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)

_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([10**9, -(10**9), 2**63, 10**400, 1e308, -0.5, 1e-300]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["../../etc/passwd", "/etc/passwd", "00000.safetensors", "gpt2", "auto_map"]),
)
json_values = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """A file of which something has been cut off, flipped, overwritten, put in or made up."""
    how = draw(st.sampled_from(["cut", "flip", "overwrite", "insert", "header", "made up"]))
    place = draw(st.integers(0, len(whole) - 1))
    some = draw(st.binary(min_size=1, max_size=16))
    if how == "cut":
        return whole[:place]
    if how == "flip":
        flipped = bytearray(whole)
        flipped[place] ^= 1 << draw(st.integers(0, 7))
        return bytes(flipped)
    if how == "overwrite":
        return whole[:place] + some + whole[place + len(some) :]
    if how == "insert":
        return whole[:place] + some + whole[place:]
    if how == "header":  # of safetensors: its length comes first
        return struct.pack("<Q", draw(st.sampled_from([0, 1, 2**20, 2**40, 2**63, 2**64 - 1]))) + whole[8:]
    return draw(st.binary(max_size=200))


@st.composite
def mutated(draw: st.DrawFn, whole: dict[str, Any]) -> dict[str, Any]:
    """A JSON object of which one to three entries, at any depth, are gone, of another kind, or new."""
    changed = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 3))):
        at: Any = changed
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(min(len(at), 4)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(at[key], (dict, list)) and at[key] and draw(st.booleans()):
                at = at[key]
                continue
            if draw(st.booleans()):
                at[key] = draw(json_values)
            else:
                del at[key]
            break
        if draw(st.booleans()):
            changed[draw(st.text(max_size=8))] = draw(json_values)
    return changed


def loads_or_refuses(load: Callable[[], Any]) -> Any:
    """What a loader gives, or None where it refuses in words; any other exception fails the test."""
    try:
        return load()
    except InputError as error:
        message = str(error)
    assert len(message) < 2000, "a message is for people"
    return None
