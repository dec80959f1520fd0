"""Rollouts: bits that do not depend on company, and memory that does not depend on the horizon."""

from __future__ import annotations

import dataclasses
import types
import typing

import numpy as np
import pytest
import torch
from benchmarks.memory import peak_memory
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import driftformer as df
from driftformer.agents.registry import AGENTS
from driftformer.environments import drift
from driftformer.environments.registry import PRESETS
from driftformer.errors import InputError
from driftformer.problem import why_not
from driftformer.simulation.rollout import RegretRecorder
from tests.small import small

GIVEN = settings(max_examples=40, deadline=None)


@GIVEN
@given(
    env=st.sampled_from(sorted(PRESETS)),
    agent=st.sampled_from([name for name, entry in AGENTS.items() if not entry.privileged]),
    mode=st.sampled_from(["fixed", "resampled"]),
    dim=st.integers(2, 40),
    arms=st.integers(1, 12),
    chunks=st.lists(st.integers(0, 99), min_size=2, max_size=5, unique=True),
)
def test_a_chunk_gives_the_same_bits_alone_as_in_any_stack(
    env: str, agent: str, mode: str, dim: int, arms: int, chunks: list[int]
) -> None:
    """Odd sizes matter: matrix products choose their code path by alignment."""
    arms = max(arms, 2) if env == "items" else arms  # one row on offer is no choice, and refused
    environment = small(env, arm_mode=mode, dim=dim, arms=arms, horizon=52, data="iris")
    player = df.make_agent(agent)
    assume(why_not(player, environment.traits) is None)
    together = df.rollout(environment, player, chunks=chunks, trajectories=True)
    alone = df.rollout(environment, player, chunks=chunks[-1:], trajectories=True)
    assert together.trajectories is not None
    assert alone.trajectories is not None
    assert torch.equal(together.trajectories.rewards[-64:], alone.trajectories.rewards)
    ours, theirs = ({**vars(played.regrets[-1])} for played in (together, alone))
    ours |= ours.pop("diagnostics")
    theirs |= theirs.pop("diagnostics")
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[name], value) for name, value in theirs.items())


@pytest.mark.parametrize("agent", [name for name, entry in AGENTS.items() if entry.privileged])
def test_privileged_agents_too_give_the_same_bits_in_any_stack(agent: str) -> None:
    environment, player = df.make_env("jumps", dim=7, arms=5, horizon=40), df.make_agent(agent)
    together, alone = (df.rollout(environment, player, chunks=chunks) for chunks in ([4, 9, 2], [2]))
    assert np.array_equal(together.regrets[2].regret, alone.regrets[0].regret)


def test_the_optimal_agent_has_no_regret_whatsoever() -> None:
    for env in PRESETS:
        for mode in ("fixed", "resampled"):
            played = df.rollout(small(env, arm_mode=mode, horizon=60, data="iris"), df.make_agent("optimal"))
            assert not played.regrets[0].regret.any()


def test_the_recorder_equals_plain_sums() -> None:
    gaps = np.random.default_rng(0).uniform(0, 3, (150, 128)).astype(np.float32)  # [T, B], T no multiple of a block
    recorder = RegretRecorder([64, 10], 150)
    for gap in gaps:
        recorder.add(torch.from_numpy(gap), torch.zeros(128))
    for chunk, (first, count) in zip(recorder.finish(), [(0, 64), (64, 10)], strict=True):
        own = gaps[:, first : first + count].astype(np.float64)
        total = own.cumsum(axis=0)
        assert np.allclose(chunk.regret, total[-1], rtol=1e-13)
        assert np.allclose(chunk.suboptimality_mean, own.mean(axis=1))
        assert np.allclose(chunk.regret_mean, total.mean(axis=1))
        assert np.allclose(chunk.regret_squares, total.var(axis=1) * count)
        assert np.allclose(chunk.suboptimality_squares, own.var(axis=1) * count)


