"""The network that is Thompson sampling: alone, in MASTER, and its reference against the agent of the same name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
import torch

from driftformer.agents.base import Agent, ProblemShape
from driftformer.agents.thompson import Thompson
from driftformer.problem import Observation
from driftformer.randomness import Stream
from driftformer.theory.noncontinuous import NonContinuous
from driftformer.theory.play import play_by_network, play_with_agent, problems
from driftformer.theory.regression import spectrum
from driftformer.theory.thompson import SoftThompson, SymmetricThompson, inverse_root_series


@pytest.mark.parametrize(("variance", "test_scale"), [(0.3, 0.003), (2.0, 1.0)])
def test_in_the_one_network_it_does_what_master_does(variance: float, test_scale: float) -> None:
    network = NonContinuous(SoftThompson(d=2, arms=3, variance=variance), 12, test_scale=test_scale, burn_in=16)
    given = problems(network, range(8))
    by_network, flips = play_by_network(network, given)
    by_agent = play_with_agent(network, given, flips)
    assert bool(by_network.same_choices(by_agent).all())
    assert by_network.largest_difference(by_agent) < 1e-5


def test_more_steps_make_it_closer() -> None:
    differences = []
    for error in (1e-1, 1e-3, 1e-6):
        network = NonContinuous(SoftThompson(d=2, arms=3), 7, burn_in=8, error=error)
        given = problems(network, range(6))
        by_network, flips = play_by_network(network, given)
        by_agent = play_with_agent(network, given, flips)
        differences.append(float((by_network.log_probabilities - by_agent.log_probabilities)[:, 0].abs().max()))
    assert differences[0] > differences[1] > differences[2]
    assert differences[2] < 1e-5


def test_the_series_is_the_inverse_root() -> None:
    low, high = spectrum(1.0, 3, 40)
    places = torch.linspace(low, high, 1001, dtype=torch.double)
    mapped = (2 * places - (high + low)) / (high - low)
    terms = inverse_root_series(low, high, 120)
    made = sum(c * torch.cos(k * torch.acos(mapped.clamp(-1, 1))) for k, c in enumerate(terms))
    assert float((made - places.rsqrt()).abs().max()) < 1e-6


def test_with_either_root_arms_are_played_as_often() -> None:
    """The same history in 40,000 problems, each with noise of its own; shares vary by 0.0025."""
    batch, arms, dim = 40_000, 4, 3
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.double)

    history = [(normal(1, arms, dim).expand(batch, -1, -1), int(t) % arms, float(normal(1))) for t in range(6)]
    offered = normal(1, arms, dim).expand(batch, -1, -1)
    shares = []
    agents: tuple[Agent, ...] = (Thompson(variance=0.5), SymmetricThompson(variance=0.5))
    for agent in agents:
        state = agent.init(ProblemShape(batch, 10, arms, dim, offered.device, offered.dtype))
        stream = cast(Stream, SimpleNamespace(normal=lambda count: normal(batch, count)))
        for features, arm, reward in history:
            observation = Observation(features)
            _, info = agent.act(state, observation, stream)
            played = torch.full((batch,), arm), torch.full((batch,), reward, dtype=torch.double)
            state = agent.update(state, observation, *played, info)
        drawn, _ = agent.act(state, Observation(offered), stream)
        shares.append(torch.bincount(drawn, minlength=arms) / batch)
    assert float((shares[0] - shares[1]).abs().max()) < 0.015
    assert float(shares[0].max()) < 0.9, "several arms are played"
