"""PSRL: its draws have the posterior's distribution, and it plays the best policy of each."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from driftformer.agents.beta_thompson import sample_beta
from driftformer.agents.psrl import sample_dirichlet
from driftformer.randomness import Randomness
from tests.agents.test_tabular import lives
from tests.agents.tiny_mdp import TinyMDP

Tables = NDArray[np.float64]


def plain_value(rewards: Tables, transitions: Tables, stages: int, step: tuple[int, int, int]) -> float:
    """Q_h(s, a) by its definition, of rewards [K, S, A] and transitions [K, S, A, S]."""
    (stage, state, arm), (tables, states, arms) = step, rewards.shape
    table = stage if tables > 1 else 0
    if stage == stages - 1:
        return float(rewards[table, state, arm])
    after = [
        max(plain_value(rewards, transitions, stages, (stage + 1, following, a)) for a in range(arms))
        for following in range(states)
    ]
    return float(rewards[table, state, arm] + transitions[table, state, arm] @ after)


@pytest.mark.parametrize("differ", [True, False])
def test_it_plays_the_best_policy_of_the_mdp_that_the_posterior_gave(differ: bool) -> None:
    """Its draws are made again from the same stream and plain counts; the MDP drawn is solved by loops."""
    problems, stages, states, arms, prior = 5, 3, 4, 2, 0.8
    environment = TinyMDP(episodes=25, stages=stages, states=states, arms=arms, stages_differ=differ, changes=(12,))
    rounds = lives(environment, f"psrl@prior={prior}", problems)
    rng, tables = Randomness(3, size=problems, dtype=torch.float64).stream("agent"), stages if differ else 1
    moves = np.zeros((problems, tables, states, arms, states))
    earned, missed = np.zeros((2, problems, tables, states, arms))
    for t, (state, chosen, played, reward, hope) in enumerate(rounds):
        stage = t % stages
        if stage == 0:
            transitions = sample_dirichlet(torch.from_numpy(moves + prior / states), rng).numpy()
            drawn = sample_beta(*(torch.from_numpy(1 + each).flatten(1) for each in (earned, missed)), rng)
            rewards = drawn.numpy().reshape(earned.shape)
        for b in range(problems):
            s = int(state[b])
            values = [plain_value(rewards[b], transitions[b], stages, (stage, s, a)) for a in range(arms)]
            assert values[int(chosen[b])] == pytest.approx(max(values), abs=1e-9)
            assert float(hope[b]) == pytest.approx(max(values), abs=1e-9)
            k, a = stage if differ else 0, int(played[b])
            earned[b, k, s, a] += float(reward[b])
            missed[b, k, s, a] += 1 - float(reward[b])
            if stage < stages - 1:
                moves[b, k, s, a, int(rounds[t + 1][0][b])] += 1


@pytest.mark.parametrize("weights", [[1.0, 1.0, 1.0], [0.01, 0.01, 0.01], [0.1, 3.1, 40.1], [0.5, 0.0025, 7.0]])
def test_dirichlet_draws_have_the_dirichlets_moments(weights: list[float]) -> None:
    """200,000 draws; means and variances within five of their own standard errors."""
    given, size = torch.tensor(weights), 200_000
    drawn = sample_dirichlet(given.expand(640, size // 640, -1), Randomness(4, range(10)).stream("x")).double()
    drawn = drawn.flatten(0, 1)
    assert torch.allclose(drawn.sum(1), torch.ones(1, dtype=torch.double), atol=1e-5)
    total = sum(weights)
    for k, weight in enumerate(weights):
        mean = weight / total
        variance = mean * (1 - mean) / (total + 1)
        square = (drawn[:, k] - mean).square()
        assert abs(drawn[:, k].mean().item() - mean) < 5 * math.sqrt(variance / size)
        assert abs(square.mean().item() - variance) < 5 * square.std().item() / math.sqrt(size)