def test_progress_adds_up_to_all_rounds() -> None:
    seen: list[int] = []
    df.rollout(df.make_env("high", horizon=77), df.make_agent("random"), chunks=[0, 1], on_rounds=seen.append)
    assert sum(seen) == 2 * 64 * 77
    assert len(seen) == 3


def test_a_rollout_computes_with_one_thread() -> None:
    """More threads would give other last bits."""
    seen: list[int] = []

    def watch(t: int, w: torch.Tensor) -> torch.Tensor:
        seen.append(torch.get_num_threads())
        return w

    torch.set_num_threads(2)
    df.rollout(df.make_env("stationary", horizon=3, drift=watch), "linucb")
    assert set(seen) == {1}
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chunks": [0, 1], "counts": [100, 3]}, "give a number from 1 to 64 for each of 2 chunks"),
        ({"chunks": [0, 1], "counts": [64]}, "give a number from 1 to 64 for each of 2 chunks"),
        ({"counts": [0]}, "give a number from 1 to 64 for each of 1 chunks"),
        ({"chunks": []}, "chunks is []; give the indices of one or more"),
        ({"chunks": [-1]}, "chunks is [-1]; give the indices"),
        ({"seed": -1}, "seed is -1; give a whole number of at least 0"),
        ({"device": "cuda:99"}, "device is 'cuda:99'"),
        ({"device": None}, "device is None; give cpu or cuda"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        df.rollout(df.make_env("high", horizon=3), "random", **options)
    assert message in str(caught.value)


@dataclasses.dataclass(frozen=True)
class Broken:
    """An agent of someone's, with something wrong."""

    fault: str = "shape"
    name: typing.ClassVar[str] = "broken"
    learns: typing.ClassVar[bool] = True

    def init(self, shape: object) -> None: ...

    def act(self, state: None, observation: df.Observation, rng: object) -> tuple[torch.Tensor, typing.Any]:
        batch = len(observation.action_set)
        arm = torch.zeros(batch, dtype=torch.long)
        arms = {"shape": arm[:3], "range": arm + 99, "type": arm.float(), "nan": arm}
        value = torch.full((batch,), float("nan" if self.fault == "nan" else "1"))
        return arms[self.fault], types.SimpleNamespace(auxiliary_value=value)

    def update(self, *rest: object) -> None: ...


@pytest.mark.parametrize("fault", ["shape", "range", "type", "nan"])
def test_an_agent_that_misbehaves_is_named(fault: str) -> None:
    with pytest.raises(InputError, match=r"agent 'broken' (chose .*; act must give|has come to NaN)"):
        df.rollout(df.make_env("high", horizon=3), Broken(fault))


def test_rewards_that_overflow_are_refused() -> None:
    class Huge(drift.Stationary):
        def at(self, t: int, effect: drift.Effect, memory: None, rng: object) -> tuple[drift.Effect, None]:
            return dataclasses.replace(effect, w=effect.w * 0, scale=effect.scale * 3e38), None

    with pytest.raises(InputError, match="rewards are NaN or infinite by round 3; give a smaller noise"):
        df.rollout(df.make_env("stationary", horizon=3, drift=Huge()), "random")


def test_a_privileged_agent_is_refused_where_it_does_not_apply() -> None:
    with pytest.raises(InputError, match="agent 'oracle' cannot play 'walk': it knows only worlds"):
        df.rollout(df.make_env("walk", horizon=3), df.make_agent("oracle"))


def test_memory_does_not_grow_with_the_horizon() -> None:
    """4,096 problems, 1,700 rounds more: four curves of 64 chunks are 3.5 MiB, and allocators take some.

    Keeping even one float32 for each round and problem would take 26.6 MiB.
    """
    short, long = (peak_memory(4096, horizon, dim=2, arms=2) for horizon in (100, 1800))
    assert long - short < 20


def test_memory_grows_with_the_number_of_problems() -> None:
    """And so the measurement can tell: 16,384 more states of 64 numbers in float32 are 4 MiB, their features 8."""
    assert peak_memory(16_384, 50, dim=8, arms=16) - peak_memory(64, 50, dim=8, arms=16) > 8
