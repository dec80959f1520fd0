"""What makes two settings the same: anything as plain JSON data, a user's function by its code and what it holds.

Results are stored under this identity, so two drifts that differ must not share one. A function is known by its name,
code, defaults and closure; an object by its class, the code of its methods and its attributes; an array by its content.
What cannot be seen are global variables that a function reads.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from typing import Any

import numpy as np
from torch import Tensor

from driftformer.storage.checksum import short_checksum

UNKNOWN = "not identifiable"
"""Stands in a config where something could not be told apart from its like; such results are not stored."""


def identify(value: Any, depth: int = 0) -> Any:
    """A value as plain data, such that different settings give different data."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if depth > 20:
        return UNKNOWN
    deeper = functools.partial(identify, depth=depth + 1)
    if isinstance(value, (list, tuple)):
        return [deeper(item) for item in value]
    if isinstance(value, dict):
        return {str(key): deeper(item) for key, item in value.items()}
    if isinstance(value, (Tensor, np.ndarray, np.generic)):
        array = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
        if array.dtype.hasobject:
            return UNKNOWN
        return f"{array.dtype} array {list(array.shape)} {short_checksum(array.tobytes())}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: deeper(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"kind": type(value).__name__, **fields}
    if isinstance(value, functools.partial):
        return {"partial": deeper(value.func), "args": deeper(value.args), "keywords": deeper(value.keywords)}
    if isinstance(value, types.MethodType):
        return {"method": deeper(value.__func__), "of": deeper(value.__self__)}
    if isinstance(value, types.FunctionType):
        closure = [cell.cell_contents for cell in value.__closure__ or ()]
        held = {"defaults": value.__defaults__, "keywords": value.__kwdefaults__, "closure": closure}
        known = {key: deeper(item) for key, item in held.items() if item}
        return {"function": value.__qualname__, "code": short_checksum(_code(value.__code__)), **known}
    if hasattr(value, "__dict__") and not isinstance(value, (type, types.ModuleType)):
        methods = [item.__code__ for item in vars(type(value)).values() if isinstance(item, types.FunctionType)]
        code = short_checksum(b"".join(_code(method) for method in methods))
        return {"kind": type(value).__name__, "code": code, **deeper(vars(value))}
    return f"{UNKNOWN}: {type(value).__name__}"


def is_identified(config: Any) -> bool:
    """Whether everything in a config could be told apart from its like."""
    if isinstance(config, dict):
        return all(map(is_identified, config.values()))
    if isinstance(config, list):
        return all(map(is_identified, config))
    return not (isinstance(config, str) and config.startswith(UNKNOWN))


def _code(code: types.CodeType) -> bytes:
    """Code without the places where it was found, nested functions included."""
    constants = [_code(item).hex() if isinstance(item, types.CodeType) else repr(item) for item in code.co_consts]
    return repr((code.co_code.hex(), code.co_names, code.co_varnames, constants)).encode()
