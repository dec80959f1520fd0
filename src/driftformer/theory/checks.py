"""Every statement of the proof that is built, checked against the exact algorithm: one row of a table each.

A check is registered with what the paper says (the statement, its size, its error) and returns what was found. Checks
compute with one thread, so that results do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from driftformer.agents.linucb import LinUCB
from driftformer.agents.master import Master
from driftformer.environments.registry import make_env
from driftformer.errors import require_count, unknown_name
from driftformer.randomness import one_thread
from driftformer.theory import bounds, linucb, noncontinuous, rank_tests, scheduler, testing
from driftformer.theory.assumptions import count_assumption
from driftformer.theory.bounds import inverse_root
from driftformer.theory.network import Layer, apply, sizes
from driftformer.theory.noncontinuous import CEILING, SHARPNESS, block_network
from driftformer.theory.tokens import Layout, empty_tokens, random_tokens, tokens_with_random_numbers

EXACT = 1e-9
MOST_N = 6
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


@dataclass(frozen=True)
class Found:
    """What a check found; the verdict is "differs" unless the statement holds."""

    built: str
    size: str
    error: str
    holds: bool
    verdict: str


CHECKS: dict[str, Callable[[int], Row]] = {}
"""By name; each takes the order n of a block."""


def run_checks(names: Iterable[str], n: int, on_check: Callable[[str], object] = lambda name: None) -> dict[str, Row]:
    """Run checks for blocks of 2^n rounds; `on_check` is told the name of each before it runs."""
    require_count("n", n, 1, most=MOST_N)
    rows = {}
    for name in names:
        if name not in CHECKS:
            raise unknown_name("check", name, CHECKS)
        on_check(name)
        rows[name] = CHECKS[name](n)
    return rows


Claim = str | Callable[[int], str]
"""What the paper says, perhaps as a function of n."""


def _check(statement: str, size: Claim, error: Claim) -> Callable[[Callable[[int], Found]], Callable[[int], Row]]:
    """Make `check_…` a check of a statement of the paper, by that name."""

    def register(find: Callable[[int], Found]) -> Callable[[int], Row]:
        @one_thread()
        def check(n: int) -> Row:
            found = find(n)
            claims = [claim if isinstance(claim, str) else claim(n) for claim in (size, error)]
            verdict = found.verdict if found.holds else "differs"
            return Row(statement, found.built, claims[0], found.size, claims[1], found.error, verdict)

        CHECKS[find.__name__.removeprefix("check_")] = check
        return check

    return register


def _exactly(layer: Layer, tokens: Tensor, expected: Tensor, built: str, size: str = "", note: str = "") -> Found:
    """A layer that must turn tokens into the expected ones."""
    error = float((apply([layer], tokens) - expected).abs().max())
    return Found(built, size or f"{len(layer.heads)} heads", f"{error:.0e}", error < EXACT, f"exact{note}")


def _ramp(error: Tensor) -> tuple[float, str]:
    """The share of inputs whose output is not exact, as a number and in words."""
    share = float((error > EXACT).double().mean())
    return share, f"exact except for {share:.1e} of inputs, in the ramp 1/k, k={SHARPNESS:g}"


@_check("1[x>0] from two ReLUs (appx-approx-rand-gen)", "2", "0 as k→∞")
def check_indicator(n: int) -> Found:
    x = torch.linspace(-1, 1, 200_001, dtype=torch.double)
    shares = [scheduler.ramp_share(x, k) for k in (1e1, 1e3, 1e5)]
    share, words = _ramp((scheduler.indicator(x, SHARPNESS) - scheduler.exact_indicator(x)).abs())
    holds = shares[0] > shares[1] >= shares[2] and share < 1e-4
    return Found("two hidden units", "2", words, holds, "holds outside the ramp")


@_check("random numbers from data (appx-approx-rand-gen)", "2 heads", "Unif(0,1)")
def check_random(n: int) -> Found:
    layout = Layout(min(n, 4), 1)
    tokens = random_tokens(layout, 0, batch=20_000)
    tokens[..., layout.places("rand")] = 0.0
    first_order = Layer(scheduler.ranks(layout, SHARPNESS).heads[:2])
    made = apply([first_order], tokens)[..., layout.place("rand", 0)]
    uniform, independent = rank_tests.rank_tests(made)
    whole = scheduler.full_sequence_ranks(tokens[..., layout.place("noise", 0)])
    words = f"p {uniform:.2f} uniform, {independent:.2f} independent; "
    words += f"whole sequence: p {rank_tests.full_sequence_independence(whole):.0e}"
    verdict = "holds if causal; the first rounds are coarse"
    holds = uniform > 0.01 and independent > 0.01
    return Found("causal ranks, noise for each order", f"{2 * (n + 1)} heads", words, holds, verdict)


@_check("a random number held over its block (Step 2, postulated)", "–", "0")
def check_hold(n: int) -> Found:
    layout = Layout(n, 1)
    tokens, numbers = tokens_with_random_numbers(layout, 1)
    expected = tokens.clone()
    expected[..., layout.places("rand")] = scheduler.exact_held(numbers)
    return _exactly(scheduler.held(layout), tokens, expected, "three heads and one to clear")


@_check("Bernoulli masks (Step 1 of appx-approx-sig1)", "O(1/ε) hidden", "0 as k→∞")
def check_bernoulli(n: int) -> Found:
    layout = Layout(n, 1)
    tokens, numbers = tokens_with_random_numbers(layout, 2)
    layer = scheduler.masks(layout, inverse_root, SHARPNESS)
    flags = apply([layer], tokens)[..., layout.places("rand")]
    share, words = _ramp((flags - scheduler.exact_masks(numbers, inverse_root)).abs())
    verdict = "holds, without the product"
    return Found("a constant threshold per order", f"{layer.hidden} hidden", words, share < 1e-3, verdict)


@_check("the text's product rand·ρ (Step 1)", "O(1/ε) hidden", "ε")
def check_product(n: int) -> Found:
    errors = {pieces: scheduler.largest_product_error(pieces) for pieces in (4, 16, 64)}
    holds = all(error <= 1.5 / pieces**2 for pieces, error in errors.items())
    words = ", ".join(f"{3 * pieces}: {error:.0e}" for pieces, error in errors.items())
    verdict = "holds, with fewer hidden units"
    return Found("squares by straight pieces", "O(1/√ε) hidden", f"hidden units: error {words}", holds, verdict)


@_check("σ1 (def-sig1, Step 2)", lambda n: f"{2 * (n + 1)} heads", "0 as k→∞")
def check_sigma1(n: int) -> Found:
    layout = Layout(n, _D)
    tokens = random_tokens(layout, 3)
    return _exactly(scheduler.sigma1(layout), tokens, scheduler.exact_sigma1(tokens, layout), "flags on the key's side")


@_check("σ2 (def-sig2, appx-approx-sig2)", lambda n: f"{2 * (n + 1)} heads", "0 as k→∞")
def check_sigma2(n: int) -> Found:
    layout = Layout(n, _D)
    tokens = scheduler.exact_sigma1(random_tokens(layout, 4), layout)
    expected = scheduler.exact_sigma2(tokens, layout)
    built = "two heads on sums of lower flags"
    return _exactly(scheduler.sigma2(layout), tokens, expected, built, note="; f must be flags")


@_check("RM (prop-approx-rm, def-test-matrix)", "D' = O(1); 7 entries", "0")
def check_restart(n: int) -> Found:
    layout = Layout(n, _D)
    tokens = random_tokens(layout, 5)
    gates = tokens[..., layout.place("rand", 0)].clone()
    tokens[..., layout.place("reward")] = gates
    layer = testing.restart(layout, layout.unit("reward"), 100.0)
    size = f"{layer.hidden} hidden; {len(testing.reset_places(layout))} entries"
    expected = testing.exact_restart(tokens, gates, layout)
    return _exactly(layer, tokens, expected, "entries times a gate", size, "; D' = 4(4(n+1)+3)")


@_check("TEST, U_t (def-test, Algorithm 2)", "–", "0 as k→∞")
def check_tests(n: int) -> Found:
    at, count = testing.coordinates(n), 20_000
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

    layers = testing.tests(n, rho_hat, CEILING, SHARPNESS)
    out = apply(layers, vectors.unsqueeze(1)).squeeze(1)
    bound, fails = testing.exact_tests(vectors, n, rho_hat, CEILING)
    error = float((CEILING - out[:, at["bound"]].squeeze(1) - bound).abs().max())
    share, words = _ramp((out[:, at["fails"]].squeeze(1) - fails.double()).abs())
    holds, verdict = error < EXACT and share < 1e-3, "holds for Algorithm 2's tests"
    return Found(f"{len(layers)} MLPs", f"{sizes(layers).hidden} hidden", f"U_t {error:.0e}; {words}", holds, verdict)


@_check("running and window sums (eq-input1, eq-input2)", "–", "0")
def check_sums(n: int) -> Found:
    layout = Layout(n, 1)
    tokens = random_tokens(layout, 7)
    tokens[..., [*layout.places("window_sum"), layout.place("reward_sum"), layout.place("auxiliary_sum")]] = 0.0
    rewards = tokens[..., layout.place("noise", 0)]
    tokens[..., layout.place("reward")] = rewards
    expected = tokens.clone()
    expected[..., layout.place("reward_sum")] = testing.exact_sums(rewards)
    for order in layout.orders:
        expected[..., layout.place("window_sum", order)] = testing.exact_sums(rewards, 2**order)
    return _exactly(testing.sums(layout), tokens, expected, "heads that undo 1/t")


@_check("compression (appx-motiv-non-cont-tf)", lambda n: f"W·W ≈ I_{(n + 1) * (_D + 2)}", "≈ 0")
def check_compression(n: int) -> Found:
    size = _D + 2  # of each part
    compress = scheduler.compression_matrix(_D, n + 1, (n + 1) * size)
    data = torch.zeros(100, (n + 1) * size, dtype=torch.double)
    data[:, :_D] = torch.randn(100, _D, generator=torch.Generator().manual_seed(8), dtype=torch.double)
    alone = (data @ compress.T @ compress - data).abs().max()
    layout = Layout(n, _D)
    tokens = random_tokens(layout, 8)
    for order in layout.orders[1:]:
        tokens[..., layout.x(order)] = 0.0
    some_live = tokens[..., layout.places("rand")].amax(dim=-1, keepdim=True)
    back = scheduler.decompressed(apply(scheduler.compressed(layout), tokens), layout)
    error = max(float(alone), float((back - tokens[..., layout.x(0)] * some_live).abs().max()))
    rank, verdict = int(torch.linalg.matrix_rank(compress.T @ compress)), "holds on the data's subspace only"
    return Found("parts, σ1, σ2, and back", f"rank {rank} ≤ {size}", f"{error:.0e} on the data", error < EXACT, verdict)


@_check(
    "non-continuous transformer (def-nctf, thm-approx)",
    lambda n: f"D={Layout(n, _D).claimed}, M=max(M₀,2), L=L₀",
    "ε",
)
def check_noncontinuous(n: int) -> Found:
    rounds, problems = 2 ** (n + 1) - 1, 100
    equal = restarts = 0
    for seed in range(problems):
        master = Master(base=LinUCB(), test_scale=(1.0, 0.01, 0.001)[seed % 3])
        problem = noncontinuous.small_problem(rounds, seed, dim=_D)
        played = noncontinuous.play_by_weights(master, problem)
        equal += played == noncontinuous.play_with_agent(master, problem, [one.coins for one in played])
        restarts += sum(one.failed for one in played)
    return Found(
        built=f"{problems} problems of {rounds} rounds",
        size=str(block_network(n, _D, Master(), rounds).sizes),
        error=f"{equal} of {problems} problems equal; {restarts} restarts",
        holds=equal == problems,
        verdict="runs as MASTER; M and L are not met",
    )


@_check("realizability (asm-tf-as-dm): soft LinUCB, whole network", "D₀, M₀, L₀, D₀' for every ε", "ε")
def check_linucb(n: int) -> Found:
    target = linucb.SoftLinUCB(d=3, rounds=min(2**n, 64))
    errors = {steps: linucb.largest_error(target, steps, pieces=128, problems=2) for steps in (20, 40, 60)}
    return Found(
        built=f"T={target.rounds}, d={target.d}, temperature {target.temperature:g}",
        size=str(sizes(linucb.layers(target, 60, 128))),
        error="steps: |Δ log π| " + ", ".join(f"{steps}: {error:.0e}" for steps, error in errors.items()),
        holds=errors[60] <= 0.05 and errors[20] > errors[60],
        verdict="holds",
    )


@_check(
    "sizes of thm-approx and prop-approx-ws, T = 8…256",
    "thm-approx: M=max(M₀,2), L=L₀, D'=T·log₂T/ε, norm √(T·log₂T/ε); prop-approx-ws: D, L=O(1), M=O(1/√ε)",
    "–",
)
def check_sizes(n: int) -> Found:
    built = {order: block_network(order, _D, Master(), 2**order).sizes for order in range(3, 9)}
    first, last = built[3], built[8]
    return Found(
        built="scheduler, sums and tests",
        size=f"D {first.width}→{last.width}, M {first.heads}→{last.heads}, L {first.layers}→{last.layers}, "
        f"D' {first.hidden}→{last.hidden}, norm {first.norm:.0e}→{last.norm:.0e}",
        error="–",
        holds=all(
            size.heads == 4 * (order + 1) and size.hidden < 2**order * order and size.layers == first.layers
            for order, size in built.items()
        ),
        verdict="D' is smaller; M=4(n+1) meets prop-approx-ws (1/ε=4(n+1)²), not thm-approx; D is not O(1)",
    )


@_check(
    "thm-regret-w-op and cor-regret-bound",
    "T_comp = Õ(√T)",
    lambda n: f"√T = {math.sqrt(2 ** max(n, 4)):.0f}",
)
def check_bounds(n: int) -> Found:
    rounds = 2 ** max(n, 4)
    data, epsilon = bounds.corollary(rounds)
    longest = float(empty_tokens(Layout(n, _D), 1).norm(dim=2).max())  # R: positions alone are that long
    built = block_network(n, _D, Master(), rounds).sizes
    cover = bounds.log_covering_number(built, (data * rounds) ** -2.0, longest)
    assumed, actual = (
        bounds.regret_terms(rounds, 4, 1.0, int(data), epsilon, 10, log_cover=size).comp
        for size in (math.log(rounds), cover)
    )
    return Found(
        built=f"T={rounds}, J=4, Δ=1, N=T³ log T, ε=T⁻³",
        size=f"log N_Θ ≤ {cover:.0e} for the sizes built",
        error=f"T_comp {assumed:.0f} if log N_Θ = log T; with that bound {actual:.0e}",
        holds=assumed < 10 * math.sqrt(rounds) < actual,
        verdict="holds if log N_Θ = O(log T); not shown for sizes that grow with T",
    )


@_check("several instances (appx-lem-bound-multi)", "a, b, c, N, C₁, C₂ > 0", "–")
def check_lemma(n: int) -> Found:
    draws = torch.rand(20_000, 5, generator=torch.Generator().manual_seed(9), dtype=torch.double)
    settings = torch.cat([1 + 1e3 * draws[:, :2], 10 ** (6 * draws[:, 2:])], dim=1)  # a, b, N, C₁, C₂
    held = sum(bounds.lemma_holds(*values) for values in settings.tolist())
    verdict = "holds where its logarithms are ≥ 0"
    return Found("20,000 random settings", "C₁a ≥ 1 and C₁b ≥ 1", f"{held} of 20000 hold", held == 20_000, verdict)


@_check("the non-stationarity assumption (asm-non-sta)", "1 − 1/T of problems", "–")
def check_assumption(n: int) -> Found:
    rounds = 200
    worlds = {name: make_env(name, horizon=rounds, noise=0.3) for name in ("stationary", "high")}
    worlds["jumps"] = make_env("jumps", horizon=rounds, noise=0.3, changes=2)
    found = {name: count_assumption("linucb", worlds[name]) for name in ("stationary", "jumps", "high")}
    words = "; ".join(
        f"{name}: {one.both:.0%} of problems (first inequality {one.optimistic:.0%}), required in "
        f"{one.required:.0%} of rounds, second needs c/√t with c={one.scale:.2g}"
        for name, one in found.items()
    )
    holds = all(one.holds(rounds) for one in found.values())
    verdict = "holds" if holds else "does not hold for α=1, ρ=1/√t"
    return Found("LinUCB, ρ(t) = 1/√t, T=200", "–", words, True, verdict)
