"""The four estimates against slow versions written from Open Bandit Pipeline's documentation, and against the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from benchmarks import replay as simulated
from numpy.typing import NDArray

from driftformer.agents.registry import make_agent
from driftformer.logs.estimators import effective_samples, estimates, why_not_weights
from driftformer.logs.replay import expectations, in_replay

Array = NDArray[Any]
T, ARMS = 400, 3


class Feedback:
    """Logged rounds in the words of Open Bandit Pipeline."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.pi_b = rng.dirichlet(np.full(ARMS, 5.0), T)  # [T, A] the logged system's probabilities
        self.action = np.array([rng.choice(ARMS, p=row) for row in self.pi_b])
        self.pscore = self.pi_b[np.arange(T), self.action]
        self.reward = rng.normal(self.action, 1.0)
        self.action_dist = rng.dirichlet(np.full(ARMS, 2.0), T)  # [T, A] the evaluated policy's
        self.estimated_rewards_by_reg_model = rng.normal(1.0, 1.0, (T, ARMS))
        self.chosen = rng.integers(0, ARMS, T)  # by a policy that is certain, for the replay method


def expectation(values: list[float]) -> float:
    """E_D, the empirical average over the log."""
    return sum(values) / len(values)


def plain(log: Feedback) -> dict[str, float]:
    """V̂_RM, V̂_IPW, V̂_SNIPW and V̂_DR, a round at a time."""
    rows = range(T)
    weight = [log.action_dist[t][log.action[t]] / log.pscore[t] for t in rows]
    match = [float(log.chosen[t] == log.action[t]) for t in rows]
    q = log.estimated_rewards_by_reg_model
    q_pi = [sum(log.action_dist[t][a] * q[t][a] for a in range(ARMS)) for t in rows]
    residual = [weight[t] * (log.reward[t] - q[t][log.action[t]]) for t in rows]
    weighted = [weight[t] * log.reward[t] for t in rows]
    return {
        "replay": expectation([match[t] * log.reward[t] for t in rows]) / expectation(match),
        "ips": expectation(weighted),
        "snips": expectation(weighted) / expectation(weight),
        "dr": expectation([q_pi[t] + residual[t] for t in rows]),
    }


def ours(log: Feedback, matched: Array | str) -> dict[str, Any]:
    rows = np.arange(T)
    q = log.estimated_rewards_by_reg_model
    return estimates(
        log.reward,
        log.action_dist[rows, log.action] / log.pscore,
        q[rows, log.action],
        (log.action_dist * q).sum(axis=1),
        matched,
    )


@pytest.mark.parametrize("seed", range(3))
def test_estimates_are_those_of_open_bandit_pipeline(seed: int) -> None:
    log = Feedback(seed)
    found = ours(log, log.chosen == log.action)
    for name, value in plain(log).items():
        assert found[name].value == pytest.approx(value, rel=1e-12), name


def test_the_interval_of_a_ratio_is_that_of_the_jackknife() -> None:
    """Leaving out one round at a time is another, much slower way to the standard error of Σ w·r / Σ w."""
    log = Feedback()
    weight = log.action_dist[np.arange(T), log.action] / log.pscore
    total, weighted = weight.sum(), weight @ log.reward
    without = np.array([(weighted - weight[t] * log.reward[t]) / (total - weight[t]) for t in range(T)])
    jackknife = np.sqrt((T - 1) / T * np.square(without - without.mean()).sum())
    assert ours(log, "not uniform")["snips"].stderr == pytest.approx(jackknife, rel=0.02)


def test_effective_samples_count_equal_weights_and_discount_unequal_ones() -> None:
    assert effective_samples(np.full(50, 0.3)) == pytest.approx(50)
    assert effective_samples(np.array([1.0, 0.0, 0.0, 0.0])) == 1
    assert effective_samples(np.array([3.0, 1.0])) == pytest.approx(1.6)
    assert effective_samples(np.zeros(5)) == 0


def test_a_log_that_did_not_draw_uniformly_has_no_replay() -> None:
    found = ours(Feedback(), "not uniform")["replay"]
    assert (found.value, found.interval, found.refused) == (None, None, "not uniform")


