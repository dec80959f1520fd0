"""MASTER (Algorithms 1 and 2; Wei and Luo, 2021): multi-scale instances of any base agent, tests, restarts.

Time is cut into blocks of 1, 2, 4, … rounds. Within a block of 2^n rounds MALG schedules instances of the base agent
at orders 0..n, and in each round the live instance of the lowest order acts and learns. Two tests compare what was
hoped for with what came; if one fails, everything begins again with a block of one round.

All instances of all problems live in one bank, a base state with B·M rows; a round touches only the rows that are
active or newly started. Every problem keeps its own time: its block, its round in it, its instances. Where problems
have episodes, a round is an episode (see `master_episodes`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from driftformer.agents.base import Agent, ProblemShape, check_base
from driftformer.agents.episodes import stage_of
from driftformer.agents.linucb import LinUCB
from driftformer.agents.master_episodes import Episode, in_between, take_step
from driftformer.agents.rows import join_rows, put_rows, restart, split_rows, take_rows
from driftformer.agents.schedule import Schedule, check_rho, malg, schedule
from driftformer.errors import require_real
from driftformer.problem import Observation, pick
from driftformer.randomness import Stream


@dataclass(frozen=True)
class MasterState:
    """One row per problem."""

    shape: ProblemShape
    bank: Any  # the base agent's states, [B, M, …]: one for each order
    n: Tensor  # [B] the order of the block
    tau: Tensor  # [B] the coming round of the block, from 0
    live: Tensor  # [B, M] bool: orders with an instance in the round before
    lowest: Tensor  # [B] U_t: the least auxiliary value of the block so far
    hoped: Tensor  # [B] sum of r̃ − r over the block
    earned: Tensor  # [B] sum of rewards over the block
    earned_before: Tensor  # [B, M] that sum when the order's instance started
    happened: Happened
    episode: Episode | None = None  # the one in play


@dataclass(frozen=True)
class Happened:
    """What an observer may want to know; nothing depends on it."""

    order: Tensor  # [B] the order that was active in the last round
    block: Tensor  # [B] bool: the last round was the first of a block
    failed: Tensor  # [B] the test that failed after it: 0 for none, 1, 2, or 3 for both
    ratios: Tensor  # [B, 2] each test's statistic over its threshold, 1 or more where it failed; -inf where not held
    restarts: Tensor  # [B] how often a test has failed so far
    closest: Tensor  # [B, 2] the largest ratios so far


@dataclass(frozen=True)
class MasterInfo:
    auxiliary_value: Tensor  # [B] the active instance's
    schedule: Schedule
    rows: Tensor  # [B] where the active instances stand in the bank
    instance: Any  # their states, [B, …]
    base: Any  # what the base agent hands on

    @property
    def values(self) -> Tensor:
        """What the active instance compares, `[B, A]`."""
        values: Tensor = self.base.values
        return values


@dataclass(frozen=True)
class Master:
    """MASTER over any base agent that has an auxiliary value.

    ρ(t) = c1/√t + c2/t; the tests use ρ̂(t) = 6(log₂T + 1)·ln T·ρ(t), times `test_scale`, with T the horizon,
    in episodes where there are any.
    """

    base: Agent = field(default_factory=LinUCB)
    c1: float = 1.0
    c2: float = 0.0
    test_scale: float = 1.0
    name: ClassVar[str] = "master"
    learns: ClassVar[bool] = True
    plans_ahead: ClassVar[bool] = True
    episodic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_real("c1", self.c1)
        require_real("c2", self.c2)
        require_real("test_scale", self.test_scale, 0.0, above=True)
        check_rho(self.rho, 2**30)
        check_base(self.base)

    def rho(self, t: int) -> float:
        """ρ, the rate at which the base agent's average regret falls."""
        return self.c1 / math.sqrt(t) + self.c2 / t

    def rho_hat(self, t: int, horizon: int) -> float:
        """ρ̂ of Algorithm 2; its T is the horizon (a block's length would make it zero in the first block)."""
        rounds = max(horizon, 2)  # ln 1 would make it zero
        return self.test_scale * 6 * (math.log2(rounds) + 1) * math.log(rounds) * self.rho(t)

    def smallest_margins(self, horizon: int) -> tuple[float, float]:
        """The least that Test 1 and Test 2 ever demand within a horizon without restarts.

        Test 1's is 9·ρ̂ of the longest instance that ends in time, Test 2's is 3·ρ̂ of the longest stretch of a block.
        Where average rewards and auxiliary values never lie further apart than that, the tests cannot fail.
        """
        done = (horizon + 1).bit_length() - 1  # blocks of 1, 2, …, 2^(done-1) rounds are complete
        begun = horizon - (2**done - 1)  # rounds of the block after them
        instance = max(2 ** (done - 1), 2 ** (begun.bit_length() - 1) if begun else 1)
        stretch = max(2 ** (done - 1), begun)
        return 9 * self.rho_hat(instance, horizon), 3 * self.rho_hat(stretch, horizon)

    def init(self, shape: ProblemShape) -> MasterState:
        orders = shape.episodes.bit_length()  # blocks of 1, 2, …, 2^(orders-1) rounds hold every horizon
        count = torch.zeros(shape.batch, dtype=torch.long, device=shape.device)
        total = count.double()
        by_order = total.unsqueeze(1).expand(-1, orders)
        never = torch.full((shape.batch, 2), -math.inf, dtype=torch.double, device=shape.device)
        return MasterState(
            shape=shape,
            bank=split_rows(self.base.init(replace(shape, batch=shape.batch * orders)), orders),
            n=count,
            tau=count.clone(),
            live=by_order.bool(),
            lowest=torch.full_like(total, math.inf),
            hoped=total,
            earned=total.clone(),
            earned_before=by_order.clone(),
            happened=Happened(count.clone(), count.bool(), count.clone(), never, count.clone(), never.clone()),
        )

    def act(self, state: MasterState, observation: Observation, rng: Stream) -> tuple[Tensor, MasterInfo]:
        playing = state.episode
        now, rows, instance = (
            self._activate(state, rng) if playing is None else (playing.schedule, playing.rows, playing.instance)
        )
        arm, info = self.base.act(instance, observation, rng)
        return arm, MasterInfo(info.auxiliary_value, now, rows, instance, info)

    def _activate(self, state: MasterState, rng: Stream) -> tuple[Schedule, Tensor, Any]:
        """The schedule of the coming round, where its active instances stand in the bank, and their states."""
        batch, orders = state.live.shape
        tables = self._tables(orders, state.shape.episodes, state.n.device)
        coins = rng.uniform(orders)
        now = schedule(state.tau, state.live, coins, tables.lengths, tables.lengths, tables.probabilities[state.n])
        rows = torch.arange(batch, device=now.active.device) * orders + now.active
        instance = take_rows(join_rows(state.bank), rows)
        return now, rows, restart(instance, pick(now.started, now.active), self._fresh(state.shape))

    def update(
        self, state: MasterState, observation: Observation, arm: Tensor, reward: Tensor, info: MasterInfo
    ) -> MasterState:
        instance = self.base.update(info.instance, observation, arm, reward, info.base)
        stages = state.shape.stages
        if not stages:
            return self._close(state, info, instance, info.auxiliary_value.double(), reward.double())
        episode, stage = take_step(state.episode, info, instance, reward), stage_of(observation)
        begins = (state.tau == 0) & (stage == 0)
        if stage < stages - 1:
            return replace(state, episode=episode, happened=in_between(state.happened, info, begins))
        state = self._close(state, info, instance, episode.hope / stages, episode.earned / stages)
        return replace(state, episode=None, happened=replace(state.happened, block=begins))

    def _close(self, state: MasterState, info: MasterInfo, instance: Any, hope: Tensor, paid: Tensor) -> MasterState:
        """The end of a round whose active instances have become `instance`: bank, tests, perhaps a new block."""
        now, bank = info.schedule, join_rows(state.bank)
        restart(bank, now.started.flatten(), self._fresh(state.shape))
        put_rows(bank, info.rows, instance)

        earned_before = torch.where(now.started, state.earned.unsqueeze(1), state.earned_before)
        earned, hoped = state.earned + paid, state.hoped + hope - paid
        lowest = torch.minimum(state.lowest, hope)
        ratios = self._test(state, now, earned.unsqueeze(1) - earned_before, lowest, hoped)
        fails = ratios >= 1  # [B, 2]
        failed = fails.any(dim=1)

        over = state.tau + 1 == 2**state.n
        ends = failed | over
        return replace(
            state,
            n=torch.where(failed, 0, state.n + over),
            tau=torch.where(ends, 0, state.tau + 1),
            live=now.live & ~ends.unsqueeze(1),
            lowest=lowest.masked_fill(ends, math.inf),
            hoped=hoped.masked_fill(ends, 0.0),
            earned=earned.masked_fill(ends, 0.0),
            earned_before=earned_before,
            happened=Happened(
                order=now.active,
                block=state.tau == 0,
                failed=fails[:, 0] + 2 * fails[:, 1].long(),
                ratios=ratios,
                restarts=state.happened.restarts + failed,
                closest=torch.maximum(state.happened.closest, ratios),
            ),
        )

    def _test(self, state: MasterState, now: Schedule, earned: Tensor, lowest: Tensor, hoped: Tensor) -> Tensor:
        """Tests 1 and 2 as statistic over threshold, `[B, 2]`: at least 1 means that a test fails.

        Test 1, at the end of an order-m instance: the average reward over its interval, all rounds of it, less U_t,
        against 9·ρ̂(2^m). Test 2, in every round: the block's average of r̃ − r against 3·ρ̂ of its length so far.
        """
        tables = self._tables(now.live.shape[1], state.shape.episodes, lowest.device)
        excess = earned / tables.lengths - lowest.unsqueeze(1)  # [B, M]
        first = (excess / (9 * tables.rho_hat)).masked_fill(~now.ending, -math.inf).amax(dim=1)
        rounds = (state.tau + 1).double()
        rho_hat = tables.factor * (self.c1 * rounds.rsqrt() + self.c2 / rounds)
        return torch.stack([first, hoped / rounds / (3 * rho_hat)], dim=1)

    def _fresh(self, shape: ProblemShape) -> Any:
        """One instance that has seen nothing."""
        return self.base.init(replace(shape, batch=1))

    @lru_cache(maxsize=8)  # noqa: B019 (a description is small and lives as long as its results)
    def _tables(self, orders: int, horizon: int, device: torch.device) -> _Tables:
        lengths = malg(orders - 1, self.rho).periods
        blocks = [malg(n, self.rho).probabilities for n in range(orders)]
        probabilities = [[*block, *[0.0] * (orders - len(block))] for block in blocks]
        return _Tables(
            torch.tensor(lengths, device=device),
            torch.tensor(probabilities, dtype=torch.double, device=device),
            torch.tensor([self.rho_hat(m, horizon) for m in lengths], dtype=torch.double, device=device),
            self.rho_hat(1, horizon) / self.rho(1),
        )

    def events(self, state: MasterState) -> dict[str, Tensor]:
        """What happened in the last round, for those who record trajectories."""
        happened = state.happened
        return {
            "active_order": happened.order,
            "block_start": happened.block,
            "failed_test": happened.failed,
            "test1_ratio": happened.ratios[:, 0],
            "test2_ratio": happened.ratios[:, 1],
        }

    def diagnostics(self, state: MasterState) -> dict[str, Tensor]:
        """What happened over all rounds: restarts, and how close each test came (1 is a failure)."""
        closest = state.happened.closest
        return {
            "restarts": state.happened.restarts,
            "test1_closest_ratio": closest[:, 0],
            "test2_closest_ratio": closest[:, 1],
        }


@dataclass(frozen=True)
class _Tables:
    """ρ in all the forms that a round needs, in float64."""

    lengths: Tensor  # [M] 2^m
    probabilities: Tensor  # [N, M] ρ(2^n)/ρ(2^m), zero for m > n
    rho_hat: Tensor  # [M] ρ̂(2^m)
    factor: float  # ρ̂/ρ
