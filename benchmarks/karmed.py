"""K-armed agents on published problems: regret beside what was printed and beside SMPyBandits; the speed ratio last.

The problems have three Bernoulli arms and 5,000 rounds, with means that jump. The printed regrets (mean and standard
deviation of 1,000 runs of SMPyBandits) are those of Lilian Besson's thesis, Multi-Players Bandit Algorithms for
Internet of Things Networks (2019), chapter 6, and of arXiv:1902.01575.

    python -m benchmarks.karmed

SMPyBandits is compared where it is installed (pip install SMPyBandits); it needs one function that SciPy has since
removed, which is put back here. Where it departs from the papers that it cites, ours follows the papers:

- DiscountedThompson lets the arm that was played fade once for each other arm, instead of the others; it is played as
  it is, which gives the printed figures, and put right.
- klUCB_forGLR, behind the printed GLR-klUCB, has an index with 3·ln t; our option c=3 is that.
- DiscountedUCB rounds its discounted counts to whole numbers and does not let them fade between plays: left out.
- Its oracle is told which arms change, ours only that something does: no figures beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.compare import cpu_seconds, put
from driftformer.agents.registry import make_agent
from driftformer.environments.drift import Effect, Start
from driftformer.environments.linear import LinearBandit
from driftformer.evaluation.evaluate import STACK
from driftformer.randomness import CHUNK, Stream
from driftformer.simulation.rollout import rollout

HORIZON = 5000
BREAKS = 4
Means = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Published:
    """Rewards' means in each stretch, and the share of the horizon at which it begins."""

    means: Means
    starts: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8)

    def rounds(self) -> list[int]:
        """The first round of each stretch, from 0."""
        return [int(start * HORIZON) for start in self.starts]


PROBLEMS = {
    "1": Published(((0.3, 0.5, 0.9), (0.3, 0.2, 0.9), (0.3, 0.2, 0.1), (0.7, 0.2, 0.1), (0.7, 0.5, 0.1))),
    "2": Published(((0.4, 0.5, 0.9), (0.5, 0.4, 0.7), (0.6, 0.3, 0.5), (0.7, 0.2, 0.3), (0.8, 0.1, 0.1))),
    "4": Published(
        ((0.1, 0.5, 0.9), (0.3, 0.4, 0.1), (0.5, 0.3, 0.2), (0.7, 0.4, 0.3), (0.1, 0.5, 0.2)),
        (0.0, 0.5, 0.625, 0.75, 0.875),
    ),
}

_WINDOW = round(2 * math.sqrt(HORIZON * math.log(HORIZON) / BREAKS))
# The thesis tells its agent the number of changes and tests at δ = 1/√(K·Υ·T) or 1/√(Υ·T); its share of forced rounds
# does not grow with the restarts, so ours is set to the same share after half of them.
_LOCAL = f"c=3,restarts=local,exploration={0.05 * math.sqrt(BREAKS / 2):.4f},delta={1 / math.sqrt(3 * BREAKS):.4f}"
_GLOBAL = f"c=3,restarts=global,exploration={0.05 * math.sqrt(BREAKS / 3 / 2):.4f},delta={1 / math.sqrt(BREAKS):.4f}"

_AS_PRINTED = "SMPyBandits' DiscountedThompson"

AGENTS = (
    "ucb",
    "kl-ucb",
    "beta-thompson",
    "beta-thompson@gamma=0.95",
    _AS_PRINTED,
    f"sliding-window-ucb@window={_WINDOW}",
    "change-point-oracle@base=kl-ucb",
    "glr-kl-ucb",
    f"glr-kl-ucb@{_LOCAL}",
    f"glr-kl-ucb@{_GLOBAL}",
)

PRINTED = {
    "kl-ucb": {"1": (270, 76), "2": (162, 59), "4": (615, 74)},
    "beta-thompson": {"1": (493, 175), "2": (388, 147), "4": (756, 65)},
    _AS_PRINTED: {"1": (209, 38), "2": (249, 39), "4": (250, 39)},
    f"glr-kl-ucb@{_LOCAL}": {"1": (74, 31), "2": (113, 34), "4": (99, 32)},
    f"glr-kl-ucb@{_GLOBAL}": {"1": (97, 32), "2": (134, 33), "4": (128, 32)},
}


@dataclass(frozen=True)
class Piecewise:
    """A drift whose parameters are given for each stretch."""

    published: Published
    abrupt: ClassVar[bool] = True

    def start(self, start: Start) -> None:
        return None

    def at(self, t: int, effect: Effect, memory: Effect | None, rng: Stream) -> tuple[Effect, Effect]:
        begins = self.published.rounds()
        if memory is None or t - 1 in begins:
            means = self.published.means[sum(begin < t for begin in begins) - 1]
            memory = replace(effect, w=torch.tensor(means, dtype=effect.w.dtype).expand_as(effect.w).contiguous())
        return memory, memory


