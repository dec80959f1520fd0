"""GLR-klUCB (Besson, Kaufmann, Maillard and Seznec, 2022): kl-UCB with a test for change on every arm.

An arm's rewards x_1, …, x_n since its last restart tell of a change if some split of them into two means explains them
better than one mean does (the Bernoulli generalised likelihood ratio):

    max over s of  s·kl(mean(x_1..x_s), mean) + (n−s)·kl(mean(x_{s+1}..x_n), mean)  ≥  ln(3·n^{3/2}/δ),   δ = δ₀/√T

Then that arm (`restarts=local`), or every arm (`global`), begins again. So that changes of arms that look bad are seen
too, a share α_k = α₀·√(k·A·ln T/T) of the rounds, after k − 1 restarts, is forced to play the arms in turn. The index
counts time from an arm's own restart: N_k·kl(mean_k, q) ≤ c·ln(t − τ_k). The authors' own code has c = 1;
SMPyBandits, whose results their first tables show, has c = 3.

Cost: as in the authors' own experiments, a test is made at every tenth play of an arm and looks at every tenth split.
A round then costs up to T/100 splits, and the state holds A·T/10 sums for each problem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape, ValueInfo
from driftformer.agents.ucb import Counts, begin, count, kl_bound, log_rounds, no_features
from driftformer.errors import InputError, require_choice, require_count, require_real
from driftformer.problem import Observation, pick, place_of, take
from driftformer.randomness import Stream

Restarts = Literal["local", "global"]

LARGEST = 8 * 2**30
"""Bytes for the sums of all problems."""


@dataclass
class GLRState:
    counts: Counts  # since each arm's restart; `rounds` of all rounds so far
    age: Tensor  # [B, A] t − τ_k, rounds since an arm's restart
    sums: Tensor  # [B, A, S] what an arm had paid after 1, 2, … times `every` plays
    restarts: Tensor  # [B]
    restarted: Tensor  # [B] bool: the last round ended with a restart
    first: Tensor  # [B] bool: the last round was the first after one
    horizon: int


@dataclass(frozen=True)
class GLRKLUCB:
    """kl-UCB that begins again on arms whose rewards have changed."""

    restarts: Restarts = "local"
    exploration: float = 0.1
    delta: float = 1.0
    c: float = 1.0
    every: int = 10
    name: ClassVar[str] = "glr-kl-ucb"
    learns: ClassVar[bool] = True
    plans_ahead: ClassVar[bool] = True
    why_not = staticmethod(no_features)

    def __post_init__(self) -> None:
        require_choice("restarts", self.restarts, get_args(Restarts))
        require_real("exploration", self.exploration, 0.0)
        require_real("delta", self.delta, 0.0, above=True)
        require_real("c", self.c, 0.0, above=True)
        require_count("every", self.every)

    def init(self, shape: ProblemShape) -> GLRState:
        counts, slots = begin(shape), shape.horizon // self.every + 1
        if counts.paid.numel() * slots * counts.paid.element_size() > LARGEST:
            raise InputError(
                f"every is {self.every}; with horizon {shape.horizon} and {shape.arms} arms, {self.name} needs over "
                f"{LARGEST >> 30} GiB for {shape.batch} problems; test less often"
            )
        sums = counts.paid.unsqueeze(2).repeat(1, 1, slots)
        none = torch.zeros(shape.batch, dtype=torch.long, device=shape.device)
        return GLRState(counts, counts.plays.clone(), sums, none, none.bool(), none.bool(), shape.horizon)

    def act(self, state: GLRState, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        index = kl_bound(state.counts, log_rounds(state.age).mul_(self.c))  # [B, A]
        forced, turn = self._forced(state, observation)
        arm = torch.where(forced, turn, observation.best(index))
        return arm, ValueInfo(index, pick(index, arm).clamp_max_(1))

    def _forced(self, state: GLRState, observation: Observation) -> tuple[Tensor, Tensor]:
        """Whether the round is forced, and the arm whose turn it is, `[B]` each."""
        arms, horizon = state.age.shape[1], max(state.horizon, 2)
        share = (state.restarts + 1).double().mul_(arms * math.log(horizon) / horizon).sqrt_() * self.exploration
        period = (arms / share.clamp(1e-9, 1.0)).floor_()  # [B]
        phase = state.counts.rounds.remainder(period).long()
        turn = phase.clamp_max(arms - 1)
        forced = phase < arms if self.exploration else torch.zeros_like(state.restarted)
        return forced if observation.offered is None else forced & pick(observation.offered, turn), turn

    def update(
        self, state: GLRState, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo
    ) -> GLRState:
        counts = count(state.counts, arm, reward.clamp(0.0, 1.0))
        state.age.add_(1)
        place = place_of(arm, counts.plays.shape[1])  # [B]
        plays = take(counts.plays, place).long()
        due = (plays.remainder(self.every) == 0).nonzero().squeeze(1)  # [F]
        restarted = torch.zeros_like(state.restarted)
        if due.numel():
            place, slot = place[due], plays[due] // self.every - 1
            sums = state.sums.flatten(0, 1)  # [B·A, S]
            sums[place, slot] = counts.paid.view(-1)[place]
            changed = self._changed(sums, place, slot, state.horizon)
            restarted[due] = changed
            for values in (counts.plays, counts.paid, state.age):  # of all arms of these problems, or of these arms
                if self.restarts == "global":
                    values.index_fill_(0, due[changed], 0.0)
                else:
                    values.view(-1).index_fill_(0, place[changed], 0.0)
        state.restarts.add_(restarted)
        state.first, state.restarted = state.restarted, restarted
        return state

    def _changed(self, sums: Tensor, place: Tensor, slot: Tensor, horizon: int) -> Tensor:
        """Whether the rewards behind some rows of sums tell of a change, `[F]`; `slot` holds the sum of all of them."""
        last = int(slot.max())
        first = sums[place, :last].double()  # [F, S] Σ x_1..x_s
        total = sums[place, slot].double().unsqueeze(1)
        n = ((slot + 1) * self.every).double().unsqueeze(1)
        s = torch.arange(1, last + 1, device=n.device).double().mul_(self.every)  # [S]
        inside = s < n
        rest = torch.where(inside, n - s, 1.0)
        after = torch.where(inside, total - first, 0.0)
        split = _information(first.clamp_max(s), s) + _information(after, rest)  # [F, S]
        statistic = (split - _information(total, n)).masked_fill_(~inside, -math.inf)
        threshold = math.log(3 * math.sqrt(horizon) / self.delta) + 1.5 * n.squeeze(1).log()
        return (statistic >= threshold.unsqueeze(1)).any(dim=1)

    def events(self, state: GLRState) -> dict[str, Tensor]:
        return {"restarted": state.first}

    def diagnostics(self, state: GLRState) -> dict[str, Tensor]:
        return {"restarts": state.restarts - state.restarted.long()}  # one after the last round changes nothing


def _information(paid: Tensor, n: Tensor) -> Tensor:
    """The log-likelihood n·(m·ln m + (1−m)·ln(1−m)) of n rewards under their own mean m."""
    return torch.xlogy(paid, paid / n) + torch.xlogy(n - paid, 1 - paid / n)
