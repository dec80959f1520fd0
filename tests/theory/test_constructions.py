"""Explicit weights against what they stand for, on thousands of random inputs, in the layer with residual and 1/i."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from driftformer.theory import scheduler, testing
from driftformer.theory.bounds import inverse_root
from driftformer.theory.network import apply, sizes
from driftformer.theory.tokens import Layout, empty_tokens, random_tokens, tokens_with_random_numbers

SIZES = [0, 1, 2, 3, 4, 5, 6]


def largest(difference: Tensor) -> float:
    return float(difference.abs().max())


@pytest.mark.parametrize("n", SIZES)
def test_sigma1_zeroes_the_blocks_of_orders_without_an_instance(n: int) -> None:
    layout = Layout(n, d=3)
    tokens = random_tokens(layout, n)
    assert largest(apply([scheduler.sigma1(layout)], tokens) - scheduler.exact_sigma1(tokens, layout)) < 1e-9


@pytest.mark.parametrize("n", SIZES)
def test_sigma2_keeps_the_lowest_live_order_alone(n: int) -> None:
    layout = Layout(n, d=3)
    masked = scheduler.exact_sigma1(random_tokens(layout, n), layout)
    expected = scheduler.exact_sigma2(masked, layout)
    assert largest(apply([scheduler.sigma2(layout)], masked) - expected) < 1e-9
    live = torch.stack([expected[..., layout.block(order)].abs().amax(-1) > 0 for order in layout.orders]).sum(0)
    assert int(live.max()) <= 1, "at most one order"


def test_auxiliary_values_do_not_tell_which_orders_are_live() -> None:
    """The text's rule 1[ε₀ − c₀·Σf > 0] keeps a second order where a live one has the value 0; flags do not."""
    layout = Layout(2, d=1)
    tokens = random_tokens(layout, 0, batch=1)
    values = torch.tensor([0.0, 0.7, 0.7], dtype=torch.double)
    tokens[..., layout.places("rand")], tokens[..., layout.places("auxiliary")] = 1.0, values
    lower = values.cumsum(dim=0) - values  # Σ_{p<m} f
    assert int((0.01 - 100 * lower > 0).sum()) == 2
    flags = apply([scheduler.sigma2(layout)], tokens)[..., layout.places("rand")]
    assert bool(((flags > 0.5).sum(dim=-1) == 1).all())


@pytest.mark.parametrize("n", SIZES)
def test_ranks_are_the_sequential_ranks_outside_the_ramp(n: int) -> None:
    layout = Layout(n, d=1)
    tokens = random_tokens(layout, n)
    tokens[..., layout.places("rand")] = 0.0
    expected = torch.stack([scheduler.exact_ranks(tokens[..., place]) for place in layout.places("noise")], dim=-1)
    inside = {}
    for k in (1e2, 1e5):
        error = (apply([scheduler.ranks(layout, k)], tokens)[..., layout.places("rand")] - expected).abs()
        inside[k] = float((error > 1e-9).double().mean(dim=(0, 1)).max())
    assert inside[1e5] <= 1e-3
    assert n < 3 or inside[1e2] > inside[1e5], "the ramp shrinks with k"


@pytest.mark.parametrize("n", SIZES)
def test_a_random_number_is_held_over_its_block(n: int) -> None:
    layout = Layout(n, d=1)
    tokens, numbers = tokens_with_random_numbers(layout, n)
    out = apply([scheduler.held(layout)], tokens)
    assert largest(out[..., layout.places("rand")] - scheduler.exact_held(numbers)) < 1e-9
    rest = [place for place in range(layout.width) if place not in layout.places("rand")]
    assert torch.equal(out[..., rest], tokens[..., rest]), "nothing else changes"


def test_numbers_are_held_for_as_many_rounds_as_the_order_says() -> None:
    numbers = torch.arange(8.0).view(1, 8, 1).expand(-1, -1, 4)
    held = scheduler.exact_held(numbers)[0].T.tolist()
    assert held[0] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert held[1] == [0, 0, 2, 2, 4, 4, 6, 6]
    assert held[3] == [0] * 8


@pytest.mark.parametrize("n", SIZES)
def test_flags_come_with_the_right_probability_and_no_product(n: int) -> None:
    layout = Layout(n, d=1)
    tokens, numbers = tokens_with_random_numbers(layout, n)
    flags = apply([scheduler.masks(layout, inverse_root, k=1e5)], tokens)[..., layout.places("rand")]
    error = (flags - scheduler.exact_masks(numbers, inverse_root)).abs()
    assert float((error > 1e-9).double().mean()) < 1e-4, "except in the ramp"
    for order in layout.orders:
        share, p = float(flags[..., order].mean()), 2 ** (-(n - order) / 2)
        assert share == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / flags[..., 0].numel()) + 1e-9)


