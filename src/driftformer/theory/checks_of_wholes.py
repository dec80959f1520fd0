"""Whole networks against whole algorithms, and the bounds and assumptions of the theorems."""

from __future__ import annotations

import math

import torch

from driftformer.environments.registry import make_env
from driftformer.theory import bounds, coins, coverings, experiments, linucb, play, thompson
from driftformer.theory.assumptions import count_assumption, safe_alpha
from driftformer.theory.feasible import FewSteps, foretold, measured
from driftformer.theory.network import Head, Layer, Mlp, Sizes, shape, sizes
from driftformer.theory.noncontinuous import Base, NonContinuous
from driftformer.theory.table import Found, Scale, checked
from driftformer.theory.tokens import Layout

CLOSE = 1e-4
"""For networks that approximate: a hundred times what is measured."""
TOGETHER = 20
"""Problems that a network plays side by side."""
_D = 3


TEST_SCALES = (1.0, 0.003)
"""ρ̂ as it is, and so small that tests do fail."""


@checked(
    "non-continuous transformer (def-nctf, thm-approx): one network",
    lambda scale: f"D={Layout((scale.horizon + 1).bit_length() - 2, scale.dim).claimed}+D₀, M=max(M₀,2), L=L₀",
    "ε",
)
def check_noncontinuous(scale: Scale) -> Found:
    return _whole_network(linucb.SoftLinUCB(d=scale.dim, arms=scale.arms), scale, "soft LinUCB")


@checked("the same over Thompson sampling (asm-tf-as-dm)", "D₀, M₀, L₀, D₀' for every ε", "ε")
def check_thompson(scale: Scale) -> Found:
    return _whole_network(thompson.SoftThompson(d=scale.dim, arms=scale.arms), scale, "soft Thompson sampling")


def _whole_network(base: Base, scale: Scale, name: str) -> Found:
    """Play problems by the network and by the MASTER agent with the same coins."""
    equal = 0
    difference = 0.0
    failed = torch.zeros(4, dtype=torch.long)  # rounds in which none, Test 1, Test 2, both did
    for index, test_scale in enumerate(TEST_SCALES):
        network = NonContinuous(base, scale.horizon, test_scale=test_scale)
        seeds = range(index, scale.problems, len(TEST_SCALES))
        for first in range(0, len(seeds), TOGETHER):
            given = play.problems(network, seeds[first : first + TOGETHER])
            played, coins = play.play_by_network(network, given)
            expected = play.play_with_agent(network, given, coins)
            equal += int(played.same_choices(expected).sum())
            assert expected.tests is not None, "the agent tells"
            failed += torch.bincount(expected.tests.flatten(), minlength=4)
            difference = max(difference, played.largest_difference(expected))
    return Found(
        built=f"{scale.problems} problems, T={scale.horizon}, d={scale.dim}, A={scale.arms}",
        size=str(measured(network)),
        error=f"{equal} of {scale.problems} equal in every round; {failed[1] + failed[3]} restarts by Test 1, "
        f"{failed[2] + failed[3]} by Test 2; |Δ log π|, U, sums ≤ {difference:.0e}",
        holds=equal == scale.problems and min(failed[1:3]) > 0 and difference < CLOSE,
        verdict=f"is MASTER over {name}; D, M and L are larger",
    )


@checked("the law of the coins (appx-approx-rand-gen)", "–", "none")
def check_coins(scale: Scale) -> Found:
    network = NonContinuous(linucb.SoftLinUCB(d=1, arms=2), 2 ** (scale.n + 1) - 1)
    bare = NonContinuous(network.base, network.rounds, burn_in=0)
    found, without = coins.distance(network, scale.n), coins.distance(bare, scale.n)
    small = NonContinuous(network.base, 7, burn_in=5)
    apart = float((coins.sampled_law(small, 2, 10_000) - coins.network_law(small, 2)).abs().sum(dim=1).max()) / 2
    return Found(
        built=f"{network.burn_in} tokens of burn-in, blocks of {2**scale.n}",
        size=f"{network.burn_in} tokens",
        error=f"total variation from MALG's active order: mean {found.mean:.3f}, first round {found.first:.3f} "
        f"(without burn-in {without.mean:.2f}, {without.first:.2f})",
        holds=found.mean <= 0.02 and found.first <= 0.05 < without.first and apart < 0.03,
        verdict="holds up to that distance, which shrinks as 1/tokens",
    )


