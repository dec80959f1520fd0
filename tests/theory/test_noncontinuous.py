"""MASTER by weights against the MASTER agent, round by round, with the same random numbers."""

from __future__ import annotations

import pytest
import torch

from driftformer.agents.linucb import LinUCB
from driftformer.agents.master import Master
from driftformer.theory.beside_agent import agent_rounds, problem
from driftformer.theory.constructions import sums
from driftformer.theory.network import build, run
from driftformer.theory.noncontinuous import rollout
from driftformer.theory.tokens import Layout, empty_tokens


@pytest.mark.parametrize("test_scale", [1.0, 0.01, 0.001])
@pytest.mark.parametrize("seed", range(4))
def test_the_network_does_what_master_does(seed: int, test_scale: float) -> None:
    horizon = 40
    master = Master(base=LinUCB(), test_scale=test_scale)
    one = problem(horizon, seed)
    by_weights = rollout(master, one.features, one.noise, one.pay)
    by_agent = agent_rounds(master, one, [each.coins for each in by_weights])
    assert [t for t in range(horizon) if by_weights[t] != by_agent[t]] == []
    restarts = sum(one.failed for one in by_weights)
    assert restarts > 0 if test_scale == 0.001 else restarts < horizon / 2


@pytest.mark.parametrize("n", [0, 1, 3, 6])
def test_sums_over_all_rounds_and_over_windows(n: int) -> None:
    layout = Layout(n, d=1)
    tokens = empty_tokens(layout, 16)
    generator = torch.Generator().manual_seed(n)
    rewards, hopes = torch.randn(2, 16, layout.rounds, generator=generator, dtype=torch.double)
    tokens[..., layout.place("reward")], tokens[..., layout.place("hope")] = rewards, hopes
    out = run(build([sums.build(layout)], layout.width), tokens)
    assert float((out[..., layout.place("reward_sum")] - sums.reference(rewards)).abs().max()) < 1e-9
    assert float((out[..., layout.place("auxiliary_sum")] - sums.reference(hopes)).abs().max()) < 1e-9
    for order in layout.orders:
        expected = sums.reference(rewards, 2**order)
        assert float((out[..., layout.place("window_sum", order)] - expected).abs().max()) < 1e-9
