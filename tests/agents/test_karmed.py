"""Agents for K arms, each against the plain formula of its paper, choice by choice, and against one another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from driftformer.agents.base import ProblemShape
from driftformer.agents.beta_thompson import sample_beta, sample_gamma
from driftformer.agents.glr_kl_ucb import GLRKLUCB
from driftformer.agents.registry import AGENTS, make_agent
from driftformer.agents.ucb import upper
from driftformer.environments.registry import make_env
from driftformer.errors import InputError
from driftformer.problem import Observation
from driftformer.randomness import CHUNK, Randomness
from driftformer.simulation.rollout import rollout
from driftformer.simulation.trajectories import Trajectories

Vector = NDArray[np.float64]
Plays = Sequence[tuple[int, float]]  # (arm, reward) of each round so far
Index = Callable[[Plays, int], Vector]

ARMS, HORIZON = 4, 120
K_ARMED = ("ucb", "kl-ucb", "discounted-ucb", "sliding-window-ucb", "glr-kl-ucb", "beta-thompson")


def divergence(p: float, q: float) -> float:
    """kl(p, q) of Bernoulli variables, with 0·ln 0 = 0."""
    first = p * math.log(p / q) if p > 0 else 0.0
    second = (1 - p) * (math.log((1 - p) / (1 - q)) if q < 1 else math.inf) if p < 1 else 0.0
    return first + second


def plain_upper(p: float, level: float) -> float:
    """The largest q with kl(p, q) ≤ level, by bisection."""
    low, high = p, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(p, middle) <= level else (low, middle)
    return low


def weighted(plays: Plays, weights: Vector) -> tuple[Vector, Vector]:
    """Each arm's weighted plays and rewards."""
    n, paid = np.zeros(ARMS), np.zeros(ARMS)
    for (arm, reward), weight in zip(plays, weights, strict=True):
        n[arm] += weight
        paid[arm] += weight * reward
    return n, paid


def bounds(n: Vector, paid: Vector, level: float) -> Vector:
    """mean + √(level/N), infinite where an arm was never played."""
    return np.array([s / k + math.sqrt(level / k) if k > 0 else math.inf for k, s in zip(n, paid, strict=True)])


def ucb(plays: Plays, horizon: int) -> Vector:
    n, paid = weighted(plays, np.ones(len(plays)))
    return bounds(n, paid, 0.7 * math.log(max(len(plays), 2)))


def kl_ucb(plays: Plays, horizon: int) -> Vector:
    n, paid = weighted(plays, np.ones(len(plays)))
    t = max(len(plays), 2)
    level = math.log(t) + 3 * max(math.log(math.log(t)), 0)
    return np.array([plain_upper(paid[k] / n[k], level / n[k]) if n[k] else math.inf for k in range(ARMS)])


def discounted(plays: Plays, horizon: int) -> Vector:
    """D-UCB with γ = .9 and ξ = .6."""
    n, paid = weighted(plays, 0.9 ** np.arange(len(plays))[::-1])
    return bounds(n, paid, 4 * 0.6 * math.log(max(n.sum(), 2)))


def window(plays: Plays, horizon: int) -> Vector:
    """SW-UCB with W = 15 and ξ = .6."""
    n, paid = weighted(plays[-15:], np.ones(min(len(plays), 15)))
    return bounds(n, paid, 0.6 * math.log(max(min(len(plays), 15), 2)))


def played(spec: str, offered: float) -> tuple[Trajectories, NDArray[np.bool_]]:
    """Trajectories on changing Bernoulli arms, and what was on offer, `[T, B, A]`."""
    environment = make_env("bernoulli", arms=ARMS, horizon=HORIZON, offered=offered)
    seen = rollout(environment, make_agent(spec), seed=3, dtype=torch.float64, trajectories=True).trajectories
    assert seen is not None
    randomness, sets = Randomness(3, dtype=torch.float64), []
    world = environment.reset(randomness)
    for t in range(HORIZON):
        mask = world.observation.offered
        sets.append(np.ones((CHUNK, ARMS), bool) if mask is None else mask.numpy())
        if t + 1 < HORIZON:
            _, _, world = environment.step(world, seen.arms[:, t].long(), randomness)
    return seen, np.array(sets)


