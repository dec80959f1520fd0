"""The quantities of Theorem `thm-regret-w-op`, its corollary and lemmas, as numbers for given settings.

The text gives orders of magnitude. Here constants are one and logarithmic factors are left out, so a number shows how a
bound scales (what happens when T doubles?), not the bound itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from driftformer.errors import InputError, require_real
from driftformer.theory.network import Sizes

Rho = Callable[[int], float]
"""ρ(t), the rate at which the base algorithm's average regret falls; or ρ̂(t), that of the tests."""


def inverse_root(t: int) -> float:
    """ρ(t) = 1/√t, the least that `asm-non-sta` allows."""
    return 1 / math.sqrt(t)


@dataclass(frozen=True)
class Terms:
    """The three parts of the regret of a pretrained transformer."""

    comp: float  # T_comp: from learning on N trajectories
    aprx: float  # T_aprx: from what the transformer cannot express
    algo: float  # T_algo: from MASTER itself


def distribution_ratio_bound(epsilon: float, rounds: int) -> float:
    """R ≤ e^{εT} if the log-ratio of every round is below ε (proof of `cor-regret-bound`)."""
    return math.exp(epsilon * rounds)


def imitation_error(epsilon: float, arms: int, rounds: int) -> float:
    """(e^ε − 1)·A·T of `thm-regret-w-mt`, about ε·A·T for small ε."""
    return math.expm1(epsilon) * arms * rounds


def algorithm_regret(rounds: int, stretches: float, amount: float) -> float:
    """T_algo = min{√(JT), Δ^⅓T^⅔ + √T}, derived for C(t) = t^p with p = ½ (the theorem says p in [½, 1))."""
    return min(math.sqrt(stretches * rounds), math.cbrt(amount * rounds**2) + math.sqrt(rounds))


def regret_terms(
    rounds: int,
    stretches: float,
    amount: float,
    trajectories: float,
    epsilon: float,
    arms: int,
    log_cover: float,
    log_ratio: float | None = None,
) -> Terms:
    """T_comp, T_aprx and T_algo of `thm-regret-w-op` with probability 0.95.

    log R is at its bound εT unless it is given, as measured for a policy.
    """
    ratio = distribution_ratio_bound(epsilon, rounds) if log_ratio is None else math.exp(log_ratio)
    learned = math.sqrt((log_cover + math.log(rounds / 0.05)) / trajectories)
    return Terms(
        comp=rounds**2 * math.sqrt(ratio) * (learned + math.sqrt(epsilon)),
        aprx=epsilon * arms * rounds,
        algo=algorithm_regret(rounds, stretches, amount),
    )


def exponent(function: Callable[[float], float], at: float) -> float:
    """The power with which a function grows: log₂ of its ratio when the argument doubles."""
    return math.log2(function(2 * at) / function(at))


def corollary(rounds: int) -> tuple[float, float]:
    """N ≥ T³·log T (times a constant) and ε ≤ T^−3 of `cor-regret-bound`."""
    return rounds**3 * math.log(rounds), rounds**-3.0


def parameters(size: Sizes) -> int:
    """How many numbers θ has: L·(3MD² + 2DD')."""
    return size.layers * (3 * size.heads * size.width**2 + 2 * size.width * size.hidden)


def log_lipschitz(size: Sizes, largest: float) -> float:
    """ln of L·B_H^{L−1}·B_Θ, with B_H = (1+B²)(1+B²R³), B_Θ = BR(1+BR²+B³R²) (Lin et al. 2024, after Bai et al. 2023).

    For |||θ||| ≤ B the output of the transformer moves at most so many times as far as θ, provided that every hidden
    token has a norm of at most R. Their transformer clips tokens at R after each layer; that of Section 2.2 does not,
    and without clipping the claim is false: `coverings.py` has a counterexample.
    """
    bound = size.norm
    grown = (1 + bound**2) * (1 + bound**2 * largest**3)
    first = bound * largest * (1 + bound * largest**2 + bound**3 * largest**2)
    return math.log(size.layers) + (size.layers - 1) * math.log(grown) + math.log(first)


def log_covering_number(size: Sizes, radius: float, largest: float = 1.0) -> float:
    """log N_Θ(radius) by that Lipschitz constant, for transformers whose tokens are clipped at R = `largest`.

    A ball of so many dimensions as θ has numbers is covered by (1 + 2B·Lip/radius)^dimensions smaller ones.
    """
    require_real("radius", radius, 0.0, above=True)
    exponent = log_lipschitz(size, largest) + math.log(2 * size.norm / radius)
    return parameters(size) * (exponent + math.log1p(math.exp(-exponent)))


def lemma_holds(a: float, b: float, samples: float, c1: float, c2: float) -> bool:
    """The inequality of `appx-lem-bound-multi`; its roots are real only where C₁a and C₁b are at least 1."""
    if min(c1 * a, c1 * b) < 1:
        raise InputError(f"C1·a is {c1 * a:g} and C1·b is {c1 * b:g}; the lemma needs both to be at least 1")

    def part(value: float) -> float:
        return value**2 * (math.sqrt(math.log(c1 * value) / samples) + c2)

    return part(a) + part(b) <= part(a + b) * (1 + 1e-12)


def rates(rounds: int, stretches: float, amount: float) -> dict[str, float]:
    """Table `tab:rate`: transformers that imitate LinUCB or Thompson sampling (Lin et al. 2024), or MASTER."""
    return {
        "LinUCB: T": float(rounds),
        "TS: Δ^¼T^¾": amount**0.25 * rounds**0.75,
        "MASTER: min{√(JT), Δ^⅓T^⅔ + √T}": algorithm_regret(rounds, stretches, amount),
    }
