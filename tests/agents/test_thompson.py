"""Thompson sampling: the right distribution, and greedy on the sample it drew."""

from __future__ import annotations

import numpy as np
import torch

from driftformer.agents.base import ProblemShape
from driftformer.agents.thompson import Thompson, draw
from driftformer.problem import Observation
from driftformer.randomness import Randomness
from tests.plain import PlainRidge


def trained(size: int, dtype: torch.dtype = torch.float64) -> tuple[Thompson, object, PlainRidge]:
    """The same twenty observations in every problem of a batch, and the closed form of them."""
    agent, rng = Thompson(variance=0.3, ridge=2.0), np.random.default_rng(0)
    state = agent.init(ProblemShape(size, 20, 1, 4, torch.device("cpu"), dtype))
    plain, unused = PlainRidge(4, ridge=2.0), Randomness(0, size=size, dtype=dtype).stream("agent")
    for _ in range(20):
        x, reward = rng.uniform(-1, 1, 4), float(rng.normal())
        plain.learn(x, reward)
        offered = torch.tensor(x, dtype=dtype).expand(size, 1, 4).contiguous()
        arm, info = agent.act(state, Observation(offered), unused)
        state = agent.update(state, Observation(offered), arm, torch.full((size,), reward, dtype=dtype), info)
    return agent, state, plain


def test_samples_have_the_posteriors_mean_and_covariance() -> None:
    _, state, plain = trained(40_000)
    samples = draw(state, Randomness(7, size=40_000, dtype=torch.float64).stream("z").normal(4), 0.3**0.5).numpy()
    covariance = 0.3 * plain.inverse
    # five standard errors of 40,000 samples, of the mean and of each entry of the covariance
    spread = np.sqrt(np.diag(covariance))
    assert (np.abs(samples.mean(axis=0) - plain.theta) < 5 * spread / 200).all()
    assert (np.abs(np.cov(samples.T) - covariance) < 5 * np.sqrt(2) * np.outer(spread, spread) / 200).all()


def test_the_choice_is_greedy_on_the_sample_and_its_value_is_the_auxiliary_value() -> None:
    agent, state, _ = trained(64)
    offered = Randomness(3, dtype=torch.float64).stream("x").symmetric(5, 4)
    sampled = draw(state, Randomness(9, dtype=torch.float64).stream("agent").normal(4), 0.3**0.5)
    arm, info = agent.act(state, Observation(offered), Randomness(9, dtype=torch.float64).stream("agent"))
    scores = torch.einsum("bad,bd->ba", offered, sampled)
    assert torch.equal(arm, scores.argmax(dim=1))
    assert torch.allclose(info.auxiliary_value, scores.max(dim=1).values)


def test_without_variance_it_is_greedy_ridge_regression() -> None:
    _, state, plain = trained(64)
    offered = Randomness(3, dtype=torch.float64).stream("x").symmetric(5, 4)
    arm, _ = Thompson(variance=0.0, ridge=2.0).act(
        state, Observation(offered), Randomness(9, dtype=torch.float64).stream("agent")
    )
    assert np.array_equal(arm.numpy(), (offered.numpy() @ plain.theta).argmax(axis=1))
