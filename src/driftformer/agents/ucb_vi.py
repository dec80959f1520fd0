"""UCB-VI (Azar, Osband and Munos, 2017): count, plan optimistically before each episode, play the plan.

    Q_h(s, a) = min{H − h, r̂(s, a) + P̂(·|s, a)·V_{h+1} + b},   V_h(s) = max_a Q_h(s, a),   h = 0, …, H − 1

    hoeffding:   b = scale·(H − h)/√N
    bernstein:   b = scale·(√(V̂/N) + (H − h)/N),   V̂ the variance of r + V_{h+1}(s') under the model

N is how often arm a was played in state s; with N = 0, Q is H − h. `scale` stands for the paper's constants and
logarithms: 7·ln(5SAT/δ) in its Hoeffding bonus, which no one could wait for. Its default does well on
`lock`, `riverswim` and `random-mdp` alike, where `driftformer sweep --environment lock --agents ucb-vi --vary
agent.scale=0.2,0.4,0.7` and so on compare it; Bernstein bonuses want about 1.

Four things differ from the paper. It has H for our H − h, though no more than that is left. Its Bernstein bonus has a
third term for the error of V_{h+1} itself, which with its constants exceeds H for longer than anyone plays. It never
lets a Q rise again, which would be fatal in a world that changes. And it takes rewards for known; here their means are
learned too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo
from driftformer.agents.episodes import hopes, play, stage_of, unbounded
from driftformer.agents.linucb import precise
from driftformer.agents.tabular_model import Estimate, Model, begin, learn, plan
from driftformer.errors import require_choice, require_real
from driftformer.problem import Observation
from driftformer.randomness import Stream

BONUSES = ("hoeffding", "bernstein")


@dataclass
class Planned:
    model: Model
    q: Tensor  # [B, H, S, A] the plan of the present episode


def check_bonus(bonus: str, scale: float) -> None:
    require_choice("bonus", bonus, BONUSES)
    require_real("scale", scale, 0.0)


def hope_for(shape: ProblemShape) -> Planned:
    """Nothing is known yet: everything is worth as much as it could be."""
    return Planned(begin(shape), hopes(precise(shape)))


def replan(model: Model, stages: int, bonus: str, scale: float) -> Tensor:
    """The next episode's Q, `[B, H, S, A]`."""

    def hoeffding(hope: int, known: Estimate) -> Tensor:
        return known.count.rsqrt().mul_(scale * hope)

    def bernstein(hope: int, known: Estimate) -> Tensor:
        assert known.variance is not None
        return (known.variance / known.count).sqrt_().add_(hope / known.count).mul_(scale)

    return plan(model, stages, *((hoeffding, False) if bonus == "hoeffding" else (bernstein, True)))


@dataclass(frozen=True)
class UCBVI:
    """Optimistic value iteration."""

    bonus: str = "hoeffding"
    scale: float = 0.4
    name: ClassVar[str] = "ucb-vi"
    learns: ClassVar[bool] = True
    episodic: ClassVar[bool] = True
    why_not = staticmethod(unbounded)
    init = staticmethod(hope_for)

    def __post_init__(self) -> None:
        check_bonus(self.bonus, self.scale)

    def act(self, state: Planned, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        return play(state.q, observation, stage_of(observation))

    def update(self, state: Planned, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo) -> Planned:
        stage, stages = stage_of(observation), state.q.shape[1]
        learn(state.model, observation, stage, arm, reward)
        if stage == stages - 1:
            state.q = replan(state.model, stages, self.bonus, self.scale)
        return state
