"""Our environments under Gymnasium's own rules."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Dict, Discrete
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import driftformer as df
from driftformer.environments.registry import PRESETS


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.filterwarnings("ignore:.*We recommend using a symmetric and normalized space.*")
def test_gymnasiums_checker_accepts(name: str) -> None:
    sizes = {"episodes": 6} if hasattr(PRESETS[name], "episodes") else {"horizon": 20}
    environment = gymnasium.make(f"driftformer/{name.title().replace('-', '')}-v0", **sizes)
    check_env(environment.unwrapped)


def test_an_mdp_is_seen_as_discrete_states_and_steps_alone_and_in_batches() -> None:
    one = gymnasium.make("driftformer/Lock-v0", episodes=3)
    assert one.observation_space == Dict({"state": Discrete(10), "stage": Discrete(5)})
    many = gymnasium.make_vec("driftformer/Lock-v0", num_envs=4, episodes=2)
    seen, _ = many.reset(seed=0)
    assert many.observation_space.contains(seen)
    stages = [many.step(np.zeros(4, np.int64))[0]["stage"].tolist() for _ in range(6)]
    assert stages == [[stage] * 4 for stage in (1, 2, 3, 4, 0, 1)]


def test_an_episode_is_truncated_after_its_horizon() -> None:
    environment = gymnasium.make("driftformer/High-v0", b=0.025, horizon=5)
    environment.reset(seed=1)
    ends = [environment.step(0)[3] for _ in range(5)]
    assert ends == [False, False, False, False, True]


def test_options_and_papers_defaults_reach_the_environment() -> None:
    assert gymnasium.make("driftformer/Low-v0").observation_space.shape == (10, 32)
    assert gymnasium.make("driftformer/High-v0", arms=4, dim=7).observation_space.shape == (4, 7)


def test_the_info_tells_exact_means_and_suboptimality() -> None:
    environment = gymnasium.make("driftformer/Stationary-v0", noise=0.0, horizon=3)
    _, info = environment.reset(seed=0)
    means = info["values"]
    _, reward, _, _, info = environment.step(np.int64(2))
    assert reward == pytest.approx(means[2])
    assert info["suboptimality"] == pytest.approx(means.max() - means[2])


def test_the_vector_version_begins_new_problems_after_the_last_round() -> None:
    many = gymnasium.make_vec("driftformer/High-v0", num_envs=5, horizon=3, arm_mode="resampled")
    assert many.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    first, _ = many.reset(seed=4)
    assert many.observation_space.contains(first)
    actions = np.zeros(5, np.int64)
    truncations = [many.step(actions)[3].tolist() for _ in range(3)]
    assert truncations == [[False] * 5, [False] * 5, [True] * 5]
    observation, reward, _, truncated, _ = many.step(actions)
    assert not truncated.any()
    assert not reward.any()
    assert not np.array_equal(observation, first)
    again, _ = many.reset(seed=4)
    assert np.array_equal(again, first)


def test_bad_actions_are_refused() -> None:
    environment = gymnasium.make("driftformer/High-v0", horizon=3).unwrapped
    environment.reset(seed=0)
    with pytest.raises(df.InputError, match=r"action is \[10\]; give 1 of 0..9"):
        environment.step(np.int64(10))
