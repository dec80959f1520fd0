"""Rollouts: bits that do not depend on company, and memory that does not depend on the horizon."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from benchmarks.memory import peak_memory
from hypothesis import given, settings
from hypothesis import strategies as st

import driftformer as df
from driftformer.agents.registry import AGENTS
from driftformer.environments.presets import PRESETS
from driftformer.errors import InputError
from driftformer.simulation.regret import RegretRecorder

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
    environment = df.make_env(env, arm_mode=mode, dim=dim, arms=arms, horizon=25)
    player = df.make_agent(agent)
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
            played = df.rollout(df.make_env(env, arm_mode=mode, horizon=60), df.make_agent("optimal"))
            assert not played.regrets[0].regret.any()


def test_the_recorder_equals_plain_sums() -> None:
    gaps = np.random.default_rng(0).uniform(0, 3, (150, 128)).astype(np.float32)  # [T, B], T no multiple of a block
    recorder = RegretRecorder([64, 10], 150)
    for gap in gaps:
        recorder.add(torch.from_numpy(gap))
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


def test_a_privileged_agent_is_refused_where_it_does_not_apply() -> None:
    with pytest.raises(InputError, match="agent 'oracle' cannot play 'walk': w\\* moves there"):
        df.rollout(df.make_env("walk", horizon=3), df.make_agent("oracle"))


def test_memory_does_not_grow_with_the_horizon() -> None:
    """4,096 problems: keeping one float32 a round and problem would cost 26 MiB more in the longer run."""
    short, long = (peak_memory(4096, horizon, dim=2, arms=2) for horizon in (100, 1800))
    assert long - short < 8


def test_memory_grows_with_the_number_of_problems() -> None:
    """And so the measurement can tell: 16,384 more states of 64 numbers in float32 are 4 MiB, their features 8."""
    assert peak_memory(16_384, 50, dim=8, arms=16) - peak_memory(64, 50, dim=8, arms=16) > 8
