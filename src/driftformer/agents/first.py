"""Only the first few problems of a batch, where a whole chunk of them would take too long.

A chunk always has 64 problems. An agent that costs much more than a regression, or that plays one problem after the
other, is wrapped in this: it plays the first ones, and on all others the first arm on offer is taken and never counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from torch import Tensor

from driftformer.agents.base import Agent, Privileged, ProblemShape
from driftformer.agents.linucb import LinUCB
from driftformer.agents.reference import NoInfo
from driftformer.errors import InputError, require_count
from driftformer.problem import Observation
from driftformer.randomness import CHUNK, Stream


@dataclass(frozen=True)
class Part(NoInfo):
    info: Any = None  # of the base agent


class _Rows(Stream):
    """The first rows of what another stream draws."""

    def __init__(self, whole: Stream, rows: int) -> None:
        self._whole, self._rows = whole, rows

    def _draw(self, kind: Any, shape: tuple[int, ...]) -> Tensor:
        return self._whole._draw(kind, shape)[: self._rows]


@dataclass(frozen=True)
class First:
    """A base agent that plays the first `problems` of a chunk."""

    base: Agent = field(default_factory=LinUCB)
    problems: int = 10
    name: ClassVar[str] = "first"
    learns: ClassVar[bool] = False
    stack: ClassVar[int] = 1
    """Chunks in a batch: the problems that count are the first ones of the batch."""

    def __post_init__(self) -> None:
        require_count("problems", self.problems, most=CHUNK)
        if isinstance(self.base, Privileged):
            raise InputError(f"base is '{self.base.name}', which must be told the truth; use an ordinary agent")

    def init(self, shape: ProblemShape) -> Any:
        return self.base.init(replace(shape, batch=self.problems))

    def act(self, state: Any, observation: Observation, rng: Stream) -> tuple[Tensor, Part]:
        arm, info = self.base.act(state, self._part(observation), _Rows(rng, self.problems))
        every = observation.best(observation.action_set.new_zeros(observation.action_set.shape[:2]))
        every[: self.problems] = arm
        return every, Part(info=info)

    def update(self, state: Any, observation: Observation, arm: Tensor, reward: Tensor, info: Part) -> Any:
        own = slice(self.problems)
        return self.base.update(state, self._part(observation), arm[own], reward[own], info.info)

    def _part(self, observation: Observation) -> Observation:
        own = slice(self.problems)
        offered = None if observation.offered is None else observation.offered[own]
        return Observation(observation.action_set[own], offered)