def test_fewer_than_a_hundred_matches_or_effective_samples_give_no_value() -> None:
    log = Feedback()
    few = np.arange(T) < 99
    assert ours(log, few)["replay"].refused == "99 matches; 100 are needed"
    assert ours(log, np.arange(T) < 100)["replay"].value is not None
    weight = np.where(few, T / 99, 0.0)
    found = estimates(log.reward, weight, weight, weight, "not uniform")
    for name in ("ips", "snips", "dr"):
        assert found[name].value is None
        assert found[name].refused.startswith("worth 99 samples; 100 are needed")
    never = estimates(log.reward, np.zeros(T), weight, weight, "not uniform")
    assert never["snips"].refused.startswith("worth 0 samples")


def test_propensities_that_cannot_be_true_are_noticed() -> None:
    """The mean weight is 1 if they are; here they are all twice as large as they were."""
    log = Feedback()
    weight = log.action_dist[np.arange(T), log.action] / log.pscore
    assert not why_not_weights(weight)
    assert why_not_weights(weight / 2).startswith("weights are 0.5")
    assert not why_not_weights(np.ones(T)), "a policy that does what the log did"


def test_intervals_hold_what_they_say() -> None:
    """A small version of `python -m benchmarks.replay`: 200 logs, whose coverage has a standard error of 1.5%."""
    rows = list(simulated.coverages(runs=200, horizon=1000, seed=0))
    assert len(rows) == 17
    for row in rows:
        assert 0.905 <= row.inside <= 0.985, row
        assert abs(row.bias) < 3.5, row
        assert row.refused <= 2, row


def test_models_look_at_earlier_rounds_only() -> None:
    """Later rounds, and the reward of the round itself, change nothing: that is what keeps the estimate unbiased."""
    logs = simulated.with_features(4, 60, 0, uniform=True)
    other = simulated.with_features(4, 60, 1, uniform=True)
    model = torch.stack(list(expectations(logs.shape, logs.rounds)))
    mixed = torch.stack(list(expectations(logs.shape, [*logs.rounds[:30], *other.rounds[30:]])))
    assert torch.equal(model[:30], mixed[:30])
    assert not torch.equal(model[31:], mixed[31:])
    late = logs.rounds[29]
    changed = simulated.Round(late.observation, late.arm, late.reward + 5)
    after = torch.stack(list(expectations(logs.shape, [*logs.rounds[:29], changed, *logs.rounds[30:]])))
    assert torch.equal(after[:30], model[:30])
    assert not torch.equal(after[30], model[30])


def test_replay_of_a_learner_is_what_it_earns_in_service() -> None:
    """Li et al. (2011), Theorem 1: its first 150 matches are distributed as its first 150 rounds would be."""
    runs, rounds = 600, 150
    logs = simulated.with_change(runs, rounds * simulated.ARMS + 300, 5, uniform=True, swings=0)
    agent = make_agent("linucb")
    matched = torch.stack(list(in_replay(agent, logs.shape, logs.rounds, 0)), dim=1)  # [B, T]
    first = matched & (matched.cumsum(dim=1) <= rounds)
    assert (first.sum(dim=1) == rounds).all()
    reward = torch.stack([now.reward for now in logs.rounds], dim=1)
    replayed = (reward * first).sum(dim=1) / rounds  # [B]

    chances, rng, state = logs.values[0], torch.Generator().manual_seed(9), agent.init(logs.shape)
    earned = torch.zeros(runs)
    for now in logs.rounds[:rounds]:
        arm, info = agent.act(state, now.observation, None)  # type: ignore[arg-type]  # it draws nothing
        pays = (torch.rand(runs, generator=rng) < chances.gather(1, arm.unsqueeze(1)).squeeze(1)).float()
        state = agent.update(state, now.observation, arm, pays, info)
        earned += pays / rounds
    apart = replayed.mean() - earned.mean()
    stderr = ((replayed.var() + earned.var()) / runs).sqrt()
    assert abs(apart) < 3 * stderr, f"{apart} ± {stderr}"
    uniform = float(chances[0].mean())
    assert earned.mean() > uniform + 10 * stderr, "it does learn, so the test can fail"
