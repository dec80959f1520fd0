"""Rows on offer as items: what they pay, when what is wanted changes, and what cannot be played."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from driftformer.environments.registry import make_env
from driftformer.errors import InputError
from driftformer.randomness import Randomness
from driftformer.simulation.rollout import rollout

RNG = np.random.default_rng(2)
X = RNG.normal(size=(40, 3))
Y = np.arange(40) % 4


def play(environment: Any, randomness: Randomness) -> list[Any]:
    worlds = [environment.reset(randomness)]
    for _ in range(1, environment.horizon):
        worlds.append(environment.advance(worlds[-1], randomness))
    return worlds


def row_of(environment: Any, features: torch.Tensor) -> int:
    """Which row of the table an item is, by its features."""
    found = np.abs(environment.data.contexts - features[:-1].numpy()).sum(axis=1)
    assert found.min() < 1e-5
    return int(found.argmin())


def test_an_item_pays_one_if_its_row_is_of_the_wanted_class_and_each_change_wants_another() -> None:
    environment = make_env("items", data=(X, Y), horizon=30, change="permute", times=(11, 21))
    worlds = play(environment, Randomness(0, size=4))
    for problem in range(4):
        wanted = worlds[0].demand.wanted[problem].tolist()
        assert wanted[0] != wanted[1] != wanted[2]
        for world in worlds:
            epoch = (world.t >= 11) + (world.t >= 21)
            rows = [row_of(environment, x) for x in world.observation.action_set[problem]]
            assert world.values[problem].tolist() == [float(Y[row] == wanted[epoch]) for row in rows]
            assert bool(world.changed[problem]) == (world.t in (11, 21))
            assert world.observation.action_set[problem, :, -1].tolist() == [1.0] * 5


def test_a_linear_law_pays_worth_of_about_unit_spread_and_noise_on_top() -> None:
    environment = make_env("items", data=(X, Y), horizon=40, pays="linear", noise=0.5)
    randomness = Randomness(1, range(20))
    worlds = play(environment, randomness)
    values = torch.stack([world.values for world in worlds])
    assert 0.8 < float(values.std()) < 1.2  # 1,280 laws: a standard error of some 0.03
    world = worlds[0]
    weights = world.demand.weights[:, 0]
    torch.testing.assert_close(world.values, torch.einsum("bad,bd->ba", world.observation.action_set, weights))
    arm = torch.zeros(len(weights), dtype=torch.long)
    reward, suboptimality, _ = environment.step(world, arm, randomness)
    assert 0.45 < float((reward - world.values[:, 0]).std()) < 0.55
    torch.testing.assert_close(suboptimality, world.values.amax(1) - world.values[:, 0])


def test_every_row_is_as_often_on_offer_as_any_other() -> None:
    environment = make_env("items", data=(X, Y), horizon=20)
    sets = [world.observation.action_set for world in play(environment, Randomness(3, range(10)))]
    features = torch.cat([one.flatten(0, 1)[:, 0] for one in sets])  # 64,000 items, told apart by their first feature
    counts = torch.tensor([(features - float(x)).abs().lt(1e-6).sum() for x in environment.data.contexts[:, 0]])
    assert int(counts.sum()) == len(features)
    assert float((counts / len(features) - 1 / 40).abs().max()) < 5 * (1 / 40 / len(features)) ** 0.5


def test_linucb_learns_what_is_wanted() -> None:
    separable = np.eye(4)[Y] + 0.1 * X[:, :1]
    environment = make_env("items", data=(separable, Y), horizon=100)
    random, learned = (rollout(environment, name).regrets[0].regret.mean() for name in ("random", "linucb"))
    assert learned < random / 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arms": 1}, "arms is 1"),
        ({"noise": -1.0, "pays": "linear"}, "noise is -1"),
        ({"pays": "clicks"}, "pays: there is no 'clicks'"),
        ({"change": "jump"}, "change: there is no 'jump'"),
        ({"times": (5,)}, r"times is \(5,\), but change is none"),
        ({"change": "permute", "changes": 99, "horizon": 50}, "changes is 99; at most 49"),
        ({"data": (X, np.ones((40, 2)))}, "with a reward for each arm; items need classes"),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make_env("items", **{"data": (X, Y)} | options)
    assert "\n" not in str(caught.value)
