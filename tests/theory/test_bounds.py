"""The theorem's quantities, and the assumption as a test."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from driftformer.environments.registry import make_env
from driftformer.errors import InputError
from driftformer.theory import bounds, scheduler
from driftformer.theory.assumptions import count_assumption
from driftformer.theory.network import Sizes
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
    assert bounds.parameters(small) == 2 * (3 * 2 * 100 + 2 * 10 * 8)
    assert bounds.log_covering_number(small, 1e-3) < bounds.log_covering_number(large, 1e-3)
    assert bounds.log_covering_number(small, 1e-3) < bounds.log_covering_number(small, 1e-6)


def test_the_assumption_requires_all_rounds_of_a_stationary_world_and_few_of_a_cosine() -> None:
    stationary = count_assumption("linucb@alpha=3", make_env("stationary", horizon=50, dim=3, arms=4, noise=0.1))
    assert stationary.required == 1.0
    assert stationary.optimistic > 0.9, "a wide confidence bound is above the best reward"
    assert 1.0 < stationary.scale < 10.0, "too wide for ρ(t) = 1/√t"
    assert stationary.regret == 0.0
    moving = count_assumption("linucb@alpha=3", make_env("high", b=0.05, horizon=50, dim=3, arms=4, noise=0.1))
    assert moving.required < 0.2
    with pytest.raises(InputError, match="no auxiliary value"):
        count_assumption("random", make_env("stationary", horizon=5))


def test_causal_ranks_are_uniform_and_independent_and_whole_ones_are_not() -> None:
    noise = torch.randn(20_000, 8, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    uniform, independent = rank_tests(scheduler.exact_ranks(noise))
    assert min(uniform, independent) > 0.01
    assert full_sequence_independence(scheduler.full_sequence_ranks(noise)) < 1e-6
    shared = scheduler.exact_ranks(noise.round())  # ties, as fixed arms would give
    assert rank_tests(shared)[0] < 1e-6