@checked("realizability (asm-tf-as-dm): soft LinUCB, whole network", "D₀, M₀, L₀, D₀' for every ε", "ε")
def check_linucb(scale: Scale) -> Found:
    target = linucb.SoftLinUCB(d=3, rounds=min(2**scale.n, 64))
    errors = {steps: linucb.largest_error(target, steps, pieces=512, problems=2) for steps in (20, 40, 80)}
    return Found(
        built=f"T={target.rounds}, d={target.d}, temperature {target.temperature:g}",
        size=str(shape(linucb.layers(target, 80, 512))),
        error="steps: |Δ log π| " + ", ".join(f"{steps}: {error:.0e}" for steps, error in errors.items()),
        holds=errors[80] <= 1e-3 and errors[20] > errors[80],
        verdict="holds",
    )


def norm_by_hand() -> float:
    """|||θ||| of a layer whose matrices are multiples of the identity: ‖Q‖ + ‖V_1‖ + ‖V_2‖ + ‖W_1‖ + ‖W_2‖ = 14."""
    one = torch.eye(2, dtype=torch.double)
    heads = [Head(one, 2 * one, one), Head(one, one, 2 * one)]
    return sizes([Layer(heads, Mlp(4 * one, 5 * one))]).norm


@checked(
    "sizes of thm-approx and prop-approx-ws, T = 7…127",
    "thm-approx: M=max(M₀,2), L=L₀, D'=T·log₂T/ε, norm √(T·log₂T/ε); prop-approx-ws: D, L=O(1), M=O(1/√ε)",
    "–",
)
def check_sizes(scale: Scale) -> Found:
    def without_base(order: int) -> Sizes:
        network = NonContinuous(FewSteps(d=scale.dim, arms=scale.arms), 2 ** (order + 1) - 1)
        return sizes([layer for name, part in network.parts.items() if name != "base" for layer in part])

    built = {order: without_base(order) for order in (2, 4, 6)}
    first, last = built[2], built[6]
    whole = f"with them T={scale.horizon}, d={scale.dim}, A={scale.arms}"
    return Found(
        built=f"the one network without its base's layers; {whole}",
        size=f"D {first.width}→{last.width}, M {first.heads}→{last.heads}, L {first.layers}→{last.layers}, "
        f"D' {first.hidden}→{last.hidden}, norm {first.norm:.0e}→{last.norm:.0e}; "
        f"with them {foretold(scale.horizon, scale.dim, scale.arms)}",
        error="–",
        holds=all(size.heads == 2 * (order + 1) + 1 and size.layers == 13 for order, size in built.items())
        and first.width < last.width
        and norm_by_hand() == 14.0,
        verdict="M=2(n+1)+1 meets prop-approx-ws (1/ε=4(n+1)²), not thm-approx; D grows with log T, so it is not O(1)",
    )


@checked("thm-regret-w-op and cor-regret-bound", "T_comp = Õ(√T) for N ≥ T³ log T, ε ≤ T⁻³", "exponents 2, −½, ½")
def check_bounds(scale: Scale) -> Found:
    def terms(rounds: float = 1e4, data: float = 1e9, arms: int = 10, log_ratio: float = 0.0) -> bounds.Terms:
        return bounds.regret_terms(int(rounds), 4, 1e9, data, 1e-30, arms, 1e6, log_ratio)

    found = (
        bounds.exponent(lambda rounds: terms(rounds=rounds).comp, 1e4),
        bounds.exponent(lambda data: terms(data=data).comp, 1e9),
        bounds.exponent(lambda ratio: terms(log_ratio=math.log(ratio)).comp, 4.0),
        bounds.exponent(lambda arms: terms(arms=int(arms)).aprx, 8),
        bounds.exponent(lambda rounds: terms(rounds=rounds).aprx, 1e4),
        bounds.exponent(lambda rounds: terms(rounds=rounds).algo, 1e4),
    )
    rounds = 2 ** max(scale.n, 4)
    data, epsilon = bounds.corollary(rounds)
    own = bounds.regret_terms(rounds, 4, 1.0, data, epsilon, 10, log_cover=math.log(rounds)).comp
    pairs = zip(found, (2, -0.5, 0.5, 1, 1, 0.5), strict=True)
    return Found(
        built="constants of one, no logarithms",
        size=f"T={rounds}: T_comp {own:.0f}, √T {math.sqrt(rounds):.0f} if log N_Θ = log T",
        error="T_comp ∝ T^{:.2f} N^{:.2f} R^{:.2f}, T_aprx ∝ A^{:.0f} T^{:.0f}, T_algo ∝ T^{:.2f}".format(*found),
        holds=all(abs(one - claimed) < 1e-3 for one, claimed in pairs) and own < 10 * math.sqrt(rounds),
        verdict="holds if log N_Θ = O(log T); see the next two rows",
    )


