"""Do the intervals of `driftformer replay` hold what they say? Simulated logs whose truth is known.

    python -m benchmarks.replay             # 2,000 logs of 2,000 rounds for each case, about a minute, 4 GB
    python -m benchmarks.replay --runs 500  # sooner; shares then have a standard error of a percentage point

A fixed policy is worth the same in every log. A learner is worth what its probabilities in each round, which depend on
the log, would have earned; both truths are exact up to a simulation of two million contexts. A 95% interval should
contain them in 95% of all logs. The command fails if one is outside 95 ± 2.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from driftformer.agents.base import Agent, ProblemShape, ValueInfo
from driftformer.agents.registry import label, make_agent
from driftformer.logs.estimators import estimates
from driftformer.logs.read import Round
from driftformer.logs.replay import beside, expectations, in_replay
from driftformer.models.sampling import standard_gumbel
from driftformer.problem import Observation
from driftformer.randomness import Stream, one_thread

Array = NDArray[Any]

ARMS, DIM = 5, 4
WEIGHTS = torch.tensor([1.0, -0.5, 0.5, 0.0])
LEANING = torch.tensor([-0.5, 0.5, 0.5, 1.0])


@dataclass(frozen=True)
class Fixed:
    """A policy that never learns: it draws arms by their features."""

    sharpness: float = 2.0
    name: ClassVar[str] = "fixed"
    learns: ClassVar[bool] = False

    def init(self, shape: ProblemShape) -> None:
        """There is nothing to remember."""

    def act(self, state: None, observation: Observation, rng: Stream) -> tuple[Tensor, ValueInfo]:
        values = observation.action_set @ WEIGHTS.roll(1) * self.sharpness  # [B, A] roughly, but not quite, what pays
        arm = (values + standard_gumbel(rng.uniform(values.shape[1]))).argmax(dim=1)
        return arm, ValueInfo(values, arm)

    def probabilities(self, observation: Observation, info: ValueInfo) -> Tensor:
        return info.values.softmax(dim=1)

    def update(self, state: None, observation: Observation, arm: Tensor, reward: Tensor, info: ValueInfo) -> None: ...


@dataclass(frozen=True)
class Logs:
    """Logs of equal length, and what every arm was worth."""

    rounds: list[Round]  # of B logs each
    values: Tensor  # [T, B, A] the chance that an arm pays 1
    propensity: Array  # [B, T]

    @property
    def shape(self) -> ProblemShape:
        first = self.rounds[0].observation.action_set
        return ProblemShape(len(first), len(self.rounds), ARMS, first.shape[2], first.device, first.dtype)


def with_features(runs: int, horizon: int, seed: int, *, uniform: bool) -> Logs:
    """Arms have features that are drawn anew in every round, and pay 1 with a logistic chance."""
    rng = torch.Generator().manual_seed(seed)
    seen = [torch.randn(runs, ARMS, DIM, generator=rng) for _ in range(horizon)]
    chances = [logged_chances(features, uniform=uniform) for features in seen]
    return _drawn(seen, [chance_of(features) for features in seen], chances, rng)


def with_change(runs: int, horizon: int, seed: int, *, uniform: bool, swings: float) -> Logs:
    """Arms without features, whose chances of paying swing up and down so many times, each at its own time."""
    rng = torch.Generator().manual_seed(seed)
    phase = torch.arange(ARMS) / ARMS
    level = 0.3 + 0.1 * torch.arange(ARMS) if swings == 0 else torch.full((ARMS,), 0.5)
    values, chances = [], []
    skewed = torch.tensor([0.4, 0.2, 0.2, 0.1, 0.1])
    for t in range(horizon):
        wave = 0.4 * torch.sin(2 * torch.pi * (swings * t / horizon + phase)) if swings else torch.zeros(ARMS)
        values.append((level + wave).expand(runs, -1))
        chances.append((torch.full((ARMS,), 1 / ARMS) if uniform else skewed).expand(runs, -1))
    one_hot = torch.eye(ARMS).expand(runs, -1, -1)
    return _drawn([one_hot] * horizon, values, chances, rng)


def chance_of(features: Tensor) -> Tensor:
    """How likely arms `[…, A, d]` are to pay 1."""
    return (features @ WEIGHTS - 0.5 + 0.5 * features[..., 3].sin()).sigmoid()


def logged_chances(features: Tensor, *, uniform: bool) -> Tensor:
    """With which probabilities the logged system draws its arms: at least 0.06 each."""
    leaning = (features @ LEANING).softmax(dim=-1)
    return torch.full_like(leaning, 1 / ARMS) if uniform else 0.7 * leaning + 0.3 / ARMS


def _drawn(seen: Sequence[Tensor], values: Sequence[Tensor], chances: Sequence[Tensor], rng: torch.Generator) -> Logs:
    rounds, propensities = [], []
    for features, value, chance in zip(seen, values, chances, strict=True):
        arm = torch.multinomial(chance, 1, generator=rng)  # [B, 1]
        pays = torch.rand(len(arm), 1, generator=rng) < value.gather(1, arm)
        rounds.append(Round(Observation(features), arm.squeeze(1), pays.squeeze(1).float()))
        propensities.append(chance.gather(1, arm).squeeze(1))
    return Logs(rounds, torch.stack(list(values)), torch.stack(propensities, dim=1).double().numpy())


@dataclass(frozen=True)
class Coverage:
    """How one estimate did over many logs."""

    case: str
    agent: str
    estimate: str
    inside: float
    """Share of the intervals that contain the truth."""
    bias: float
    """Mean error, in standard errors of that mean."""
    error: float
    """Root mean square error."""
    samples: float
    refused: int


def judge(case: str, agent: Agent, logs: Logs, truth: float | None = None) -> Iterator[Coverage]:
    """Each estimate against the truth: given, or what the learner's own probabilities were worth."""
    reward = torch.stack([now.reward for now in logs.rounds], dim=1).double().numpy()  # [B, T]
    arm = torch.stack([now.arm for now in logs.rounds], dim=1)  # [B, T]
    shares = torch.stack(list(beside(agent, logs.shape, logs.rounds, 0)), dim=1).double()  # [B, T, A]
    model = torch.stack(list(expectations(logs.shape, logs.rounds)), dim=1)  # [B, T, A]
    uniform = bool(np.allclose(logs.propensity, 1 / ARMS))
    matched = torch.stack(list(in_replay(agent, logs.shape, logs.rounds, 0)), dim=1).numpy() if uniform else None
    weight = shares.gather(2, arm.unsqueeze(2)).squeeze(2).numpy() / logs.propensity
    played = model.gather(2, arm.unsqueeze(2)).squeeze(2).numpy()
    expected = (shares * model).sum(2).numpy()
    values = logs.values.transpose(0, 1).double()  # [B, T, A]
    own = (shares * values).sum(2).mean(1).numpy()  # [B]
    chosen = values.gather(2, arm.unsqueeze(2)).squeeze(2).numpy()  # [B, T]
    found = [
        estimates(reward[b], weight[b], played[b], expected[b], "not uniform" if matched is None else matched[b])
        for b in range(len(reward))
    ]
    for kind in found[0]:
        known = [(b, row[kind]) for b, row in enumerate(found) if row[kind].value is not None]
        if not known:
            continue
        errors, inside = [], []
        for b, of in known:
            assert of.value is not None
            assert of.interval is not None
            true = own[b] if truth is None else truth
            if truth is None and kind == "replay":  # a learner that is certain of its arm: where it matched, that arm's
                assert matched is not None
                true = chosen[b, matched[b]].mean()
            errors.append(of.value - true)
            inside.append(of.interval[0] <= true <= of.interval[1])
        wrong = np.array(errors)
        yield Coverage(
            case,
            label(agent),
            kind,
            float(np.mean(inside)),
            float(wrong.mean() / (wrong.std(ddof=1) / np.sqrt(len(wrong)))),
            float(np.sqrt(np.square(wrong).mean())),
            float(np.mean([of.samples for _, of in known])),
            len(found) - len(known),
        )