@pytest.mark.parametrize(
    ("spec", "plain"),
    [
        ("ucb@alpha=0.7", ucb),
        ("kl-ucb@c=3", kl_ucb),
        ("discounted-ucb@gamma=0.9,xi=0.6", discounted),
        ("sliding-window-ucb@window=15,xi=0.6", window),
    ],
)
@pytest.mark.parametrize("offered", [1.0, 0.6])
def test_it_makes_the_choices_of_the_plain_formula(spec: str, plain: Index, offered: float) -> None:
    seen, sets = played(spec, offered)
    assert seen.auxiliary_values is not None
    for b in range(6):
        plays: list[tuple[int, float]] = []
        for t in range(HORIZON):
            index = np.where(sets[t, b], plain(plays, HORIZON), -math.inf)
            arm = int(seen.arms[b, t])
            if math.isinf(index.max()):
                assert arm == int(index.argmax()), "the first offered arm that was never played"
                assert seen.auxiliary_values[b, t].isfinite()
            else:
                assert index[arm] == pytest.approx(index.max(), abs=1e-9)
            if index[arm] <= 1:
                assert seen.auxiliary_values[b, t].item() == pytest.approx(index[arm], abs=1e-9)
            plays.append((arm, float(seen.rewards[b, t])))


@pytest.mark.parametrize("restarts", ["local", "global"])
@pytest.mark.parametrize("offered", [1.0, 0.6])
def test_glr_kl_ucb_makes_the_choices_of_its_paper_and_restarts_when_it_does(restarts: str, offered: float) -> None:
    """A low threshold (δ₀ = 20) and much exploration, so that 120 rounds hold restarts and forced rounds."""
    every = 3
    seen, sets = played(f"glr-kl-ucb@restarts={restarts},exploration=0.8,delta=20,every={every}", offered)
    total = 0
    for b in range(20):
        rewards: list[list[float]] = [[] for _ in range(ARMS)]
        since, episode = [0] * ARMS, 1
        for t in range(HORIZON):
            arm = int(seen.arms[b, t])
            share = min(0.8 * math.sqrt(episode * ARMS * math.log(HORIZON) / HORIZON), 1.0)
            turn = t % math.floor(ARMS / share)
            if turn < ARMS and sets[t, b, turn]:
                assert arm == turn, "a forced round"
            else:
                index = np.full(ARMS, -math.inf)
                for k in np.flatnonzero(sets[t, b]):
                    n = len(rewards[k])
                    level = math.log(max(t - since[k], 2))
                    index[k] = plain_upper(sum(rewards[k]) / n, level / n) if n else math.inf
                assert index[arm] >= index.max() - 1e-9
            history = rewards[arm]
            history.append(float(seen.rewards[b, t]))
            n, mean = len(history), sum(history) / len(history)
            statistic = -math.inf
            for s in range(every, n, every):
                before, after = sum(history[:s]) / s, sum(history[s:]) / (n - s)
                apart = 0.0 if mean in (0, 1) else s * divergence(before, mean) + (n - s) * divergence(after, mean)
                statistic = max(statistic, apart)
            changed = n % every == 0 and statistic >= math.log(3 * n**1.5 * math.sqrt(HORIZON) / 20)
            if t + 1 < HORIZON:
                assert bool(seen.events["restarted"][b, t + 1]) == changed
            if changed:
                total, episode = total + 1, episode + 1
                for k in range(ARMS) if restarts == "global" else [arm]:
                    rewards[k], since[k] = [], t + 1
    assert total > 10, "nothing was tested"


