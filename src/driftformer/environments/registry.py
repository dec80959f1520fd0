"""The names of environments: ours, and those that other packages register. Nothing here imports torch.

Another package names its environments in its own code,

    df.register_environment(MyPreset)       # a frozen dataclass with a `name`, options as fields, and `build()`

or in its metadata, as entry points of the group `driftformer.environments` that lead to such classes.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from driftformer.environments.changing import Bernoulli, Disjoint, Logistic
from driftformer.environments.items import Items
from driftformer.environments.mdp_presets import TABULAR
from driftformer.environments.presets import LINEAR, SHARED, Linear, Preset
from driftformer.environments.table import Table
from driftformer.errors import InputError, unknown_name
from driftformer.plugins import load_plugins

if TYPE_CHECKING:
    from torch import Tensor

    from driftformer.environments.base import Environment
    from driftformer.environments.drift import Drift

_OWN: tuple[type[Preset], ...] = (*LINEAR, Bernoulli, Logistic, Disjoint, Table, Items, *TABULAR)
PRESETS: dict[str, type[Preset]] = {preset.name: preset for preset in _OWN}


def register_environment(preset: type[Any]) -> type[Any]:
    """Make an environment known by its name, to `make_env`, the command line and Gymnasium; usable as a decorator.

    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> @df.register_environment
    ... @dataclass(frozen=True, kw_only=True)
    ... class Weekly:
    ...     "A linear bandit whose best arm turns every week."
    ...
    ...     weeks: int = 8
    ...     "Weeks."
    ...     name: ClassVar[str] = "weekly"
    ...
    ...     def build(self):
    ...         turned = lambda t, w: w.roll((t - 1) // 7, dims=1)
    ...         return df.make_env("stationary", horizon=7 * self.weeks, drift=turned)
    >>> df.make_env("weekly", weeks=4).horizon
    28

    An environment from nothing is in docs/how-to/environment.md.
    """
    name = getattr(preset, "name", None)
    usable = isinstance(preset, type) and callable(getattr(preset, "build", 0))
    if not usable or not dataclasses.is_dataclass(preset):
        raise InputError(f"environment is {preset!r:.60}; register a frozen dataclass with a `name` and `build()`")
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise InputError(f"environment {preset.__name__} has the name {name!r:.60}; give small letters and hyphens")
    if PRESETS.get(name, preset) is not preset:
        raise InputError(f"environment '{name}' is registered already; choose another name")
    for field in dataclasses.fields(preset):
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise InputError(f"environment '{name}': its option {field.name} has no default; give it one")
    PRESETS[name] = cast("type[Preset]", preset)
    register_with_gymnasium()
    return preset


def register_with_gymnasium() -> None:
    """Make `gymnasium.make("driftformer/High-v0")` work for all environments."""
    try:
        from gymnasium.envs.registration import register, registry
    except ImportError:
        return
    for name in PRESETS:
        spec = f"driftformer/{name.title().replace('-', '')}-v0"
        if spec not in registry:
            register(
                id=spec,
                entry_point="driftformer.environments.gymnasium:Problem",
                vector_entry_point="driftformer.environments.gymnasium:ProblemVector",
                kwargs={"preset": name},
            )


def load_environments() -> None:
    """Register the environments that other packages name in their metadata."""
    load_plugins("driftformer.environments", register_environment)


def make_env(name: str, *, drift: Drift | Callable[[int, Tensor], Tensor] | None = None, **options: Any) -> Environment:
    """A named environment with some of its options changed.

    `drift` replaces a linear bandit's own: a function `f(t, w) -> w_t` on tensors `[B, d]`, or a `Drift` object.

    >>> env = df.make_env("jumps", horizon=200, changes=3)
    >>> print(env.describe())
    jumps: changes=3, T=200, d=32, 10 fixed arms
    >>> turning = df.make_env("stationary", drift=lambda t, w: w.roll(t // 100, dims=1))
    """
    if name not in PRESETS:
        load_environments()
    if name not in PRESETS:
        raise unknown_name("environment", str(name), PRESETS)
    options = {key: value.item() if _is_numpy_scalar(value) else value for key, value in options.items()}
    known = [field.name for field in dataclasses.fields(cast(Any, PRESETS[name]))]
    for option in options:
        if option not in known:
            raise unknown_name(f"environment '{name}', option", option, known)
    preset = PRESETS[name](**options)
    if drift is None:
        return preset.build()
    if isinstance(preset, TABULAR):
        from driftformer.environments.mdp_drift import as_mdp_drift

        return preset.build(as_mdp_drift(drift))
    if not isinstance(preset, Linear):
        raise InputError(f"environment '{name}' takes no drift of your own; use stationary, or another linear bandit")
    own = [option for option in options if option not in SHARED]
    if own:
        raise InputError(f"{own[0]} belongs to the drift of '{name}', which drift= replaces; drop one of the two")
    from driftformer.environments.drift import as_drift

    return preset.build(as_drift(drift))


def _is_numpy_scalar(value: Any) -> bool:
    return hasattr(value, "dtype") and getattr(value, "shape", None) == ()
