"""The theorem's quantities, and the assumption as a test."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from driftformer.environments.registry import make_env
from driftformer.errors import InputError
from driftformer.theory import bounds, coverings, experiments, scheduler
from driftformer.theory.assumptions import count_assumption, safe_alpha
from driftformer.theory.network import Layer, Sizes, apply
from driftformer.theory.rank_tests import full_sequence_independence, rank_tests


@given(
    a=st.floats(1, 1e3),
    b=st.floats(1, 1e3),
    samples=st.floats(1, 1e6),
    c1=st.floats(1, 1e6),
    c2=st.floats(1e-6, 1e3),
)
def test_the_lemma_on_several_instances_holds_on_its_domain(
    a: float, b: float, samples: float, c1: float, c2: float
) -> None:
    assert bounds.lemma_holds(a, b, samples, c1, c2)


def test_the_lemma_says_where_it_has_no_meaning() -> None:
    with pytest.raises(InputError, match="both to be at least 1"):
        bounds.lemma_holds(0.5, 1.0, 10, 1.0, 1.0)


def test_with_the_corollarys_data_and_error_the_algorithms_own_regret_dominates() -> None:
    """T_comp is of order √T then, times the root of log N_Θ, which the corollary takes as log T."""
    for rounds in (10**2, 10**4, 10**6):
        data, error = bounds.corollary(rounds)
        terms = bounds.regret_terms(rounds, 4, 1.0, int(data), error, 10, log_cover=math.log(rounds))
        assert terms.comp < 10 * math.sqrt(rounds)
        assert terms.aprx < 1e-2
        assert terms.algo == pytest.approx(min(math.sqrt(4 * rounds), rounds ** (2 / 3) + math.sqrt(rounds)))


def test_imitation_and_ratio_follow_epsilon() -> None:
    assert bounds.imitation_error(1e-6, 10, 100) == pytest.approx(1e-6 * 1000, rel=1e-5)
    assert bounds.distribution_ratio_bound(100**-3.0, 100) == pytest.approx(1.0, abs=1e-3)
    linucb, thompson, master = bounds.rates(10_000, 4, 2.0).values()
    assert linucb > thompson > master == 200.0  # √(4·10⁴)


def test_the_covering_number_grows_with_size_and_shrinks_with_the_radius() -> None:
    small, large = Sizes(10, 2, 2, 8, 3.0), Sizes(10, 4, 2, 8, 3.0)
    assert bounds.parameters(small) == 2 * (3 * 2 * 100 + 2 * 10 * 8) == 1520
    assert bounds.log_covering_number(small, 1e-3) < bounds.log_covering_number(large, 1e-3)
    assert bounds.log_covering_number(small, 1e-3) < bounds.log_covering_number(small, 1e-6)


def test_the_assumption_requires_all_rounds_of_a_stationary_world_and_few_of_a_cosine() -> None:
    world = make_env("stationary", horizon=50, dim=3, arms=4, noise=0.1)
    stationary = count_assumption("linucb@alpha=3", world)
    assert stationary.required == 1.0
    assert stationary.optimistic > 0.9, "a wide confidence bound is above the best reward"
    assert 0.5 < stationary.scale < 10.0
    assert count_assumption("linucb@alpha=3", world, c=0.99 * stationary.scale).regret < 1.0
    assert count_assumption("linucb@alpha=3", world, c=1.01 * stationary.scale).regret >= 1 - 1 / 50
    moving = count_assumption("linucb@alpha=3", make_env("high", b=0.05, horizon=50, dim=3, arms=4, noise=0.1))
    assert moving.required < 0.2
    with pytest.raises(InputError, match="no auxiliary value"):
        count_assumption("random", make_env("stationary", horizon=5))


def test_without_optimism_the_first_inequality_fails() -> None:
    """With α = 0 the auxiliary value is the estimate itself, which is below the best reward about half of the time."""
    world = make_env("stationary", horizon=50, dim=3, arms=4, noise=1.0)
    greedy, careful = (
        count_assumption(f"linucb@alpha={alpha:g}", world, c=10.0) for alpha in (0.0, safe_alpha(3, 50, 1.0, 1.0))
    )
    assert greedy.optimistic < 0.5 < 0.98 <= careful.optimistic
    assert greedy.both <= greedy.optimistic
    assert not greedy.holds(50)
    assert careful.holds(50)


def test_safe_alpha_is_the_radius_of_abbasi_yadkori() -> None:
    assert safe_alpha(32, 200, 1.5, 0.0) == pytest.approx(1.5 * math.sqrt(32 * math.log(7.25) + 2 * math.log(200)))


def test_a_bound_by_hand() -> None:
    """T=100, N=10⁴, ε=10⁻⁴, A=5: R = e^0.01, and T_comp = T²√R(√((log N_Θ + ln 2000)/N) + 0.01)."""
    terms = bounds.regret_terms(100, 4, 0.5, 10**4, 1e-4, 5, log_cover=7.0)
    assert terms.comp == pytest.approx(1e4 * math.exp(0.005) * (math.sqrt((7 + math.log(2000)) / 1e4) + 0.01))
    assert terms.aprx == pytest.approx(0.05)
    assert terms.algo == pytest.approx(20.0)
    few = bounds.regret_terms(100, 100, 0.5, 10**4, 1e-4, 5, log_cover=7.0)
    assert few.algo == pytest.approx(5000 ** (1 / 3) + 10)
    assert bounds.regret_terms(100, 4, 0.5, 10**4, 1e-4, 5, 7.0, log_ratio=2.0).comp == pytest.approx(
        terms.comp * math.exp(1 - 0.005)
    )
    assert bounds.corollary(100) == pytest.approx((1e6 * math.log(100), 1e-6))
    assert bounds.inverse_root(4) == 0.5
    assert list(bounds.rates(10_000, 4, 16.0).values()) == pytest.approx([1e4, 2 * 1e3, 200.0])


def test_the_covering_number_by_hand() -> None:
    """B = R = 1, L = 2: the constant is 2·(2·2)·(1·3) = 24, and each of 72 numbers needs 1 + 48/radius points."""
    size = Sizes(2, 2, 2, 3, 1.0)
    assert math.exp(bounds.log_lipschitz(size, 1.0)) == pytest.approx(24)
    assert math.exp(bounds.log_lipschitz(Sizes(2, 3, 2, 3, 1.0), 1.0)) == pytest.approx(3 * 16 * 3)
    assert bounds.log_covering_number(size, 0.5) == pytest.approx(72 * math.log(97))


def test_tokens_longer_than_the_clip_are_cut_to_it_and_others_are_left_alone() -> None:
    tokens = torch.tensor([[[0.3, 0.4], [3.0, 4.0]]], dtype=torch.double)
    assert torch.allclose(apply([Layer()], tokens, clip=1.0), torch.tensor([[[0.3, 0.4], [0.6, 0.8]]]).double())


@pytest.mark.parametrize("seed", range(3))
def test_weights_move_a_clipped_transformer_less_than_the_constant_says(seed: int) -> None:
    for norm in (0.3, 1.0, 3.0):
        assert coverings.excess(coverings.random_weights(seed), norm, coverings.RADIUS) < 0
    assert coverings.excess(coverings.identities(), 2.0, None) > 10, "and one that does not clip, more"


def test_at_the_experiments_the_bound_says_nothing() -> None:
    high, low = experiments.at_experiments()
    assert high.assumed.comp == pytest.approx(247, abs=1)
    assert (high.rounds, low.rounds, high.stretches, low.stretches) == (200, 1000, 200, 5)
    assert low.assumed.comp > low.trivial == 2000
    assert min(high.trained, low.trained) > 1e6
    assert high.data_needed > 100 * high.data
    assert min(experiments.measured_log_ratios().values()) > 20


def test_causal_ranks_are_uniform_and_independent_and_whole_ones_are_not() -> None:
    noise = torch.randn(20_000, 8, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    uniform, independent = rank_tests(scheduler.exact_ranks(noise))
    assert min(uniform, independent) > 0.01
    assert full_sequence_independence(scheduler.full_sequence_ranks(noise)) < 1e-6
    shared = scheduler.exact_ranks(noise.round())  # ties, as fixed arms would give
    assert rank_tests(shared)[0] < 1e-6
