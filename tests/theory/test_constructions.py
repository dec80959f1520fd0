"""Explicit weights against what they stand for, on thousands of random inputs, in the layer with residual and 1/i."""

from __future__ import annotations

import math

import pytest
import torch

from driftformer.theory.constructions import (
    bernoulli,
    compression,
    hold,
    indicator,
    ranks,
    restart,
    sigma1,
    sigma2,
    stationarity,
)
from driftformer.theory.inputs import column, random_tokens
from driftformer.theory.network import Layer, build, run, sizes
from driftformer.theory.tokens import Layout

SIZES = [0, 1, 2, 3, 4, 5, 6]


def rho(t: int) -> float:
    return 1 / math.sqrt(t)


def batch_for(layout: Layout) -> int:
    """Some thousand tokens."""
    return max(8, 4096 // layout.rounds)


@pytest.mark.parametrize("n", SIZES)
def test_sigma1_zeroes_the_blocks_of_orders_without_an_instance(n: int) -> None:
    layout = Layout(n, d=3)
    tokens = random_tokens(layout, batch_for(layout), n)
    out = run(build([sigma1.build(layout)], layout.width), tokens)
    assert float((out - sigma1.reference(tokens, layout)).abs().max()) < 1e-9


@pytest.mark.parametrize("n", SIZES)
def test_sigma2_keeps_the_lowest_live_order_alone(n: int) -> None:
    layout = Layout(n, d=3)
    masked = sigma1.reference(random_tokens(layout, batch_for(layout), n), layout)
    out = run(build([sigma2.build(layout)], layout.width), masked)
    expected = sigma2.reference(masked, layout)
    assert float((out - expected).abs().max()) < 1e-9
    live = torch.stack([expected[..., layout.block(order)].abs().amax(-1) > 0 for order in layout.orders]).sum(0)
    assert int(live.max()) <= 1, "one order at most"


def test_auxiliary_values_do_not_tell_which_orders_live() -> None:
    """The text's rule 1[ε₀ − c₀·Σf > 0] keeps a second order where a live one has the value 0; flags do not."""
    layout = Layout(2, d=1)
    tokens = random_tokens(layout, 1, 0)
    for order in layout.orders:
        tokens[..., layout.place("rand", order)] = 1.0
        tokens[..., layout.place("auxiliary", order)] = 0.0 if order == 0 else 0.7
    values = column(tokens, layout, "auxiliary")
    lower = values.cumsum(dim=-1) - values  # Σ_{p<m} f
    by_values = (0.01 - 100 * lower > 0).sum(dim=-1)
    out = run(build([sigma2.build(layout)], layout.width), tokens)
    by_flags = (column(out, layout, "rand") > 0.5).sum(dim=-1)
    assert torch.equal(by_values, torch.full_like(by_values, 2))
    assert torch.equal(by_flags, torch.ones_like(by_flags))


@pytest.mark.parametrize("n", SIZES)
def test_ranks_are_the_sequential_ranks_outside_the_ramp(n: int) -> None:
    layout = Layout(n, d=1)
    tokens = random_tokens(layout, batch_for(layout), n)
    for order in layout.orders:
        tokens[..., layout.place("rand", order)] = 0.0
    inside = {}
    for k in (1e2, 1e5):
        out = run(build([ranks.build(layout, k)], layout.width), tokens)
        wrong = 0.0
        for order in layout.orders:
            noise = tokens[..., layout.place("noise", order)]
            error = (out[..., layout.place("rand", order)] - ranks.reference(noise)).abs()
            wrong = max(wrong, float((error > 1e-9).double().mean()))
        inside[k] = wrong
    assert inside[1e5] <= 1e-3
    assert n < 3 or inside[1e2] > inside[1e5], "the ramp shrinks with k"


@pytest.mark.parametrize("n", SIZES)
def test_a_random_number_is_held_over_its_block(n: int) -> None:
    layout = Layout(n, d=1)
    tokens = random_tokens(layout, batch_for(layout), n)
    numbers = torch.rand(*tokens.shape[:2], n + 1, generator=torch.Generator().manual_seed(n), dtype=torch.double)
    for order in layout.orders:
        tokens[..., layout.place("rand", order)] = numbers[..., order]
    out = run(build([hold.build(layout)], layout.width), tokens)
    for order in layout.orders:
        held = out[..., layout.place("rand", order)]
        assert float((held - hold.reference(numbers[..., order], order)).abs().max()) < 1e-9
    changed = [layout.place("rand", order) for order in layout.orders]
    rest = [place for place in range(layout.width) if place not in changed]
    assert torch.equal(out[..., rest], tokens[..., rest]), "nothing else moves"


@pytest.mark.parametrize("n", SIZES)
def test_flags_come_with_the_right_probability_and_no_product(n: int) -> None:
    layout = Layout(n, d=1)
    tokens = random_tokens(layout, batch_for(layout), n)
    numbers = torch.rand(*tokens.shape[:2], n + 1, generator=torch.Generator().manual_seed(n), dtype=torch.double)
    for order in layout.orders:
        tokens[..., layout.place("rand", order)] = numbers[..., order]
    out = run(build([bernoulli.build(layout, rho, k=1e5)], layout.width), tokens)
    flags = torch.stack([out[..., layout.place("rand", order)] for order in layout.orders], dim=-1)
    error = (flags - bernoulli.reference(numbers, n, rho)).abs()
    assert float((error > 1e-9).double().mean()) < 1e-4, "but for the ramp"
    for order in layout.orders:
        share, p = float(flags[..., order].mean()), 2 ** (-(n - order) / 2)
        assert share == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / flags[..., 0].numel()) + 1e-9)


