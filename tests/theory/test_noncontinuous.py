"""MASTER by the weights of one network against the MASTER agent, round by round, with the same coins."""

from __future__ import annotations

import io

import pytest
import torch

from driftformer.theory import coins
from driftformer.theory.feasible import foretold, measured
from driftformer.theory.linucb import SoftLinUCB
from driftformer.theory.network import apply, run
from driftformer.theory.noncontinuous import CEILING, NonContinuous
from driftformer.theory.play import Matrix, answer, play_by_network, play_with_agent, problems
from driftformer.theory.soft import draw_by_softmax


@pytest.mark.parametrize(
    ("rounds", "c2", "test_scale"), [(3, 0.0, 1.0), (7, 0.0, 0.003), (31, 0.0, 0.003), (20, 0.5, 0.01)]
)
def test_the_network_does_what_master_does(rounds: int, c2: float, test_scale: float) -> None:
    network = NonContinuous(SoftLinUCB(d=2, arms=3), rounds, c2=c2, test_scale=test_scale, burn_in=16)
    given = problems(network, range(10))
    by_network, flips = play_by_network(network, given)
    by_agent = play_with_agent(network, given, flips)
    assert bool(by_network.same_choices(by_agent).all())
    assert by_network.largest_difference(by_agent) < 1e-5
    assert by_network.restarts > 0 or test_scale == 1.0
    assert int(by_network.n.max()) == (rounds + 1).bit_length() - 2 or test_scale < 1, "blocks double"


def fails(network: NonContinuous, order: int, excess: float, live: bool = True, ends: bool = True) -> bool:
    """Whether TEST fails where the average since an order's start is 9ρ̂ and `excess` more than U = 1.

    The last reward of 2 is not yet in the window's sum, and Test 2 is far from failing.
    """
    at, least, length = network.memory.at, 1.0, 2**order
    average = least + 9 * network.rho_hat(length) + excess
    token = torch.zeros(1, 1, at.width, dtype=torch.double)
    for name, value in {"one": 1, "plays": 1, "reward": 2, "hope": 3, "allowed": 1e3}.items():
        token[..., at[name]] = value
    token[..., at["next_bound"]] = CEILING - least
    token[..., at["next_n"].start + 3] = 1.0
    for name, value in {"next_live": float(live), "carry": float(ends), "next_window": average * length - 2}.items():
        token[..., at[name].start + order] = value
    out = apply(network.parts["TEST"], token)[0, 0, at["next_failed"]]
    assert float(out) in (0.0, 1.0) or min(abs(float(out)), abs(float(out) - 1)) < 1e-9
    return bool(out > 0.5)


@pytest.mark.parametrize("order", range(4))
def test_test_1_fails_where_a_live_instance_ends_that_earned_too_much(order: int) -> None:
    network = NonContinuous(SoftLinUCB(d=1, arms=2), 15, test_scale=0.01, burn_in=0)
    assert fails(network, order, 1e-3)
    assert not fails(network, order, -1e-3)
    assert not fails(network, order, 1e-3, live=False)
    assert not fails(network, order, 1e-3, ends=False)


def test_both_tests_fail_in_the_problems_that_are_played() -> None:
    network = NonContinuous(SoftLinUCB(d=2, arms=3), 15, test_scale=0.003, burn_in=16)
    given = problems(network, range(10))
    coins = torch.rand(10, 15, 4, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    seen = play_with_agent(network, given, coins).tests
    assert seen is not None
    assert set(seen.unique().tolist()) >= {0, 1, 2}


def test_an_ordinary_pass_over_the_whole_matrix_leaves_earlier_columns_as_they_are() -> None:
    """So the last column alone, which is what is computed, is the same transformer."""
    network = NonContinuous(SoftLinUCB(d=2, arms=3), 12, test_scale=0.003, burn_in=4)
    memory, given = network.memory, problems(network, range(3))
    matrix = Matrix(network, memory.tokens(given.noise, given.features, {}))
    for _ in range(memory.sizes.burn_in):
        matrix.advance()
    kept = sum(memory.given.values())
    for t in range(12):
        column = matrix.advance()
        done = matrix.columns[:, : memory.sizes.burn_in + t + 1]
        asked = done.clone()
        asked[:, -1, kept:] = 0.0  # as the environment gave it
        assert float((run(network.transformer, asked) - done).abs().max()) < 1e-9
        values = column[:, memory.at["value"]] / network.base.temperature
        arm = draw_by_softmax(torch.log_softmax(values, dim=1), given.uniforms[:, t])
        answer(matrix.columns[:, memory.sizes.burn_in + t + 1], network, arm, given, t)


def test_burn_in_makes_coins_fair() -> None:
    """Without it, the law of the active order is far from MALG's in the first round of a block."""
    for n in (1, 3, 5):
        base, rounds = SoftLinUCB(d=1, arms=2), 2 ** (n + 1) - 1
        found = coins.distance(NonContinuous(base, rounds), n)
        assert (found.mean, found.first) < (0.02, 0.05)
        assert found.largest < 0.05
        bare = coins.distance(NonContinuous(base, rounds, burn_in=0), n)
        assert bare.mean > 0.1
        assert bare.first > 0.25


def test_the_law_of_the_coins_is_that_of_coins_made_from_noise() -> None:
    """Chances are counted over ranks; here noise goes through all heads. 20,000 draws vary by 0.005."""
    network = NonContinuous(SoftLinUCB(d=1, arms=2), 7, burn_in=5)
    apart = coins.sampled_law(network, 2, draws=20_000) - coins.network_law(network, 2)
    assert float(apart.abs().sum(dim=1).max()) / 2 < 0.02


@pytest.mark.parametrize(("rounds", "d", "arms"), [(7, 2, 3), (31, 3, 4)])
def test_the_size_is_foretold_without_building_the_network(rounds: int, d: int, arms: int) -> None:
    assert foretold(rounds, d, arms) == measured(NonContinuous(SoftLinUCB(d=d, arms=arms), rounds))


def test_weights_that_layers_share_count_once_as_in_a_file() -> None:
    """A file also has names and shapes, less than a hundredth of it."""
    network, file = NonContinuous(SoftLinUCB(d=2, arms=3), 7), io.BytesIO()
    torch.save(network.transformer.state_dict(), file)
    assert 8 * measured(network).weights == pytest.approx(file.tell(), rel=0.01)