@pytest.mark.parametrize("offered", [1.0, 0.6])
def test_beta_thompson_plays_the_highest_draw_from_the_discounted_posterior(offered: float) -> None:
    """Its draws are made again from the same stream and the plainly discounted counts."""
    seen, sets = played("beta-thompson@gamma=0.9", offered)
    rng = Randomness(3, dtype=torch.float64).stream("agent")
    successes, failures = np.zeros((CHUNK, ARMS)), np.zeros((CHUNK, ARMS))
    rows = np.arange(CHUNK)
    for t in range(HORIZON):
        draws = sample_beta(torch.from_numpy(successes + 1), torch.from_numpy(failures + 1), rng).numpy()
        arm = seen.arms[:, t].numpy()
        assert (arm == np.where(sets[t], draws, -1).argmax(axis=1)).all()
        reward = seen.rewards[:, t].numpy()
        successes, failures = 0.9 * successes, 0.9 * failures
        successes[rows, arm] += reward
        failures[rows, arm] += 1 - reward


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (1.0, 4.5), (2.3, 1.0), (7.0, 30.0), (800.0, 1200.0)])
def test_beta_draws_have_the_beta_distribution(a: float, b: float) -> None:
    """Kolmogorov–Smirnov against 2 million of NumPy's own draws: 1.95·√(1/n + 1/m) is exceeded once in a thousand."""
    size = 640 * 200
    drawn = sample_beta(torch.full((640, 200), a), torch.full((640, 200), b), Randomness(5, range(10)).stream("x"))
    ours = np.sort(drawn.double().numpy().ravel())
    reference = np.sort(np.random.default_rng(0).beta(a, b, 2_000_000))
    ranks = np.searchsorted(reference, ours, side="right") / len(reference)
    distance = np.abs(ranks - (np.arange(size) + 0.5) / size).max()
    assert distance < 1.95 * math.sqrt(1 / size + 1 / len(reference)) + 0.5 / size


def test_a_gamma_draw_takes_its_next_proposal_where_one_is_turned_down() -> None:
    """For shape 1, about 4.8% of first proposals are; the mean and variance are then still 1, within five errors."""
    drawn = sample_gamma(torch.ones(640, 400), Randomness(2, range(10)).stream("x")).double()
    assert drawn.mean().item() == pytest.approx(1, abs=5 / math.sqrt(drawn.numel()))
    assert drawn.var().item() == pytest.approx(1, abs=5 * math.sqrt(8 / drawn.numel()))


@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 5e-6), (torch.float64, 1e-7)])
def test_the_kl_bound_is_solved_for_all_means_and_levels(dtype: torch.dtype, error: float) -> None:
    means = [0.0, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999]
    levels = [1e-4, 1e-3, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0]
    p, level = (grid.flatten() for grid in torch.meshgrid(torch.tensor(means), torch.tensor(levels), indexing="ij"))
    found = upper(p.to(dtype), level.to(dtype)).double()
    wanted = [plain_upper(float(x.to(dtype)), float(y.to(dtype))) for x, y in zip(p, level, strict=True)]
    assert (found - torch.tensor(wanted, dtype=torch.float64)).abs().max().item() < error


@pytest.mark.parametrize("name", ["greedy", "epsilon-greedy"])
@pytest.mark.parametrize("env", ["bernoulli", "high"])
def test_greedy_agents_play_the_best_estimate_of_ridge_regression(name: str, env: str) -> None:
    """ε-greedy differs from it in about ε of the rounds, less those where the random arm is the best one."""
    environment = make_env(env, horizon=HORIZON, arms=ARMS) if env == "bernoulli" else make_env(env, horizon=HORIZON)
    seen = rollout(environment, make_agent(name), seed=1, dtype=torch.float64, trajectories=True).trajectories
    assert seen is not None
    randomness, dim = Randomness(1, dtype=torch.float64), environment.dim
    world = environment.reset(randomness)
    gram, moment = np.tile(np.eye(dim), (8, 1, 1)), np.zeros((8, dim))
    apart = 0
    for t in range(HORIZON):
        for b in range(8):
            x, arm = world.observation.action_set[b].numpy(), int(seen.arms[b, t])
            estimates = x @ np.linalg.solve(gram[b], moment[b])
            apart += estimates[arm] < estimates.max() - 1e-9
            gram[b] += np.outer(x[arm], x[arm])
            moment[b] += x[arm] * float(seen.rewards[b, t])
        if t + 1 < HORIZON:
            _, _, world = environment.step(world, seen.arms[:, t].long(), randomness)
    if name == "greedy":
        assert apart == 0
    else:
        assert 0.03 < apart / (8 * HORIZON) < 0.12