@pytest.mark.parametrize("pieces", [2, 8, 32, 128])
def test_the_texts_product_is_as_accurate_as_its_pieces(pieces: int) -> None:
    grid = torch.linspace(0, 1, 101, dtype=torch.double)
    x, y = torch.meshgrid(grid, grid, indexing="ij")
    error = float((bernoulli.product(x, y, pieces) - x * y).abs().max())
    assert error <= 1.5 / pieces**2
    assert bernoulli.pieces_for(1.5 / pieces**2) <= pieces + 1


def test_the_whole_scheduler_is_one_network_of_five_layers() -> None:
    """Ranks, hold, flags, σ1 and σ2 one after the other equal their references one after the other."""
    layout = Layout(4, d=2)
    tokens = random_tokens(layout, 64, 3)
    for order in layout.orders:
        tokens[..., layout.place("rand", order)] = 0.0
    layers = [
        ranks.build(layout, 1e5),
        hold.build(layout),
        Layer(mlp=bernoulli.build(layout, rho, 1e5).mlp),
        sigma1.build(layout),
        sigma2.build(layout),
    ]
    out = run(build(layers, layout.width), tokens)
    expected = tokens.clone()
    drawn = [hold.reference(ranks.reference(tokens[..., layout.place("noise", m)]), m) for m in layout.orders]
    flags = bernoulli.reference(torch.stack(drawn, dim=-1), layout.n, rho)
    for order in layout.orders:
        expected[..., layout.place("rand", order)] = flags[..., order]
    expected = sigma2.reference(sigma1.reference(expected, layout), layout)
    share = float(((out - expected).abs().amax(-1) > 1e-9).double().mean())
    assert share < 1e-3
    assert sizes(layers, layout.width).heads == 4 * (layout.n + 1)


@pytest.mark.parametrize("n", SIZES)
def test_a_restart_forgets_what_the_test_matrix_lists_and_nothing_else(n: int) -> None:
    layout = Layout(n, d=2)
    tokens = random_tokens(layout, batch_for(layout), n)
    gates = (torch.rand(tokens.shape[:2], generator=torch.Generator().manual_seed(n)) > 0.5).double()
    place = layout.place("noise", 0)  # an entry that is not reset carries the gate here
    tokens[..., place] = gates
    layer = restart.build(layout, layout.unit("noise", 0), largest=100.0)
    out = run(build([layer], layout.width), tokens)
    assert float((out - restart.reference(tokens, gates, layout)).abs().max()) < 1e-9
    assert len(restart.reset_places(layout)) == 4 * (n + 1) + 3
    assert layer.mlp is not None
    assert layer.mlp.first.shape[0] == 4 * len(restart.reset_places(layout)), "four hidden units an entry"


