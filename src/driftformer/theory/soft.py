"""Agents whose arms are drawn by a softmax of their values, as a transformer's are (Equation `alg-by-tf`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import Agent, ProblemShape
from driftformer.errors import require_real
from driftformer.problem import Observation, pick
from driftformer.randomness import Stream


def draw_by_softmax(log_probabilities: Tensor, uniform: Tensor) -> Tensor:
    """Arms `[B]` from log-probabilities `[B, A]` and one Unif[0, 1) number each, by the inverse of their CDF."""
    below = log_probabilities.exp().cumsum(dim=1) <= uniform.unsqueeze(1)
    return below.sum(dim=1).clamp_max(log_probabilities.shape[1] - 1)


@dataclass(frozen=True)
class SoftInfo:
    values: Tensor  # [B, A]
    log_probabilities: Tensor  # [B, A]
    auxiliary_value: Tensor  # [B] the value of the arm that was drawn
    base: Any


@dataclass(frozen=True)
class Soft:
    """An agent that compares a value for each arm, with a softmax in place of the maximum."""

    base: Agent
    temperature: float = 0.5
    name: ClassVar[str] = "soft"
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_real("temperature", self.temperature, 0.0, above=True)

    def init(self, shape: ProblemShape) -> Any:
        return self.base.init(shape)

    def act(self, state: Any, observation: Observation, rng: Stream) -> tuple[Tensor, SoftInfo]:
        _, info = self.base.act(state, observation, rng)
        log_probabilities = torch.log_softmax(info.values / self.temperature, dim=1)
        arm = draw_by_softmax(log_probabilities, rng.uniform())
        return arm, SoftInfo(info.values, log_probabilities, pick(info.values, arm), info)

    def update(self, state: Any, observation: Observation, arm: Tensor, reward: Tensor, info: SoftInfo) -> Any:
        return self.base.update(state, observation, arm, reward, info.base)
