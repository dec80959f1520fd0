"""Experiments that train many small policies: how much data, which architecture, and what drift to train on.

At the `quick` scale they are toys for a CPU (4 dimensions, 4 arms, 30 rounds); at the `paper` scale they have the
paper's problems (32 dimensions, 10 arms, 200 rounds) and need a GPU. Regret is given as a share of that of uniformly
random play in the same world.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from driftformer.experiments.base import ScaleName

_SIZES: dict[str, dict[str, Any]] = {
    "quick": {"layers": 2, "heads": 2, "width": 32, "steps": 600, "tokens": 3_840, "rate": 3e-3, "warmup": 40},
    "paper": {"layers": 4, "heads": 4, "width": 128, "steps": 1500, "tokens": 102_400, "rate": 1e-3, "warmup": 150},
}
_SCALES: tuple[ScaleName, ...] = ("quick", "paper")
_WORLD = {"quick": "tiny", "paper": "full"}
"""Prefixes of the names of worlds, by scale (see pretraining/worlds.py)."""


@dataclass(frozen=True)
class Training:
    """One policy to train: the recipe `cosine` or `tiny` with some settings changed, on labels alone."""

    name: str
    label: str
    settings: dict[str, Any] = field(hash=False)
    value: float = 0.0
    """Its position on the axis."""
    trajectories: int | None = None
    """The size of a dataset that is collected once and reused in every epoch; None: new data in every step."""


@dataclass(frozen=True, kw_only=True)
class TrainingExperiment:
    """Policies that differ in one respect, measured on the same worlds."""

    name: str
    title: str
    question: str
    paper: str
    view: Literal["line", "bars", "matrix"]
    axis: str
    trainings: Mapping[str, tuple[Training, ...]]
    """By scale."""
    worlds: Mapping[str, tuple[str, ...]]
    """Where the policies are measured, by scale."""


_KINDS = {"stationary": "stationary worlds", "jumps": "jumps", "cosine": "cosines", "walk": "random walks"}
_DEGREES = {"stationary": "no jumps", "jumps-1": "1 jump", "jumps-3": "3 jumps", "jumps-9": "9 jumps"}
"""Kinds of worlds, with their titles."""


def _data(scale: ScaleName, counts: tuple[int, ...]) -> tuple[Training, ...]:
    return tuple(
        Training(
            f"n-{count}",
            f"{count:,} trajectories",
            {**_SIZES[scale], "worlds": f"{_WORLD[scale]}-cosine"},
            value=count,
            trajectories=count,
        )
        for count in counts
    )


def _architectures(scale: ScaleName) -> tuple[Training, ...]:
    size = _SIZES[scale]
    deep, wide = size["layers"], size["heads"]
    relu_half = f"ReLU, {deep // 2} layer" + "s" * (deep > 2)
    variants: dict[str, dict[str, Any]] = {
        "GPT-2": {},
        "1 layer": {"layers": 1},
        f"{2 * deep} layers": {"layers": 2 * deep},
        "1 head": {"heads": 1},
        f"{4 * wide} heads": {"heads": 4 * wide},
        "paper's form": {"form": "paper", "short": 0.3},
        "ReLU attention": {"backbone": "relu", "rate": size["rate"] / 3},
        relu_half: {"backbone": "relu", "rate": size["rate"] / 3, "layers": deep // 2},
    }
    return tuple(
        Training(
            label.lower().replace(" ", "-").replace(",", "").replace("'", ""),
            label,
            {**size, "worlds": f"{_WORLD[scale]}-cosine", **changes},
        )
        for label, changes in variants.items()
    )


def _trained_on(scale: ScaleName, kinds: Mapping[str, str]) -> tuple[Training, ...]:
    worlds = {f"{_WORLD[scale]}-{kind}": title for kind, title in kinds.items()}
    return tuple(
        Training(world, f"trained on {title}", {**_SIZES[scale], "worlds": world}) for world, title in worlds.items()
    )


def _worlds(*kinds: str) -> dict[str, tuple[str, ...]]:
    """Where policies are measured, by scale."""
    return {scale: tuple(f"{_WORLD[scale]}-{kind}" for kind in kinds) for scale in _SCALES}


TRAININGS: dict[str, TrainingExperiment] = {
    experiment.name: experiment
    for experiment in (
        TrainingExperiment(
            name="data-scaling",
            title="Regret against the number of pretraining trajectories",
            question="How much data does a policy need? One term of the main theorem's regret falls with N.",
            paper="Theorem 1's T_comp; no figure",
            view="line",
            axis="trajectories N",
            trainings={
                "quick": _data("quick", (128, 512, 2_048, 8_192, 32_768)),
                "paper": _data("paper", (256, 1_024, 4_096, 16_384, 65_536, 262_144)),
            },
            worlds=_worlds("cosine"),
        ),
        TrainingExperiment(
            name="architecture",
            title="Depth, heads, and softmax against ReLU attention",
            question="Which parts of a transformer matter? Theory uses depth and ReLU attention, practice softmax.",
            paper="the paper's third contribution; no figure",
            view="bars",
            axis="architecture",
            trainings={scale: _architectures(scale) for scale in _SCALES},
            worlds=_worlds("cosine"),
        ),
        TrainingExperiment(
            name="training-drift",
            title="What drift to train on",
            question="How much does the kind of change in the pretraining data matter? The paper leaves this open.",
            paper="the open question of appx-limit-and-dis",
            view="matrix",
            axis="trained on",
            trainings={scale: _trained_on(scale, _KINDS | {"mixed": "all of them"}) for scale in _SCALES},
            worlds=_worlds(*_KINDS),
        ),
        TrainingExperiment(
            name="training-degree",
            title="How much change to train on",
            question="How much does the amount of change matter? Policies trained on ever more jumps.",
            paper="the open question of appx-limit-and-dis",
            view="matrix",
            axis="trained on",
            trainings={scale: _trained_on(scale, _DEGREES) for scale in _SCALES},
            worlds=_worlds(*_DEGREES),
        ),
    )
}