def environment(name: str) -> LinearBandit:
    """One of the published problems."""
    drift = Piecewise(PROBLEMS[name])
    return LinearBandit(
        name=f"problem-{name}", horizon=HORIZON, dim=3, arms=3, law="bernoulli", arm_mode="one-hot", drift=drift
    )


def ours(name: str, agent: str) -> NDArray[np.float64]:
    """The regret of each of 640 runs."""
    played = rollout(environment(name), make_agent(agent), chunks=range(STACK))
    return np.concatenate([chunk.regret for chunk in played.regrets])


def peers() -> dict[str, Callable[[], Any]]:
    """SMPyBandits' policies, by the name of ours."""
    import scipy.special

    if not hasattr(scipy.special, "btdtri"):
        scipy.special.btdtri = scipy.special.betaincinv
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is older than the Python it runs on
        from SMPyBandits import Policies

    return {
        "ucb": lambda: Policies.UCB(3),
        "kl-ucb": lambda: Policies.klUCB(3),
        "beta-thompson": lambda: Policies.Thompson(3),
        "beta-thompson@gamma=0.95": lambda: put_right(Policies.DiscountedThompson(3, gamma=0.95)),
        _AS_PRINTED: lambda: Policies.DiscountedThompson(3, gamma=0.95),
        f"sliding-window-ucb@window={_WINDOW}": lambda: Policies.SWUCB(3, tau=_WINDOW, alpha=0.5),
    }


def put_right(policy: Any) -> Any:
    """Its DiscountedThompson with every arm fading in every round, as in Raj and Kalyani (2017)."""

    def learn(arm: int, reward: float) -> None:
        for other, posterior in enumerate(policy.posterior):
            if other != arm:
                posterior.discount()
        policy.posterior[arm].update(reward)

    policy.getReward = learn
    return policy


def peer_regret(name: str, policy: Any) -> float:
    """One run of one of its policies: choose, draw, learn, as its own Evaluator does, without its bookkeeping."""
    problem, regret = PROBLEMS[name], 0.0
    begins = problem.rounds()
    policy.startGame()
    for t in range(HORIZON):
        if t in begins:
            means = problem.means[begins.index(t)]
            best = max(means)
        arm = policy.choice()
        policy.getReward(arm, float(np.random.random() < means[arm]))  # noqa: NPY002 (it draws from there too)
        regret += best - means[arm]
    return regret


def shown(regrets: NDArray[np.float64]) -> str:
    return f"{regrets.mean():.0f} ± {regrets.std(ddof=1) / math.sqrt(len(regrets)):.1f}"


def report(runs: int) -> list[str]:
    """Regret with its standard error, problem by problem, and rounds per CPU-second of `ucb`."""
    torch.set_num_threads(1)
    np.random.seed(0)  # noqa: NPY002 (SMPyBandits knows no other generator)
    installed = find_spec("SMPyBandits") is not None
    policies = peers() if installed else {}
    lines = ["| agent | problem | driftformer | printed | SMPyBandits |", "|---|---:|---:|---:|---:|"]
    for agent in AGENTS:
        for name in PROBLEMS:
            mean, deviation = PRINTED.get(agent, {}).get(name, (math.nan, math.nan))
            printed = "" if math.isnan(mean) else f"{mean:.0f} ± {deviation / math.sqrt(1000):.1f}"
            runner = policies.get(agent)
            beside = shown(np.array([peer_regret(name, runner()) for _ in range(runs)])) if runner else ""
            here = "" if agent == _AS_PRINTED else shown(ours(name, agent))
            lines.append(f"| {agent} | {name} | {here} | {printed} | {beside} |")
    speed = STACK * CHUNK * HORIZON / min(cpu_seconds(lambda: ours("1", "ucb")) for _ in range(3))
    lines += ["", f"ucb: {speed:,.0f} rounds per CPU-second"]
    if installed:
        slow = HORIZON / min(cpu_seconds(lambda: peer_regret("1", policies["ucb"]())) for _ in range(3))
        lines += [f"SMPyBandits' UCB: {slow:,.0f}", f"ratio: {speed / slow:.0f} (wanted: at least 20)"]
    else:
        lines.append("no comparison with SMPyBandits, which is not installed: pip install SMPyBandits")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30, help="of SMPyBandits, each of 5,000 rounds")
    parser.add_argument("--write", action="store_true", help="also put the table into docs/benchmarks.md")
    options = parser.parse_args()
    lines = report(options.runs)
    print("\n".join(lines))
    if options.write:
        put("karmed", lines)


if __name__ == "__main__":
    main()
