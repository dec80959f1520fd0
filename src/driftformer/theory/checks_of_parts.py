"""The constructions of Appendix D one by one, each against what it stands for."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from driftformer.theory import rank_tests, scheduler, testing
from driftformer.theory.bounds import inverse_root
from driftformer.theory.network import Layer, apply, shape
from driftformer.theory.noncontinuous import CEILING, SHARPNESS
from driftformer.theory.table import Found, Scale, checked
from driftformer.theory.tokens import Layout, random_tokens, tokens_with_random_numbers

EXACT = 1e-9
_D = 3


def _exactly(layer: Layer, tokens: Tensor, expected: Tensor, built: str, size: str = "", note: str = "") -> Found:
    """A layer that must turn tokens into the expected ones."""
    error = float((apply([layer], tokens) - expected).abs().max())
    return Found(built, size or f"{len(layer.heads)} heads", f"{error:.0e}", error < EXACT, f"exact{note}")


def _ramp(error: Tensor) -> tuple[float, str]:
    """The share of inputs whose output is not exact, as a number and in words."""
    share = float((error > EXACT).double().mean())
    return share, f"exact except for {share:.1e} of inputs, in the ramp 1/k, k={SHARPNESS:g}"


@checked("1[x>0] from two ReLUs (appx-approx-rand-gen)", "2", "0 as k→∞")
def check_indicator(scale: Scale) -> Found:
    x = torch.linspace(-1, 1, 200_001, dtype=torch.double)
    shares = [scheduler.ramp_share(x, k) for k in (1e1, 1e3, 1e5)]
    share, words = _ramp((scheduler.indicator(x, SHARPNESS) - scheduler.exact_indicator(x)).abs())
    holds = shares[0] > shares[1] >= shares[2] and share < 1e-4
    return Found("two hidden units", "2", words, holds, "holds outside the ramp")


@checked("random numbers from data (appx-approx-rand-gen)", "2 heads", "Unif(0,1)")
def check_random(scale: Scale) -> Found:
    layout = Layout(min(scale.n, 3), 1)
    tokens = random_tokens(layout, 0, batch=20_000)
    tokens[..., layout.places("rand")] = 0.0
    made = apply([scheduler.ranks(layout, SHARPNESS)], tokens)[..., layout.places("rand")]
    uniform, independent = rank_tests.rank_tests(made[..., 0])
    across = rank_tests.independence_of_orders(made)
    whole = scheduler.full_sequence_ranks(tokens[..., layout.place("noise", 0)])
    words = f"p {uniform:.2f} uniform, {independent:.2f} independent in time, {across:.2f} of other orders; "
    words += f"whole sequence: p {rank_tests.full_sequence_independence(whole):.0e}"
    verdict = "holds if causal; the first rounds are coarse"
    holds = min(uniform, independent, across) > 0.01
    return Found("causal ranks, noise for each order", f"{2 * (scale.n + 1)} heads", words, holds, verdict)


@checked("a random number held over its block (Step 2, postulated)", "–", "0")
def check_hold(scale: Scale) -> Found:
    layout = Layout(scale.n, 1)
    tokens, numbers = tokens_with_random_numbers(layout, 1)
    expected = tokens.clone()
    expected[..., layout.places("rand")] = scheduler.exact_held(numbers)
    return _exactly(scheduler.held(layout), tokens, expected, "three heads and one to clear")


@checked("Bernoulli masks (Step 1 of appx-approx-sig1)", "O(1/ε) hidden", "0 as k→∞")
def check_bernoulli(scale: Scale) -> Found:
    layout = Layout(scale.n, 1)
    tokens, numbers = tokens_with_random_numbers(layout, 2)
    layer = scheduler.masks(layout, inverse_root, SHARPNESS)
    flags = apply([layer], tokens)[..., layout.places("rand")]
    share, words = _ramp((flags - scheduler.exact_masks(numbers, inverse_root)).abs())
    verdict = "holds, without the product"
    return Found("a constant threshold per order", f"{layer.hidden} hidden", words, share < 1e-3, verdict)


@checked("the text's product rand·ρ (Step 1)", "O(1/ε) hidden, one MLP", "ε")
def check_product(scale: Scale) -> Found:
    errors = {pieces: scheduler.largest_product_error(pieces) for pieces in (4, 16, 64)}
    affine = scheduler.least_affine_error()
    at, pieces = scheduler.product_coordinates(), 64
    tokens = torch.rand(50_000, 1, at.width, generator=torch.Generator().manual_seed(11), dtype=torch.double)
    tokens[..., at["one"]], tokens[..., at["product"]], tokens[..., at["flag"]] = 1.0, 0.0, 0.0
    rand, rho, rho_n = (tokens[..., at[name]] for name in ("rand", "rho", "rho_n"))
    flags = apply(scheduler.product_masks(pieces, SHARPNESS), tokens)[..., at["flag"]]
    clear = (rho_n - rand * rho).abs() > 1.5 / pieces**2 + 1 / SHARPNESS
    wrong = float((flags - (rand * rho < rho_n).double()).abs()[clear].max())
    words = ", ".join(f"{3 * pieces}: {error:.0e}" for pieces, error in errors.items())
    return Found(
        built="squares by straight pieces, then an indicator",
        size="O(1/√ε) hidden, two MLPs",
        error=f"hidden units: error {words}; one affine sum {affine:.2f}",
        holds=all(error <= 1.5 / pieces**2 for pieces, error in errors.items()) and wrong < EXACT and affine >= 0.25,
        verdict="holds with two MLPs; the text's sum inside one ReLU is affine and cannot",
    )


@checked("σ1 (def-sig1, Step 2)", lambda scale: f"{2 * (scale.n + 1)} heads", "0 as k→∞")
def check_sigma1(scale: Scale) -> Found:
    layout = Layout(scale.n, _D)
    tokens = random_tokens(layout, 3)
    return _exactly(scheduler.sigma1(layout), tokens, scheduler.exact_sigma1(tokens, layout), "flags on the key's side")


@checked("σ2 (def-sig2, appx-approx-sig2)", lambda scale: f"{2 * (scale.n + 1)} heads", "0 as k→∞")
def check_sigma2(scale: Scale) -> Found:
    layout = Layout(scale.n, _D)
    tokens = scheduler.exact_sigma1(random_tokens(layout, 4), layout)
    expected = scheduler.exact_sigma2(tokens, layout)
    built = "two heads on sums of lower flags"
    return _exactly(scheduler.sigma2(layout), tokens, expected, built, note="; f must be flags")


@checked("RM (prop-approx-rm, def-test-matrix)", "D' = O(1); 7 entries", "0")
def check_restart(scale: Scale) -> Found:
    layout = Layout(scale.n, _D)
    tokens = random_tokens(layout, 5)
    gates = tokens[..., layout.place("rand", 0)].clone()
    tokens[..., layout.place("reward")] = gates
    layer = testing.restart(layout, layout.unit("reward"), 100.0)
    size = f"{layer.hidden} hidden; {len(testing.reset_places(layout))} entries"
    expected = testing.exact_restart(tokens, gates, layout)
    found = _exactly(layer, tokens, expected, "entries times a gate", size, "; D' = 4(4(n+1)+3)")
    return replace(found, holds=found.holds and len(testing.printed_diagonal(layout)) == layout.claimed)


@checked("TEST, U_t (def-test, Algorithm 2)", "–", "0 as k→∞")
def check_tests(scale: Scale) -> Found:
    at, count = testing.coordinates(scale.n), 20_000
    vectors = torch.randn(count, at.width, generator=torch.Generator().manual_seed(6), dtype=torch.double)
    vectors[:, at["ends"]] = (vectors[:, at["ends"]] > 0.5).double()
    vectors[:, at["bound"]] = CEILING - vectors[:, at["bound"]] - 2
    vectors[:2000, at["bound"]] = 0.0  # no bound yet
    vectors[:, at["excess"]] -= 1
    vectors[:, at["allowed"]] = vectors[:, at["allowed"]].abs()
    vectors[:, at["one"]] = 1.0
    for written in ("exceeds", "test2", "fails"):
        vectors[:, at[written]] = 0.0

    def rho_hat(t: int) -> float:
        return 0.05 * inverse_root(t)

    layers = testing.tests(scale.n, rho_hat, CEILING, SHARPNESS)
    out = apply(layers, vectors.unsqueeze(1)).squeeze(1)
    bound, fails = testing.exact_tests(vectors, scale.n, rho_hat, CEILING)
    error = float((CEILING - out[:, at["bound"]].squeeze(1) - bound).abs().max())
    share, words = _ramp((out[:, at["fails"]].squeeze(1) - fails.double()).abs())
    holds, verdict = error < EXACT and share < 1e-3, "holds for Algorithm 2's tests"
    return Found(f"{len(layers)} MLPs", f"{shape(layers).hidden} hidden", f"U_t {error:.0e}; {words}", holds, verdict)


@checked("running and window sums (eq-input1, eq-input2)", "–", "0")
def check_sums(scale: Scale) -> Found:
    layout = Layout(scale.n, 1)
    tokens = random_tokens(layout, 7)
    tokens[..., [*layout.places("window_sum"), layout.place("reward_sum"), layout.place("auxiliary_sum")]] = 0.0
    rewards = tokens[..., layout.place("noise", 0)]
    tokens[..., layout.place("reward")] = rewards
    expected = tokens.clone()
    expected[..., layout.place("reward_sum")] = testing.exact_sums(rewards)
    for order in layout.orders:
        expected[..., layout.place("window_sum", order)] = testing.exact_sums(rewards, 2**order)
    return _exactly(testing.sums(layout), tokens, expected, "heads that undo 1/t")


@checked("compression (appx-motiv-non-cont-tf)", lambda scale: f"W·W ≈ I_{(scale.n + 1) * (_D + 2)}", "≈ 0")
def check_compression(scale: Scale) -> Found:
    size = _D + 2  # of each part
    compress = scheduler.compression_matrix(_D, scale.n + 1, (scale.n + 1) * size)
    data = torch.zeros(100, (scale.n + 1) * size, dtype=torch.double)
    data[:, :_D] = torch.randn(100, _D, generator=torch.Generator().manual_seed(8), dtype=torch.double)
    alone = (data @ compress.T @ compress - data).abs().max()
    layout = Layout(scale.n, _D)
    tokens = random_tokens(layout, 8)
    for order in layout.orders[1:]:
        tokens[..., layout.x(order)] = 0.0
    some_live = tokens[..., layout.places("rand")].amax(dim=-1, keepdim=True)
    back = apply(scheduler.regular(layout), tokens)[..., layout.x(0)]
    error = max(float(alone), float((back - tokens[..., layout.x(0)] * some_live).abs().max()))
    rank, verdict = int(torch.linalg.matrix_rank(compress.T @ compress)), "holds on the data's subspace only"
    return Found(
        "MaskAttn heads, σ1, σ2, and an MLP back",
        f"rank {rank} ≤ {size}",
        f"{error:.0e} on the data",
        error < EXACT,
        verdict,
    )