def worth_of(policy: Fixed, contexts: int = 2_000_000) -> float:
    """What a fixed policy earns in a round, in the mean."""
    features = torch.randn(contexts, ARMS, DIM, generator=torch.Generator().manual_seed(10**6))
    shares = (features @ WEIGHTS.roll(1) * policy.sharpness).softmax(dim=1)
    return float((shares * chance_of(features)).sum(1).double().mean())


def coverages(runs: int, horizon: int, seed: int) -> Iterator[Coverage]:
    """All cases."""
    fixed = Fixed()
    truth = worth_of(fixed)
    yield from judge("uniform log", fixed, with_features(runs, horizon, seed, uniform=True), truth)
    yield from judge("unequal log", fixed, with_features(runs, horizon, seed + 1, uniform=False), truth)
    changing = with_change(runs, horizon, seed + 2, uniform=False, swings=2)
    yield from judge("unequal log of a changing world", make_agent("discounted-linucb"), changing)
    yield from judge("unequal log of a changing world", make_agent("epsilon-greedy"), changing)
    resting = with_change(runs, horizon, seed + 3, uniform=True, swings=0)
    yield from judge("uniform log of a world at rest", make_agent("linucb"), resting)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000, help="logs in each case")
    parser.add_argument("--rounds", type=int, default=2000, help="of each log")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{options.runs} logs of {options.rounds:,} rounds in each case, {ARMS} arms, rewards of 0 and 1\n")
    print("| log | agent | estimate | 95% intervals hold in | bias, in standard errors | error | samples | refused |")
    print("|---|---|---|---|---|---|---|---|")
    failed = False
    with one_thread():
        for row in coverages(options.runs, options.rounds, options.seed):
            print(
                f"| {row.case} | {row.agent} | {row.estimate} | {row.inside:.1%} | {row.bias:+.1f} | {row.error:.4f} "
                f"| {row.samples:,.0f} | {row.refused} |",
                flush=True,
            )
            failed |= abs(row.inside - 0.95) > 0.02
    if failed:
        sys.exit("an interval holds in fewer than 93% or more than 97% of all logs")


if __name__ == "__main__":
    main()