@checked("the bound at the experiments (Section 5)", "T_comp below T_algo", "–")
def check_experiments(scale: Scale) -> Found:
    rows = experiments.at_experiments()
    ratios = " and ".join(f"{ratio:.0f}" for ratio in experiments.measured_log_ratios().values())
    data = ", ".join(f"{one.name} {one.data_needed:.0e} ({one.data:.0e} used)" for one in rows)
    return Found(
        built="; ".join(f"{one.name}: T={one.rounds}, J={one.stretches:.0f}, Δ={one.amount:.1f}" for one in rows),
        size=f"N ≥ T³ log T: {data}",
        error="; ".join(one.words for one in rows) + f"; measured log R {ratios}, where the corollary has ≤ T⁻²",
        holds=all(one.assumed.comp > one.assumed.algo and one.trained > one.trivial for one in rows),
        verdict="T_comp exceeds T_algo even if log N_Θ = log T, and any possible regret at the trained size",
    )


@checked("the covering number's Lipschitz constant (Definition of N_Θ)", "–", "log N_Θ = O(log T)")
def check_covering(scale: Scale) -> Found:
    norms = (0.5, 2.0)
    clipped = max(
        coverings.excess(layers, norm, coverings.RADIUS)
        for norm in norms
        for layers in (coverings.identities(), *(coverings.random_weights(seed) for seed in range(5)))
    )
    free = coverings.excess(coverings.identities(), norms[-1], None)
    network = NonContinuous(linucb.SoftLinUCB(d=_D), 2 ** max(scale.n, 4))
    cover = bounds.log_covering_number(sizes(network.layers), 1e-6, play.largest_token(network))
    return Found(
        built=f"L={coverings.LAYERS} layers, |||θ||| up to {norms[-1]:g}",
        size=f"log N_Θ ≤ {cover:.0e} for the network built, clipped where its tokens end",
        error=f"ln(moved/constant): clipped at R at most {clipped:.0f}, not clipped up to {free:.0f}",
        holds=clipped < 0 < free and cover > network.rounds,
        verdict="holds if hidden tokens are clipped at R, which Section 2.2 does not; O(log T) is not shown",
    )


@checked("several instances (appx-lem-bound-multi)", "a, b, c, N, C₁, C₂ > 0", "–")
def check_lemma(scale: Scale) -> Found:
    draws = torch.rand(20_000, 5, generator=torch.Generator().manual_seed(9), dtype=torch.double)
    settings = torch.cat([1 + 1e3 * draws[:, :2], 10 ** (6 * draws[:, 2:])], dim=1)  # a, b, N, C₁, C₂
    held = sum(bounds.lemma_holds(*values) for values in settings.tolist())
    verdict = "holds where its logarithms are ≥ 0"
    return Found("20,000 random settings", "C₁a ≥ 1 and C₁b ≥ 1", f"{held} of 20000 hold", held == 20_000, verdict)


@checked("the non-stationarity assumption (asm-non-sta)", "1 − 1/T of problems", "–")
def check_assumption(scale: Scale) -> Found:
    rounds, dim, noise = 200, 32, 1.5
    worlds = {name: make_env(name, horizon=rounds) for name in ("stationary", "high")}
    worlds["jumps"] = make_env("jumps", horizon=rounds, changes=2)
    alpha = safe_alpha(dim, rounds, noise, math.sqrt(dim / 3))
    agents = {"α=1": "linucb", f"α={alpha:.0f}": f"linucb@alpha={alpha:.2f}"}
    valid = {one: 1.01 * count_assumption(agent, worlds["stationary"]).scale for one, agent in agents.items()}
    found = {
        (one, name): count_assumption(agents[one], world, valid[one])
        for one in agents
        for name, world in worlds.items()
    }
    words = "; ".join(
        f"{one}, ρ={valid[one]:.1f}/√t: "
        + ", ".join(f"{name} {found[one, name].both:.0%} ({found[one, name].optimistic:.0%} first)" for name in worlds)
        for one in agents
    )
    safe = [counts for (one, _), counts in found.items() if one != "α=1"]
    return Found(
        built=f"LinUCB, rewards and r̃ in [0, 1], T={rounds}, d={dim}, noise {noise:g}",
        size="–",
        error=f"problems in which it holds: {words}",
        holds=safe[0].holds(rounds) and not found["α=1", "stationary"].holds(rounds),
        verdict=f"holds for α={alpha:.0f}, with a ρ above 1 up to t={max(valid.values()) ** 2:.0f}; not for α=1",
    )