def regret(spec: str, **world: object) -> float:
    runs = rollout(make_env("bernoulli", **world), make_agent(spec), chunks=range(2)).regrets
    return float(np.concatenate([chunk.regret for chunk in runs]).mean())


def test_on_arms_that_stay_kl_ucb_beats_ucb_beats_chance() -> None:
    """128 problems with standard errors below 5: the gaps are many times as wide."""
    world = {"horizon": 1000, "change": "stationary"}
    kl, plain, chance = (regret(spec, **world) for spec in ("kl-ucb", "ucb", "random"))
    assert kl < 0.7 * plain < 0.3 * chance


def test_where_arms_jump_forgetting_and_detection_beat_their_stationary_kin() -> None:
    """Three arms, T=2000, 5 jumps, 128 problems: standard errors of the differences are below 10, the gaps from 20."""
    world = {"horizon": 2000, "arms": 3, "change": "jumps", "changes": 5}
    plain = regret("ucb@alpha=0.5", **world)
    assert regret("sliding-window-ucb@window=200", **world) < 0.85 * plain
    assert regret("discounted-ucb@gamma=0.99,xi=0.125", **world) < 0.95 * plain
    assert regret("glr-kl-ucb", **world) < 0.8 * regret("kl-ucb", **world)
    assert regret("beta-thompson@gamma=0.99", **world) < 0.7 * regret("beta-thompson", **world)


@pytest.mark.parametrize("agent", K_ARMED)
def test_it_refuses_arms_with_features_in_words(agent: str) -> None:
    with pytest.raises(InputError, match=f"'{agent}' cannot play 'high': .* arms must have no features"):
        rollout(make_env("high"), make_agent(agent))


@pytest.mark.parametrize("agent", K_ARMED)
@pytest.mark.parametrize("wrapper", ["master@base={}", "restart@base={},every=60", "detection@base={},noise=0.5"])
def test_it_plays_wrapped_and_its_auxiliary_value_is_finite(agent: str, wrapper: str) -> None:
    environment = make_env("bernoulli", horizon=150, arms=ARMS, offered=0.7)
    seen = rollout(environment, make_agent(wrapper.format(agent)), trajectories=True).trajectories
    assert seen is not None
    assert seen.auxiliary_values is not None
    assert bool(seen.auxiliary_values.isfinite().all())


@pytest.mark.parametrize("agent", K_ARMED)
def test_a_batch_plays_as_its_chunks_do(agent: str) -> None:
    """No problem looks at another, and every round takes the same number of draws."""
    environment = make_env("bernoulli", horizon=200)
    both = rollout(environment, make_agent(agent), chunks=[0, 1], trajectories=True).trajectories
    alone = rollout(environment, make_agent(agent), chunks=[1], trajectories=True).trajectories
    assert both is not None
    assert alone is not None
    assert torch.equal(both.arms[CHUNK:], alone.arms)


def test_rewards_beyond_the_unit_interval_leave_every_index_finite() -> None:
    rewards = torch.randn(CHUNK, 80, generator=torch.Generator().manual_seed(0)) * 5
    arms = torch.arange(80).remainder(ARMS).expand(CHUNK, -1)
    sight = Observation(torch.eye(ARMS).expand(CHUNK, -1, -1))
    for name in K_ARMED:
        agent, rng = make_agent(name), Randomness(0).stream("agent")
        state = agent.init(ProblemShape(CHUNK, 80, ARMS, ARMS, torch.device("cpu"), torch.float32))
        for t in range(80):
            _, info = agent.act(state, sight, rng)
            state = agent.update(state, sight, arms[:, t], rewards[:, t], info)
        assert bool(info.auxiliary_value.isfinite().all()), name


def test_what_glr_kl_ucb_would_keep_is_bounded() -> None:
    shape = ProblemShape(640, 10**8, 10, 10, torch.device("cpu"), torch.float32)
    with pytest.raises(InputError, match="every is 10; with horizon 100000000 and 10 arms"):
        GLRKLUCB().init(shape)


def test_their_options_are_listed_with_their_defaults() -> None:
    for name in (*K_ARMED, "greedy", "epsilon-greedy"):
        agent = make_agent(name)
        assert {option: getattr(agent, option) for option in AGENTS[name].options} == AGENTS[name].options