@pytest.mark.parametrize("n", SIZES)
def test_the_tests_fire_where_algorithm_2_says(n: int) -> None:
    entries, ceiling = stationarity.Entries(n), 50.0
    generator = torch.Generator().manual_seed(n)
    vectors = torch.zeros(4000, entries.width, dtype=torch.double)

    def rho_hat(t: int) -> float:
        return 0.05 / math.sqrt(t)

    for order in range(n + 1):
        vectors[:, entries.average(order)] = torch.randn(4000, generator=generator, dtype=torch.double)
        vectors[:, entries.ends(order)] = (torch.rand(4000, generator=generator) < 0.3).double()
    vectors[:, entries.bound] = ceiling - torch.randn(4000, generator=generator, dtype=torch.double) - 2
    vectors[:500, entries.bound] = 0.0  # no bound yet
    vectors[:, entries.auxiliary] = torch.randn(4000, generator=generator, dtype=torch.double) + 1
    vectors[:, entries.hoped] = torch.randn(4000, generator=generator, dtype=torch.double) - 1
    vectors[:, entries.allowed] = torch.rand(4000, generator=generator, dtype=torch.double)
    vectors[:, entries.one] = 1.0
    network = build(stationarity.build(entries, rho_hat, ceiling, k=1e5), entries.width)
    out = run(network, vectors.unsqueeze(1)).squeeze(1)
    bound, fails = stationarity.reference(vectors, entries, rho_hat, ceiling)
    assert 0.05 < float(fails.double().mean()) < 0.95, "both outcomes occur"
    assert float((ceiling - out[:, entries.bound] - bound).abs().max()) < 1e-9
    assert indicator.ramp_share(stationarity.margins(vectors, entries, rho_hat, ceiling), 1e5) < 1e-4
    error = (out[:, entries.fails] - fails.double()).abs()
    assert float((error > 1e-9).double().mean()) < 1e-3, "but for the ramp"


def test_a_part_of_a_token_can_be_put_back_where_the_data_lives() -> None:
    d, parts, width = 3, 5, 20
    comp, decomp = compression.compress(d, parts, width), compression.decompress(d, parts, width)
    data = torch.zeros(100, width, dtype=torch.double)
    data[:, :d] = torch.randn(100, d, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    for part in range(parts):
        assert torch.equal(data @ comp[part].T @ decomp[part].T, data)
        assert int(torch.linalg.matrix_rank(decomp[part] @ comp[part])) == d <= width // parts, "it cannot be I_D"


@pytest.mark.parametrize("n", SIZES)
def test_compressed_masked_selected_and_decompressed_is_the_data_where_an_order_lives(n: int) -> None:
    layout = Layout(n, d=3)
    tokens = random_tokens(layout, batch_for(layout), n)
    for order in layout.orders[1:]:
        tokens[..., layout.x(order)] = 0.0
    data, lives = tokens[..., layout.x(0)], column(tokens, layout, "rand").amax(dim=-1)
    out = run(build(compression.build(layout), layout.width), tokens)
    assert float((compression.read(out, layout) - data * lives.unsqueeze(-1)).abs().max()) < 1e-9
    assert float(lives.mean()) > 0, "some order lives somewhere"


def test_the_indicator_is_exact_outside_its_ramp() -> None:
    x = torch.linspace(-1, 1, 2001, dtype=torch.double)
    for k in (10.0, 1000.0):
        outside = (x <= 0) | (k * x >= 1)
        assert torch.allclose(indicator.indicator(x, k)[outside], indicator.reference(x)[outside], atol=1e-12)
    assert indicator.ramp_share(x, 10.0) > indicator.ramp_share(x, 1000.0)
