"""`thm-regret-w-op` and `cor-regret-bound` with the numbers of the paper's experiments (Section 5).

Constants are one and logarithms of T are left out where the theorem leaves them out, so these are the bounds at their
best. Rewards are divided by the largest mean reward, so that |r_t| ≤ 1 as the theorem assumes, and Δ with them; then
nobody can lose more than 2T. The covering number is taken at log T, as the corollary has it, and at the size of the
policies of Section 5 (16 layers, 16 heads; width 128 as ours) with B = R = 1, where it is least.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from driftformer.environments.nonstationarity import nonstationarity
from driftformer.environments.registry import make_env
from driftformer.policies import folder_of, shipped
from driftformer.randomness import Randomness
from driftformer.simulation.tape import lay_out
from driftformer.theory.bounds import Terms, corollary, log_covering_number, regret_terms
from driftformer.theory.network import Sizes

TRAINED = Sizes(width=128, layers=16, heads=16, hidden=512, norm=1.0)
ARMS = 10
DATA = {"high": 4 * 10**5, "low": 10**5}
"""N: trajectories that the paper trains on."""


@dataclass(frozen=True)
class AtExperiment:
    """The theorem's terms in one environment."""

    name: str
    rounds: int
    stretches: float  # J
    amount: float  # Δ
    data: int  # N
    data_needed: float  # by the corollary
    assumed: Terms  # with log N_Θ = log T
    trained: float  # T_comp at the trained size

    @property
    def trivial(self) -> float:
        """What any policy can lose at most where |r_t| ≤ 1."""
        return 2.0 * self.rounds

    @property
    def words(self) -> str:
        one = self.assumed
        return (
            f"{self.name}: T_comp {one.comp:,.0f} if log N_Θ = log T, {self.trained:.0e} at the trained size, "
            f"T_aprx {one.aprx:.0e}, T_algo {one.algo:.0f}, any policy at most {self.trivial:,.0f}"
        )


def measured_log_ratios() -> dict[str, float]:
    """log R of the shipped policies that imitate an agent, from their cards (`driftformer card`).

    The corollary takes R = e^{εT} from `thm-approx`, which is about the transformer that is *constructed* and about
    alg_E; the R of the theorem is that of the transformer that is *learned*, against alg_B.
    """
    files = {name: folder_of(name) / "card.json" for name in shipped()}
    cards = {name: json.loads(file.read_text(encoding="utf-8")) for name, file in files.items() if file.exists()}
    taught = {
        name: card["teacher"] for name, card in cards.items() if "distribution_ratio" in (card.get("teacher") or {})
    }
    return {name: float(teacher["distribution_ratio"]["log_ratio"]) for name, teacher in taught.items()}


def at_experiments() -> list[AtExperiment]:
    """High at b=0.018 and Low, with ε = T⁻³ as in the corollary."""
    settings: dict[str, dict[str, Any]] = {"high": {"b": 0.018}, "low": {}}
    return [at_experiment(name, **options) for name, options in settings.items()]


def at_experiment(name: str, **options: Any) -> AtExperiment:
    environment = make_env(name, **options)
    changes, data, rounds = nonstationarity(environment), DATA[name], environment.horizon
    largest = float(lay_out(environment, Randomness(0)).values.abs().amax(dim=(1, 2)).mean())
    stretches, amount = float(changes.count().double().mean()), float(changes.amount().mean()) / largest
    needed, epsilon = corollary(rounds)

    def terms(log_cover: float) -> Terms:
        return regret_terms(rounds, stretches, amount, data, epsilon, ARMS, log_cover)

    cover = log_covering_number(TRAINED, float(data * rounds) ** -2)
    return AtExperiment(name, rounds, stretches, amount, data, needed, terms(math.log(rounds)), terms(cover).comp)
