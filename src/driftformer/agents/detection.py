"""Detection-augmented learning: any base agent, a few forced rounds, a change detector on them, a restart on alarm.

After Gerogiannis, Huang, Bose and Veeravalli (DAL, 2025) and Huang et al. (2025): in epoch k (one more than the alarms
so far) a share α_k = √(k·A·ln T / T) of the rounds, times `exploration`, is forced to play the arms in turn. An arm's
detector looks at the rewards x_1, …, x_n of its forced rounds (`watch=forced`), or of all rounds that played it
(`watch=all`, as in GLR-klUCB of Besson et al., 2022), and compares the best split of them into two means with none:

    GLR:  max over s of  s(n−s)/(2σ²n)·(mean(x_1..x_s) − mean(x_{s+1}..x_n))²  ≥  ln(4·n^{3/2}·T)
    GSR:  ln of the sum over s of the exponentials of the same                 ≥  ln(4·n^{3/2}·T) + ln n

The papers' own setting is `watch=forced,exploration=1`; at horizons of a few thousand rounds a fifth of them would be
forced, and still too few for the detectors to see anything, so our defaults are the practical ones.

On an alarm the base agent and all detectors begin again. Arms are told apart by their place in the action set, so
they must stay the same: where they are drawn anew in every round, this agent refuses to play.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor

from driftformer.agents.base import Agent, ProblemShape, check_base
from driftformer.agents.linucb import LinUCB
from driftformer.agents.restart import RestartState, begin, begin_again, restart_diagnostics, restart_events
from driftformer.errors import InputError, require_choice, require_real
from driftformer.problem import Observation, Traits, pick
from driftformer.randomness import Stream

Detector = Literal["glr", "gsr"]
Watch = Literal["forced", "all"]

LARGEST = 8 * 2**30
"""Bytes for the rewards of an epoch, the one memory here that grows with the horizon: the split that tells most of a
change may lie anywhere in them, so none can be forgotten without changing the test."""


@dataclass(frozen=True)
class Epoch:
    """What an alarm throws away."""

    base: Any
    counts: Tensor  # [B, A] forced rounds of each arm
    sums: Tensor  # [B, A, N+1] sums of their first 0, 1, …, n rewards


@dataclass(frozen=True)
class DetectionInfo:
    auxiliary_value: Tensor  # [B] that of the base agent's own choice
    base: Any
    forced: Tensor  # [B] bool


@dataclass(frozen=True)
class Detection:
    """A base agent that begins again when forced exploration shows a change; `noise` is the σ of the rewards."""

    base: Agent = field(default_factory=LinUCB)
    detector: Detector = "glr"
    watch: Watch = "all"
    exploration: float = 0.1
    noise: float = 1.5
    name: ClassVar[str] = "detection"
    learns: ClassVar[bool] = True
    plans_ahead: ClassVar[bool] = True
    events = staticmethod(restart_events)
    diagnostics = staticmethod(restart_diagnostics)

    def __post_init__(self) -> None:
        check_base(self.base)
        require_choice("detector", self.detector, get_args(Detector))
        require_choice("watch", self.watch, get_args(Watch))
        require_real("exploration", self.exploration, 0.0, above=True)
        require_real("noise", self.noise, 0.0, above=True)

    def why_not(self, traits: Traits) -> str | None:
        if traits.same_arms:
            return None
        return "it watches each arm's rewards by the arm's place, and there a place holds another arm in every round"

    def init(self, shape: ProblemShape) -> RestartState:
        return begin(shape, self._begin(shape))

    def _begin(self, shape: ProblemShape) -> Epoch:
        # rewards of one arm: all of them, or its turns even if every round is forced
        most = shape.horizon if self.watch == "all" else -(-shape.horizon // shape.arms)
        if shape.batch * shape.arms * (most + 1) * 8 > LARGEST:
            raise InputError(
                f"horizon is {shape.horizon} and arms is {shape.arms}; {self.name} keeps the rewards of an epoch, "
                f"which in {shape.batch} problems take over {LARGEST >> 30} GiB; give fewer rounds or watch=forced"
            )
        sums = torch.zeros(shape.batch, shape.arms, most + 1, dtype=torch.double, device=shape.device)
        return Epoch(self.base.init(shape), torch.zeros_like(sums[:, :, 0], dtype=torch.long), sums)

    def act(self, state: RestartState, observation: Observation, rng: Stream) -> tuple[Tensor, DetectionInfo]:
        arms, horizon = observation.action_set.shape[1], state.shape.horizon
        share = ((state.restarts + 1) * (arms * math.log(max(horizon, 2)) / horizon)).sqrt()  # [B] α_k
        phase = state.age % (arms / (share * self.exploration).clamp(max=1.0)).ceil().long()  # [B]
        forced = phase < arms
        if observation.offered is not None:
            forced = forced & pick(observation.offered, phase.clamp(max=arms - 1))
        arm, info = self.base.act(state.memory.base, observation, rng)
        return torch.where(forced, phase, arm), DetectionInfo(info.auxiliary_value, info, forced)

    def update(
        self, state: RestartState, observation: Observation, arm: Tensor, reward: Tensor, info: DetectionInfo
    ) -> RestartState:
        epoch = state.memory
        base = self.base.update(epoch.base, observation, arm, reward, info.base)
        counts, sums = epoch.counts, epoch.sums
        alarm = torch.zeros_like(info.forced)
        watched = info.forced if self.watch == "forced" else torch.ones_like(info.forced)
        rows = watched.nonzero().squeeze(1)
        if rows.numel():
            seen = arm[rows]
            n = counts[rows, seen] + 1  # [F]
            counts[rows, seen] = n
            sums[rows, seen, n] = sums[rows, seen, n - 1] + reward[rows].double()
            alarm[rows] = self._alarm(sums[rows, seen], n, state.shape.horizon)
        after = replace(state, memory=Epoch(base, counts, sums), age=state.age + 1)
        return begin_again(after, alarm, self._begin)

    def _alarm(self, sums: Tensor, n: Tensor, horizon: int) -> Tensor:
        """Whether the first n rewards, by their sums `[F, N+1]`, tell of a change, `[F]`."""
        longest = int(n.max())
        if longest < 2:
            return torch.zeros_like(n, dtype=torch.bool)
        total, length = pick(sums, n).unsqueeze(1), n.unsqueeze(1)  # [F, 1]
        split = torch.arange(1, longest, device=n.device).unsqueeze(0)  # [1, longest-1] s
        rest = (length - split).clamp(min=1)
        first = sums[:, 1:longest]
        gap = first / split - (total - first) / rest
        statistic = (split * rest) / (2 * self.noise**2 * length) * gap.square()  # [F, longest-1]
        statistic = statistic.masked_fill(split >= length, -math.inf)
        threshold = math.log(4 * horizon) + 1.5 * n.double().log()
        if self.detector == "glr":
            return statistic.amax(dim=1) >= threshold
        return statistic.logsumexp(dim=1) >= threshold + n.double().log()
