"""Every statement of the proof that is built, checked against the exact algorithm: a row of a table each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.agents.linucb import LinUCB
from driftformer.agents.master import Master
from driftformer.environments.registry import make_env
from driftformer.theory import bounds, linucb, randomness
from driftformer.theory.assumptions import examine
from driftformer.theory.beside_agent import agent_rounds, problem
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
    sums,
)
from driftformer.theory.inputs import clear, column, random_tokens
from driftformer.theory.network import Layer, build, run, sizes
from driftformer.theory.noncontinuous import CEILING, SHARPNESS, BlockNetwork, rollout
from driftformer.theory.tokens import Layout, empty_tokens

EXACT = 1e-9
_TOKENS = 8192
_D = 3


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    statement: str
    built: str
    size_claimed: str
    size_built: str
    error_claimed: str
    error_measured: str
    verdict: str


def rho(t: int) -> float:
    """ρ(t) = 1/√t."""
    return 1 / math.sqrt(t)


def _batch(layout: Layout) -> int:
    return max(64, _TOKENS // layout.rounds)


def _verdict(error: float) -> str:
    return "exact" if error < EXACT else "differs"


def _ramp(error: Tensor) -> tuple[float, str]:
    """The share of inputs where an output is not exact, in words too."""
    share = float((error > EXACT).double().mean())
    return share, f"exact but for {share:.1e} of inputs in the ramp 1/k, k={SHARPNESS:g}"


def check_indicator(n: int) -> Row:
    x = torch.linspace(-1, 1, 200_001, dtype=torch.double)
    shares = [indicator.ramp_share(x, k) for k in (1e1, 1e3, 1e5)]
    error = (indicator.indicator(x, SHARPNESS) - indicator.reference(x)).abs()
    share, words = _ramp(error)
    falls = shares[0] > shares[1] >= shares[2]
    return Row(
        "1[x>0] from two ReLUs (appx-approx-rand-gen)",
        "two hidden units",
        "2",
        "2",
        "0 as k→∞",
        words,
        "holds with the ramp" if falls and share < 1e-4 else "differs",
    )


def check_random(n: int) -> Row:
    layout = Layout(min(n, 4), 1)
    tokens = clear(random_tokens(layout, 20_000, 0), layout, "rand")
    noise = tokens[..., layout.place("noise", 0)]
    only = Layer(ranks.build(layout, SHARPNESS).heads[:2])
    made = run(build([only], layout.width), tokens)[..., layout.place("rand", 0)]
    uniform, independent = randomness.rank_tests(made)
    full = randomness.full_sequence_independence(ranks.full_sequence(noise))
    passed = uniform > 0.01 and independent > 0.01
    return Row(
        "random numbers from data (appx-approx-rand-gen)",
        "causal ranks, noise for each order",
        "2 heads",
        f"{2 * (n + 1)} heads",
        "Unif(0,1)",
        f"p {uniform:.2f} uniform, {independent:.2f} independent; whole sequence: p {full:.0e}",
        "holds if causal; first rounds are coarse" if passed else "differs",
    )


def check_hold(n: int) -> Row:
    layout = Layout(n, 1)
    tokens = random_tokens(layout, _batch(layout), 1)
    numbers = torch.rand(*tokens.shape[:2], n + 1, generator=torch.Generator().manual_seed(1), dtype=torch.double)
    for order in layout.orders:
        tokens[..., layout.place("rand", order)] = numbers[..., order]
    layer = hold.build(layout)
    held = column(run(build([layer], layout.width), tokens), layout, "rand")
    expected = torch.stack([hold.reference(numbers[..., order], order) for order in layout.orders], dim=-1)
    error = float((held - expected).abs().max())
    return Row(
        "a random number held over its block (Step 2, postulated)",
        "three heads and one to clear",
        "–",
        f"{len(layer.heads)} heads",
        "0",
        f"{error:.0e}",
        _verdict(error),
    )


def check_bernoulli(n: int) -> Row:
    layout = Layout(n, 1)
    tokens = random_tokens(layout, _batch(layout), 2)
    numbers = torch.rand(*tokens.shape[:2], n + 1, generator=torch.Generator().manual_seed(2), dtype=torch.double)
    for order in layout.orders:
        tokens[..., layout.place("rand", order)] = numbers[..., order]
    layer = bernoulli.build(layout, rho, SHARPNESS)
    flags = column(run(build([layer], layout.width), tokens), layout, "rand")
    share, words = _ramp((flags - bernoulli.reference(numbers, n, rho)).abs())
    assert layer.mlp is not None
    return Row(
        "Bernoulli masks (Step 1 of appx-approx-sig1)",
        "a constant threshold an order",
        "O(1/ε) hidden",
        f"{layer.mlp.first.shape[0]} hidden",
        "0 as k→∞",
        words,
        "holds, without the product" if share < 1e-3 else "differs",
    )


def check_product(n: int) -> Row:
    grid = torch.linspace(0, 1, 201, dtype=torch.double)
    x, y = torch.meshgrid(grid, grid, indexing="ij")
    errors = {pieces: float((bernoulli.product(x, y, pieces) - x * y).abs().max()) for pieces in (4, 16, 64)}
    within = all(error <= 1.5 / pieces**2 for pieces, error in errors.items())
    told = ", ".join(f"{3 * pieces}: {error:.0e}" for pieces, error in errors.items())
    return Row(
        "the text's product rand·ρ (Step 1)",
        "squares by straight pieces",
        "O(1/ε) hidden",
        "O(1/√ε) hidden",
        "ε",
        f"hidden units: error {told}",
        "holds, with fewer" if within else "differs",
    )


def check_sigma1(n: int) -> Row:
    layout = Layout(n, _D)
    tokens = random_tokens(layout, _batch(layout), 3)
    layer = sigma1.build(layout)
    error = float((run(build([layer], layout.width), tokens) - sigma1.reference(tokens, layout)).abs().max())
    return Row(
        "σ1 (def-sig1, Step 2)",
        "flags on the key's side",
        f"{2 * (n + 1)} heads",
        f"{len(layer.heads)} heads",
        "0 as k→∞",
        f"{error:.0e}",
        _verdict(error),
    )


def check_sigma2(n: int) -> Row:
    layout = Layout(n, _D)
    tokens = sigma1.reference(random_tokens(layout, _batch(layout), 4), layout)
    layer = sigma2.build(layout)
    error = float((run(build([layer], layout.width), tokens) - sigma2.reference(tokens, layout)).abs().max())
    return Row(
        "σ2 (def-sig2, appx-approx-sig2)",
        "two heads on sums of lower flags",
        f"{2 * (n + 1)} heads",
        f"{len(layer.heads)} heads",
        "0 as k→∞",
        f"{error:.0e}",
        _verdict(error) + "; f must be flags",
    )


def check_restart(n: int) -> Row:
    layout = Layout(n, _D)
    tokens = random_tokens(layout, _batch(layout), 5)
    gates = tokens[..., layout.place("rand", 0)].clone()
    tokens[..., layout.place("reward")] = gates
    layer = restart.build(layout, layout.unit("reward"), 100.0)
    error = float((run(build([layer], layout.width), tokens) - restart.reference(tokens, gates, layout)).abs().max())
    entries = len(restart.reset_places(layout))
    assert layer.mlp is not None
    return Row(
        "RM (prop-approx-rm, def-test-matrix)",
        "entries times a gate",
        "D' = O(1); 7 entries",
        f"{layer.mlp.first.shape[0]} hidden; {entries} entries",
        "0",
        f"{error:.0e}",
        _verdict(error) + "; D' = 4(4(n+1)+3)",
    )


def check_tests(n: int) -> Row:
    entries, count = stationarity.Entries(n), 20_000
    generator = torch.Generator().manual_seed(6)
    vectors = torch.randn(count, entries.width, generator=generator, dtype=torch.double)
    for order in range(n + 1):
        vectors[:, entries.ends(order)] = (vectors[:, entries.ends(order)] > 0.5).double()
        vectors[:, entries.exceeds(order)] = 0.0
    vectors[:, entries.bound] = CEILING - vectors[:, entries.bound] - 2
    vectors[:2000, entries.bound] = 0.0  # no bound yet
    vectors[:, entries.hoped] -= 1
    vectors[:, entries.allowed] = vectors[:, entries.allowed].abs()
    vectors[:, entries.one], vectors[:, entries.second], vectors[:, entries.fails] = 1.0, 0.0, 0.0

    def rho_hat(t: int) -> float:
        return 0.05 * rho(t)

    layers = stationarity.build(entries, rho_hat, CEILING, SHARPNESS)
    out = run(build(layers, entries.width), vectors.unsqueeze(1)).squeeze(1)
    bound, fails = stationarity.reference(vectors, entries, rho_hat, CEILING)
    lowest = float((CEILING - out[:, entries.bound] - bound).abs().max())
    share, words = _ramp((out[:, entries.fails] - fails.double()).abs())
    return Row(
        "TEST, U_t (def-test, Algorithm 2)",
        f"{len(layers)} MLPs",
        "–",
        f"{sizes(layers, entries.width).hidden} hidden",
        "0 as k→∞",
        f"U_t {lowest:.0e}; {words}",
        "holds for Algorithm 2's tests" if lowest < EXACT and share < 1e-3 else "differs",
    )


def check_sums(n: int) -> Row:
    layout = Layout(n, 1)
    tokens = clear(random_tokens(layout, _batch(layout), 7), layout, "window_sum")
    tokens[..., layout.place("reward_sum")] = tokens[..., layout.place("auxiliary_sum")] = 0.0
    rewards = tokens[..., layout.place("noise", 0)]
    tokens[..., layout.place("reward")] = rewards
    layer = sums.build(layout)
    out = run(build([layer], layout.width), tokens)
    expected = torch.stack([sums.reference(rewards, 2**order) for order in layout.orders], dim=-1)
    error = float((column(out, layout, "window_sum") - expected).abs().max())
    error = max(error, float((out[..., layout.place("reward_sum")] - sums.reference(rewards)).abs().max()))
    return Row(
        "running and window sums (eq-input1, eq-input2)",
        "heads that undo 1/t",
        "–",
        f"{len(layer.heads)} heads",
        "0",
        f"{error:.0e}",
        _verdict(error),
    )


def check_compression(n: int) -> Row:
    width = (n + 1) * (_D + 2)
    comp, decomp = compression.compress(_D, n + 1, width), compression.decompress(_D, n + 1, width)
    data = torch.zeros(100, width, dtype=torch.double)
    data[:, :_D] = torch.randn(100, _D, generator=torch.Generator().manual_seed(8), dtype=torch.double)
    error = max(float((data @ a.T @ b.T - data).abs().max()) for a, b in zip(comp, decomp, strict=True))
    rank = int(torch.linalg.matrix_rank(decomp[0] @ comp[0]))
    layout = Layout(n, _D)
    tokens = random_tokens(layout, _batch(layout), 8)
    for order in layout.orders[1:]:
        tokens[..., layout.x(order)] = 0.0
    lives = column(tokens, layout, "rand").amax(dim=-1, keepdim=True)
    out = run(build(compression.build(layout), layout.width), tokens)
    error = max(error, float((compression.read(out, layout) - tokens[..., layout.x(0)] * lives).abs().max()))
    return Row(
        "compression (appx-motiv-non-cont-tf)",
        "parts, σ1, σ2, and back",
        f"W·W ≈ I_{width}",
        f"rank {rank} ≤ {width // (n + 1)}",
        "≈ 0",
        f"{error:.0e} on the data",
        "holds on the data's subspace only" if error < EXACT else "differs",
    )


def check_noncontinuous(n: int) -> Row:
    rounds, problems = 2 ** (n + 1) - 1, 100
    equal = restarts = 0
    for seed in range(problems):
        master = Master(base=LinUCB(), test_scale=(1.0, 0.01, 0.001)[seed % 3])
        one = problem(rounds, seed)
        played = rollout(master, one.features, one.noise, one.pay)
        equal += played == agent_rounds(master, one, [each.coins for each in played])
        restarts += sum(each.failed for each in played)
    network = BlockNetwork(Layout(n, _D), Master(), rounds)
    built = network.sizes
    return Row(
        "non-continuous transformer (def-nctf, thm-approx)",
        f"{problems} runs of {rounds} rounds",
        f"D={network.layout.claimed}, M=max(M₀,2), L=L₀",
        f"D={built.width}, M={built.heads}, L={built.layers}, D'={built.hidden}",
        "ε",
        f"{equal} of {problems} runs the same; {restarts} restarts",
        "runs as MASTER; M and L are not met" if equal == problems else "differs",
    )


def check_linucb(n: int) -> Row:
    asked = linucb.SoftLinUCB(d=3, rounds=min(2**n, 64))
    depths = (20, 40, 60)
    errors = [linucb.largest_error(asked, steps, pieces=128, problems=2) for steps in depths]
    built = linucb.network_sizes(asked, linucb.layers(asked, depths[-1], 128))
    told = ", ".join(f"{steps}: {error:.0e}" for steps, error in zip(depths, errors, strict=True))
    return Row(
        "realizability (asm-tf-as-dm): soft LinUCB, whole network",
        f"T={asked.rounds}, d={asked.d}, temperature {asked.temperature:g}",
        "D₀, M₀, L₀, D₀' for every ε",
        f"D={built.width}, M={built.heads}, L={built.layers}, D'={built.hidden}",
        "ε",
        f"steps: |Δ log π| {told}",
        "holds" if errors[-1] <= 0.05 and errors[0] > errors[-1] else "differs",
    )


def check_sizes(n: int) -> Row:
    built = {order: BlockNetwork(Layout(order, _D), Master(), 2**order).sizes for order in range(3, 9)}
    first, last = built[3], built[8]
    as_said = all(
        size.heads == 4 * (order + 1) and size.hidden < 2**order * order and size.layers == first.layers
        for order, size in built.items()
    )
    return Row(
        "sizes of thm-approx and prop-approx-ws, T = 8…256",
        "scheduler, sums and tests",
        "thm-approx: M=max(M₀,2), L=L₀, D'=T·log₂T/ε, norm √(T·log₂T/ε); prop-approx-ws: D, L=O(1), M=O(1/√ε)",
        f"D {first.width}→{last.width}, M {first.heads}→{last.heads}, L {first.layers}→{last.layers}, "
        f"D' {first.hidden}→{last.hidden}, norm {first.norm:.0e}→{last.norm:.0e}",
        "–",
        "–",
        "D' is smaller; M=4(n+1) meets prop-approx-ws (1/ε=4(n+1)²), not thm-approx; D is not O(1)"
        if as_said
        else "differs",
    )


def check_bounds(n: int) -> Row:
    rounds = 2 ** max(n, 4)
    data, epsilon = bounds.corollary(rounds)
    size = BlockNetwork(Layout(n, _D), Master(), rounds).sizes
    constant = bounds.regret_terms(rounds, 4, 1.0, int(data), epsilon, 10, log_cover=math.log(rounds))
    longest = float(empty_tokens(Layout(n, _D), 1).norm(dim=2).max())  # R: positions alone are that long
    cover = bounds.log_covering_number(size, (data * rounds) ** -2.0, longest)
    actual = bounds.regret_terms(rounds, 4, 1.0, int(data), epsilon, 10, log_cover=cover)
    return Row(
        "thm-regret-w-op and cor-regret-bound",
        f"T={rounds}, J=4, Δ=1, N=T³ log T, ε=T⁻³",
        "T_comp = Õ(√T)",
        f"log N_Θ ≤ {cover:.0e} for the sizes built",
        f"√T = {math.sqrt(rounds):.0f}",
        f"T_comp {constant.comp:.0f} if log N_Θ = log T; with that bound {actual.comp:.0e}",
        "holds if log N_Θ = O(log T); not shown for sizes that grow with T"
        if constant.comp < 10 * math.sqrt(rounds) < actual.comp
        else "differs",
    )


def check_lemma(n: int) -> Row:
    generator = torch.Generator().manual_seed(9)
    draws = torch.rand(20_000, 5, generator=generator, dtype=torch.double)
    a, b, samples, c1, c2 = (1 + 1e3 * draws[:, :2].T).tolist() + (10 ** (6 * draws[:, 2:].T)).tolist()
    held = sum(bounds.lemma_holds(*values) for values in zip(a, b, samples, c1, c2, strict=True))
    return Row(
        "several instances (appx-lem-bound-multi)",
        "20,000 random settings",
        "a, b, c, N, C₁, C₂ > 0",
        "C₁a ≥ 1 and C₁b ≥ 1",
        "–",
        f"{held} of 20000 hold",
        "holds where its logarithms are ≥ 0" if held == 20_000 else "differs",
    )


def check_assumption(n: int) -> Row:
    rounds = 200
    worlds = {
        "stationary": make_env("stationary", horizon=rounds, noise=0.3),
        "jumps": make_env("jumps", horizon=rounds, noise=0.3, changes=2),
        "high": make_env("high", horizon=rounds, noise=0.3),
    }
    found = {name: examine("linucb", world) for name, world in worlds.items()}
    told = "; ".join(
        f"{name}: {one.both:.0%} of runs (first inequality {one.optimistic:.0%}), demanded in {one.demanded:.0%} of "
        f"rounds, second wants c/√t with c={one.scale:.2g}"
        for name, one in found.items()
    )
    holds = all(one.holds(rounds) for one in found.values())
    return Row(
        "the non-stationarity assumption (asm-non-sta)",
        "LinUCB, ρ(t) = 1/√t, T=200",
        "1 − 1/T of runs",
        "–",
        "–",
        told,
        "holds" if holds else "does not hold for α=1, ρ=1/√t",
    )


CHECKS: dict[str, Callable[[int], Row]] = {
    "indicator": check_indicator,
    "random": check_random,
    "hold": check_hold,
    "bernoulli": check_bernoulli,
    "product": check_product,
    "sigma1": check_sigma1,
    "sigma2": check_sigma2,
    "restart": check_restart,
    "tests": check_tests,
    "sums": check_sums,
    "compression": check_compression,
    "noncontinuous": check_noncontinuous,
    "linucb": check_linucb,
    "sizes": check_sizes,
    "bounds": check_bounds,
    "lemma": check_lemma,
    "assumption": check_assumption,
}
"""By name; each takes the order n of a block."""