@pytest.mark.parametrize("pieces", [2, 8, 32, 128])
def test_the_texts_product_is_as_accurate_as_its_pieces(pieces: int) -> None:
    assert 0.1 / pieces**2 <= scheduler.largest_product_error(pieces) <= 1.5 / pieces**2


def test_no_affine_function_is_a_product() -> None:
    """xy has 1 where an affine function has 0: the sum of two opposite corners less that of the other two."""
    pairs = scheduler.corners(41)
    rest = pairs.prod(dim=1)
    for seed in range(200):
        a, b, c = torch.randn(3, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
        assert (
            float((a * pairs[:, 0] + b * pairs[:, 1] + c - rest).abs().max()) >= scheduler.least_affine_error() - 1e-9
        )
    assert scheduler.least_affine_error() == pytest.approx(0.25)


def test_the_whole_scheduler_is_one_network_of_five_layers() -> None:
    """Ranks, held numbers, flags, σ1 and σ2 in sequence equal their references in sequence."""
    layout = Layout(4, d=2)
    tokens = random_tokens(layout, 3, batch=64)
    tokens[..., layout.places("rand")] = 0.0
    layers = [
        scheduler.ranks(layout, 1e5),
        scheduler.held(layout),
        scheduler.masks(layout, inverse_root, 1e5),
        scheduler.sigma1(layout),
        scheduler.sigma2(layout),
    ]
    drawn = torch.stack([scheduler.exact_ranks(tokens[..., place]) for place in layout.places("noise")], dim=-1)
    expected = tokens.clone()
    expected[..., layout.places("rand")] = scheduler.exact_masks(scheduler.exact_held(drawn), inverse_root)
    expected = scheduler.exact_sigma2(scheduler.exact_sigma1(expected, layout), layout)
    share = float(((apply(layers, tokens) - expected).abs().amax(-1) > 1e-9).double().mean())
    assert share < 1e-3
    assert sizes(layers).heads == 4 * (layout.n + 1)


@pytest.mark.parametrize("n", SIZES)
def test_a_restart_forgets_what_the_test_matrix_lists_and_nothing_else(n: int) -> None:
    layout = Layout(n, d=2)
    tokens = random_tokens(layout, n)
    gates = (torch.rand(tokens.shape[:2], generator=torch.Generator().manual_seed(n)) > 0.5).double()
    tokens[..., layout.place("noise", 0)] = gates  # an entry that is not reset carries the gate here
    layer = testing.restart(layout, layout.unit("noise", 0), largest=100.0)
    assert largest(apply([layer], tokens) - testing.exact_restart(tokens, gates, layout)) < 1e-9
    assert len(testing.reset_places(layout)) == 4 * (n + 1) + 3
    assert layer.hidden == 4 * len(testing.reset_places(layout)), "four hidden units per entry"


@pytest.mark.parametrize("n", SIZES)
def test_the_tests_fire_where_algorithm_2_says(n: int) -> None:
    at, ceiling = testing.coordinates(n), 50.0
    generator = torch.Generator().manual_seed(n)

    def normal(size: int) -> Tensor:
        return torch.randn(4000, size, generator=generator, dtype=torch.double)

    def rho_hat(t: int) -> float:
        return 0.05 * inverse_root(t)

    vectors = torch.zeros(4000, at.width, dtype=torch.double)
    vectors[:, at["average"]] = normal(n + 1)
    vectors[:, at["ends"]] = (normal(n + 1) > 0.5).double()
    vectors[:, at["bound"]] = ceiling - normal(1) - 2
    vectors[:500, at["bound"]] = 0.0  # no bound yet
    vectors[:, at["auxiliary"]] = normal(1) + 1
    vectors[:, at["excess"]] = normal(1) - 1
    vectors[:, at["allowed"]] = normal(1).abs()
    vectors[:, at["one"]] = 1.0
    out = apply(testing.tests(n, rho_hat, ceiling, k=1e5), vectors.unsqueeze(1)).squeeze(1)
    bound, fails = testing.exact_tests(vectors, n, rho_hat, ceiling)
    assert 0.05 < float(fails.double().mean()) < 0.95, "both outcomes occur"
    assert largest(ceiling - out[:, at["bound"]].squeeze(1) - bound) < 1e-9
    assert scheduler.ramp_share(testing.margins(vectors, n, rho_hat, ceiling)[1], 1e5) < 1e-4
    error = (out[:, at["fails"]].squeeze(1) - fails.double()).abs()
    assert float((error > 1e-9).double().mean()) < 1e-3, "except in the ramp"


def test_the_reference_of_the_tests_compares_as_algorithm_2_does() -> None:
    """U is the smaller of old bound and new value; only an order that ends can fail Test 1; Test 2 needs none."""
    at, ceiling = testing.coordinates(1), 50.0
    cases = [  # averages, which orders end, bound, value, excess, allowed; U, whether it fails
        ((3.0, 3.0), (0, 0), 1.0, 2.0, 0.0, 1.0, 1.0, False),
        ((3.0, 0.0), (1, 0), 1.0, 2.0, 0.0, 1.0, 1.0, True),
        ((3.0, 0.0), (0, 1), 1.0, 2.0, 0.0, 1.0, 1.0, False),
        ((1.88, 1.65), (1, 1), 1.0, 2.0, 0.0, 1.0, 1.0, True),  # 1.88 < 1 + 9ρ̂(1) = 1.9, but 1.65 > 1 + 9ρ̂(2)
        ((1.88, 1.65), (1, 0), 1.0, 2.0, 0.0, 1.0, 1.0, False),
        ((0.0, 0.0), (0, 0), 1.0, 0.5, 1.1, 1.0, 0.5, True),
    ]
    vectors = torch.zeros(len(cases), at.width, dtype=torch.double)
    for row, (averages, ends, bound, value, excess, allowed, _, _) in zip(vectors, cases, strict=True):
        row[at["average"]], row[at["ends"]] = torch.tensor(averages).double(), torch.tensor(ends).double()
        row[at["bound"]], row[at["auxiliary"]] = ceiling - bound, value
        row[at["excess"]], row[at["allowed"]] = excess, allowed
    bounds, fails = testing.exact_tests(vectors, 1, lambda t: 0.1 * inverse_root(t), ceiling)
    assert bounds.tolist() == [case[-2] for case in cases]
    assert fails.tolist() == [case[-1] for case in cases]


@pytest.mark.parametrize("n", [0, 1, 3, 6])
def test_sums_over_all_rounds_and_over_windows(n: int) -> None:
    layout = Layout(n, d=1)
    tokens = empty_tokens(layout, 16)
    generator = torch.Generator().manual_seed(n)
    rewards, values = torch.randn(2, 16, layout.rounds, generator=generator, dtype=torch.double)
    tokens[..., layout.place("reward")], tokens[..., layout.place("active_auxiliary")] = rewards, values
    out = apply([testing.sums(layout)], tokens)
    assert largest(out[..., layout.place("reward_sum")] - testing.exact_sums(rewards)) < 1e-9
    assert largest(out[..., layout.place("auxiliary_sum")] - testing.exact_sums(values)) < 1e-9
    for order in layout.orders:
        assert largest(out[..., layout.place("window_sum", order)] - testing.exact_sums(rewards, 2**order)) < 1e-9


def test_a_part_of_a_token_can_be_put_back_on_the_datas_subspace() -> None:
    d, parts, width = 3, 5, 20
    compress = scheduler.compression_matrix(d, parts, width)
    data = torch.zeros(100, width, dtype=torch.double)
    data[:, :d] = torch.randn(100, d, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    assert torch.equal(data @ compress.T @ compress, data)
    assert int(torch.linalg.matrix_rank(compress.T @ compress)) == d <= width // parts, "it cannot be I_D"


@pytest.mark.parametrize("n", SIZES)
def test_compressed_masked_selected_and_decompressed_is_the_data_where_an_order_is_live(n: int) -> None:
    layout = Layout(n, d=3)
    tokens = random_tokens(layout, n)
    for order in layout.orders[1:]:
        tokens[..., layout.x(order)] = 0.0
    live = tokens[..., layout.places("rand")].amax(dim=-1, keepdim=True)
    out = apply(scheduler.regular(layout), tokens)
    assert largest(out[..., layout.x(0)] - tokens[..., layout.x(0)] * live) < 1e-9
    assert float(live.mean()) > 0, "some order is live somewhere"


def test_the_indicator_is_exact_outside_its_ramp() -> None:
    x = torch.linspace(-1, 1, 2001, dtype=torch.double)
    for k in (10.0, 1000.0):
        outside = (x <= 0) | (k * x >= 1)
        assert torch.allclose(scheduler.indicator(x, k)[outside], scheduler.exact_indicator(x)[outside], atol=1e-12)
    assert scheduler.ramp_share(x, 10.0) > scheduler.ramp_share(x, 1000.0)
