"""Double-Restart Q-UCB (Mao et al., 2021): RestartQ-UCB that learns how often to begin anew, and is told nothing.

The episodes are divided into phases of W; each begins with no memory and is divided into ⌊W^(j/J)⌋ epochs, for a
j = 0, …, J with J = ⌈ln W⌉. Which j is an adversarial bandit's choice, by EXP3.P (Auer, Cesa-Bianchi, Freund and
Schapire, 2002; its constants as in Bubeck and Cesa-Bianchi, 2012, Theorem 3.3): over n phases, with K = J + 1 choices,

    p_j = (1 − γ)·exp(η·G_j)/Σ_i exp(η·G_i) + γ/K,   G_j ← G_j + (g·1{j was chosen} + β)/p_j
    β = √(ln K/(nK)),   η = .95·√(ln K/(nK)),   γ = 1.05·√(K·ln K/n), at most 1

where g is what a phase earned over what it could have earned at most, W·H. By default W = H·√(SAM), M the number of
episodes, which balances what is lost within phases against what the choice costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo
from driftformer.agents.episodes import play, stage_of, unbounded
from driftformer.agents.restart_q_ucb import Batches, learn, no_batches
from driftformer.agents.rows import restart
from driftformer.errors import require_count, require_real
from driftformer.problem import Observation
from driftformer.randomness import Stream


@dataclass(frozen=True)
class Phases:
    shape: ProblemShape
    memory: Batches
    gains: Tensor  # [B, K] G
    choice: Tensor  # [B] j of the present phase
    earned: Tensor  # [B] in the present phase
    played: Tensor  # [B] episodes of the present phase so far
    age: Tensor  # [B] episodes since the memory was empty
    restarts: Tensor  # [B]


@dataclass(frozen=True)
class Choice(ValueInfo):
    choice: Tensor  # [B] j


@dataclass(frozen=True)
class DoubleRestartQUCB:
    """RestartQ-UCB in phases of `phase` episodes (0: as the formula says), each with a number of epochs of its own."""

    phase: int = 0
    scale: float = 0.05
    name: ClassVar[str] = "double-restart-q-ucb"
    learns: ClassVar[bool] = True
    episodic: ClassVar[bool] = True
    why_not = staticmethod(unbounded)

    def __post_init__(self) -> None:
        require_count("phase", self.phase, 0)
        require_real("scale", self.scale, 0.0)

    def phase_of(self, shape: ProblemShape) -> int:
        """W."""
        rule = math.ceil(shape.stages * math.sqrt(shape.states * shape.arms * shape.episodes))
        return min(self.phase or rule, shape.episodes)

    def epochs(self, shape: ProblemShape) -> list[int]:
        """The lengths of an epoch that can be chosen, in episodes: K of them."""
        phase = self.phase_of(shape)
        last = max(math.ceil(math.log(phase)), 1)
        return [math.ceil(phase / math.floor(phase ** (j / last) + 1e-9)) for j in range(last + 1)]

    def init(self, shape: ProblemShape) -> Phases:
        count = torch.zeros(shape.batch, dtype=torch.long, device=shape.device)
        gains = torch.zeros(shape.batch, len(self.epochs(shape)), dtype=torch.double, device=shape.device)
        earned = gains[:, 0].clone()
        return Phases(shape, no_batches(shape), gains, count, earned, count.clone(), count.clone(), count.clone())

    def probabilities_of(self, gains: Tensor, shape: ProblemShape) -> Tensor:
        """p `[B, K]`."""
        choices, phases = gains.shape[1], math.ceil(shape.episodes / self.phase_of(shape))
        gamma = min(1.05 * math.sqrt(choices * math.log(choices) / phases), 1.0)
        eta = 0.95 * math.sqrt(math.log(choices) / (phases * choices))
        return (gains * eta).softmax(dim=1) * (1 - gamma) + gamma / choices

    def act(self, state: Phases, observation: Observation, rng: Stream) -> tuple[Tensor, Choice]:
        stage, choice = stage_of(observation), state.choice
        arm, info = play(state.memory.q, observation, stage)
        if stage == 0:
            likely = self.probabilities_of(state.gains, state.shape)
            drawn = (likely.cumsum(dim=1) <= rng.uniform().unsqueeze(1)).sum(dim=1).clamp_max(likely.shape[1] - 1)
            choice = torch.where(state.played == 0, drawn, choice)
        return arm, Choice(info.values, info.auxiliary_value, choice)

    def update(self, state: Phases, observation: Observation, arm: Tensor, reward: Tensor, info: Choice) -> Phases:
        memory = learn(state.memory, observation, arm, reward, info.auxiliary_value, self.scale)
        state = replace(state, memory=memory, choice=info.choice, earned=state.earned + reward)
        return self._end_episode(state) if stage_of(observation) == state.shape.stages - 1 else state

    def _end_episode(self, state: Phases) -> Phases:
        shape, phase, choices = state.shape, self.phase_of(state.shape), state.gains.shape[1]
        lengths = torch.tensor(self.epochs(shape), device=state.age.device)
        played, age = state.played + 1, state.age + 1
        over = played == phase  # [B]
        begins = over | (age == lengths[state.choice])
        beta = math.sqrt(math.log(choices) / (math.ceil(shape.episodes / phase) * choices))
        chosen = torch.nn.functional.one_hot(state.choice, choices)  # [B, K]
        found = chosen * (state.earned / (phase * shape.stages)).unsqueeze(1)
        gains = state.gains + (found + beta) / self.probabilities_of(state.gains, shape)
        return replace(
            state,
            memory=restart(state.memory, begins, no_batches(replace(shape, batch=1))),
            gains=torch.where(over.unsqueeze(1), gains, state.gains),
            earned=state.earned.masked_fill(over, 0.0),
            played=played.masked_fill(over, 0),
            age=age.masked_fill(begins, 0),
            restarts=state.restarts + begins,
        )

    def diagnostics(self, state: Phases) -> dict[str, Tensor]:
        """Restarts that an episode has followed."""
        return {"restarts": state.restarts - ((state.age == 0) & (state.restarts > 0)).long()}

    def events(self, state: Phases) -> dict[str, Tensor]:
        """Into how many epochs its present phase is divided, as a number of the list."""
        return {"choice": state.choice}
