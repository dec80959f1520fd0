"""Experiments that train many small policies: how much data, which architecture, and what drift to train on.

At the `quick` scale they are toys for a CPU (4 dimensions, 4 arms, 30 rounds); at the `paper` scale they have the
paper's problems (32 dimensions, 10 arms, 200 rounds) and need a GPU. Regret is given as a share of that of uniformly
random play in the same world.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

_SIZES: dict[str, dict[str, Any]] = {
    "quick": {"layers": 2, "heads": 2, "width": 32, "steps": 600, "tokens": 3_840, "rate": 3e-3, "warmup": 40},
    "paper": {"layers": 4, "heads": 4, "width": 128, "steps": 1500, "tokens": 102_400, "rate": 1e-3, "warmup": 150},
}
_WORLDS = {"quick": "tiny", "paper": "full"}
"""Prefixes of the names of worlds, by scale (see pretraining/worlds.py)."""
_COUNTS = {"quick": (128, 512, 2_048, 8_192, 32_768), "paper": (256, 1_024, 4_096, 16_384, 65_536, 262_144)}
_STEPS = {"quick": (30, 100, 300, 900), "paper": (1_000, 3_000, 10_000, 31_250)}
"""The last is a tenth of the paper's budget: 200 epochs over 400,000 trajectories."""
_THE_PAPERS: dict[str, dict[str, Any]] = {
    "quick": {"form": "paper", "short": 0.3},
    "paper": {
        "form": "paper",
        "short": 0.3,
        "layers": 16,
        "heads": 16,
        "rate": 6e-4,
        "warmup": 300,
        "behaviours": {"random": 0.6, "linucb": 0.2, "thompson": 0.2},
    },
}
"""The paper's form, and at full scale its size and the data of the recipe `high`."""
_KINDS = {"stationary": "stationary worlds", "jumps": "jumps", "cosine": "cosines", "walk": "random walks"}
_CLOCKS = {"clocks": "the paper's four cosines", "between": "a cosine between two of them (b = 0.018)"}
_DEGREES = {"stationary": "no jumps", "jumps-1": "1 jump", "jumps-3": "3 jumps", "jumps-9": "9 jumps"}
"""Kinds of worlds, with their titles."""

RESULTS = "results.json"
REFERENCES = ("linucb", "discounted-linucb@gamma=0.9", "oracle")
"""Agents that trained policies are compared with."""


def world_in_words(name: str) -> str:
    """What readers are told instead of a world's name, `full-cosine`: cosines."""
    kind = name.removeprefix("tiny-").removeprefix("full-")
    return (_DEGREES | _KINDS | _CLOCKS).get(kind, name)


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


def _settings(scale: str, kind: str = "cosine", **changes: Any) -> dict[str, Any]:
    return {**_SIZES[scale], "worlds": f"{_WORLDS[scale]}-{kind}", **changes}


def _data(scale: str, count: int) -> Training:
    return Training(f"n-{count}", f"{count:,} trajectories", _settings(scale), value=count, trajectories=count)


def _steps(scale: str, steps: int) -> Training:
    settings = _settings(scale, "clocks", **{**_THE_PAPERS[scale], "steps": steps})
    return Training(f"steps-{steps}", f"{steps:,} steps", settings, value=steps)


def _architectures(scale: str) -> tuple[Training, ...]:
    size = _SIZES[scale]
    deep, wide = size["layers"], size["heads"]
    relu = {"backbone": "relu", "rate": size["rate"] / 3}
    variants: dict[str, dict[str, Any]] = {
        "GPT-2": {},
        "1 layer": {"layers": 1},
        f"{2 * deep} layers": {"layers": 2 * deep},
        "1 head": {"heads": 1},
        f"{4 * wide} heads": {"heads": 4 * wide},
        "paper's form": {"form": "paper", "short": 0.3},
        "ReLU attention": relu,
        f"ReLU, {deep // 2} layer{'s' * (deep > 2)}": {**relu, "layers": deep // 2},
    }
    names = {label: label.lower().replace(" ", "-").replace(",", "").replace("'", "") for label in variants}
    return tuple(Training(names[label], label, _settings(scale, **changes)) for label, changes in variants.items())


def _trained_on(kinds: Mapping[str, str]) -> dict[str, tuple[Training, ...]]:
    return {
        scale: tuple(
            Training(f"{world}-{kind}", f"trained on {title}", _settings(scale, kind)) for kind, title in kinds.items()
        )
        for scale, world in _WORLDS.items()
    }


def _measured_on(*kinds: str) -> dict[str, tuple[str, ...]]:
    return {scale: tuple(f"{world}-{kind}" for kind in kinds) for scale, world in _WORLDS.items()}


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
            trainings={scale: tuple(_data(scale, count) for count in counts) for scale, counts in _COUNTS.items()},
            worlds=_measured_on("cosine"),
        ),
        TrainingExperiment(
            name="architecture",
            title="Depth, heads, and softmax against ReLU attention",
            question="Which parts of a transformer matter? Theory uses depth and ReLU attention, practice softmax.",
            paper="its third contribution; no figure",
            view="bars",
            axis="architecture",
            trainings={scale: _architectures(scale) for scale in _SIZES},
            worlds=_measured_on("cosine"),
        ),
        TrainingExperiment(
            name="training-steps",
            title="Regret between two training frequencies against training steps",
            question="Is it the budget, or the four frequencies, that keeps a policy from following a fifth?",
            paper="Section 5's training, up to a tenth of its budget; no figure",
            view="line",
            axis="training steps",
            trainings={scale: tuple(_steps(scale, steps) for steps in counts) for scale, counts in _STEPS.items()},
            worlds=_measured_on("between", "clocks"),
        ),
        TrainingExperiment(
            name="training-drift",
            title="What drift to train on",
            question="How much does the kind of change in the pretraining data matter? The paper leaves this open.",
            paper="the open question of Appendix A",
            view="matrix",
            axis="trained on",
            trainings=_trained_on(_KINDS | {"mixed": "all of them"}),
            worlds=_measured_on(*_KINDS),
        ),
        TrainingExperiment(
            name="training-degree",
            title="How much change to train on",
            question="How much does the amount of change matter? Policies trained on ever more jumps.",
            paper="the open question of Appendix A",
            view="matrix",
            axis="trained on",
            trainings=_trained_on(_DEGREES),
            worlds=_measured_on(*_DEGREES),
        ),
    )
}
