"""Whole networks against whole algorithms, and the bounds and assumptions of the theorems."""

from __future__ import annotations

import math

import torch

from driftformer.environments.registry import make_env
from driftformer.theory import bounds, coins, linucb, play
from driftformer.theory.assumptions import count_assumption
from driftformer.theory.network import Head, Layer, Mlp, sizes
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


def _whole_network(base: Base, scale: Scale, name: str) -> Found:
    """Play problems by the network and by the MASTER agent with the same coins."""
    equal = restarts = 0
    difference = 0.0
    for index, test_scale in enumerate(TEST_SCALES):
        network = NonContinuous(base, scale.horizon, test_scale=test_scale)
        seeds = range(index, scale.problems, len(TEST_SCALES))
        for first in range(0, len(seeds), TOGETHER):
            given = play.problems(network, seeds[first : first + TOGETHER])
            played, coins = play.play_by_network(network, given)
            expected = play.play_with_agent(network, given, coins)
            equal += int(played.same_choices(expected).sum())
            restarts += played.restarts
            difference = max(difference, played.largest_difference(expected))
    return Found(
        built=f"{scale.problems} problems, T={scale.horizon}, d={scale.dim}, A={scale.arms}",
        size=str(sizes(network.layers)),
        error=f"{equal} of {scale.problems} equal in every round, {restarts} restarts; |Δ log π|, U, sums "
        f"≤ {difference:.0e}",
        holds=equal == scale.problems and restarts > 0 and difference < CLOSE,
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
        size=str(sizes(linucb.layers(target, 80, 512))),
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
    built = {}
    for order in (2, 4, 6):
        network = NonContinuous(linucb.SoftLinUCB(d=scale.dim, arms=scale.arms), 2 ** (order + 1) - 1)
        built[order] = sizes([layer for name, part in network.parts.items() if name != "base" for layer in part])
    first, last = built[2], built[6]
    return Found(
        built="the one network without its base's layers",
        size=f"D {first.width}→{last.width}, M {first.heads}→{last.heads}, L {first.layers}→{last.layers}, "
        f"D' {first.hidden}→{last.hidden}, norm {first.norm:.0e}→{last.norm:.0e}",
        error="–",
        holds=all(size.heads == 2 * (order + 1) + 1 and size.layers == 13 for order, size in built.items())
        and first.width < last.width
        and norm_by_hand() == 14.0,
        verdict="M=2(n+1)+1 meets prop-approx-ws (1/ε=4(n+1)²), not thm-approx; D grows with log T, so it is not O(1)",
    )


@checked(
    "thm-regret-w-op and cor-regret-bound",
    "T_comp = Õ(√T)",
    lambda scale: f"√T = {math.sqrt(2 ** max(scale.n, 4)):.0f}",
)
def check_bounds(scale: Scale) -> Found:
    rounds = 2 ** max(scale.n, 4)
    data, epsilon = bounds.corollary(rounds)
    network = NonContinuous(linucb.SoftLinUCB(d=_D), rounds)
    longest = float(network.memory.sizes.tokens) ** 2  # R: positions alone are that long
    cover = bounds.log_covering_number(sizes(network.layers), (data * rounds) ** -2.0, longest)
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


@checked("several instances (appx-lem-bound-multi)", "a, b, c, N, C₁, C₂ > 0", "–")
def check_lemma(scale: Scale) -> Found:
    draws = torch.rand(20_000, 5, generator=torch.Generator().manual_seed(9), dtype=torch.double)
    settings = torch.cat([1 + 1e3 * draws[:, :2], 10 ** (6 * draws[:, 2:])], dim=1)  # a, b, N, C₁, C₂
    held = sum(bounds.lemma_holds(*values) for values in settings.tolist())
    verdict = "holds where its logarithms are ≥ 0"
    return Found("20,000 random settings", "C₁a ≥ 1 and C₁b ≥ 1", f"{held} of 20000 hold", held == 20_000, verdict)


@checked("the non-stationarity assumption (asm-non-sta)", "1 − 1/T of problems", "–")
def check_assumption(scale: Scale) -> Found:
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
