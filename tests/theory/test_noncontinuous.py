"""MASTER by weights against the MASTER agent, round by round, with the same random numbers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from driftformer.agents.base import ProblemShape
from driftformer.agents.linucb import LinUCB
from driftformer.agents.master import Master
from driftformer.theory.constructions import sums
from driftformer.theory.network import build, run
from driftformer.theory.noncontinuous import Round, rollout
from driftformer.theory.tokens import Layout, empty_tokens


class Given:
    """A stream that hands out prepared numbers, one row a round."""

    def __init__(self, rows: list[Tensor]) -> None:
        self._rows = iter(rows)

    def uniform(self, count: int) -> Tensor:
        row = next(self._rows)
        return torch.nn.functional.pad(row, (0, count - len(row)), value=1.0).unsqueeze(0)


def agent_rounds(master: Master, features: Tensor, coins: list[Tensor], pay: object) -> list[dict[str, float]]:
    """The same problem played by the agent itself."""
    horizon, arms, dim = features.shape
    state = master.init(ProblemShape(1, horizon, arms, dim, features.device, features.dtype))
    stream, seen = Given(coins), []
    for t in range(horizon):
        offered = features[t].unsqueeze(0)
        arm, info = master.act(state, offered, stream)  # type: ignore[arg-type]
        before = state
        reward = torch.tensor([pay(t, int(arm))], dtype=torch.double)  # type: ignore[operator]
        n, hope = int(before.n), float(info.auxiliary_value)
        lowest = min(float(before.lowest), hope)
        earned, hoped = float(before.earned + reward), float(before.hoped) + hope - float(reward)
        state = master.update(state, offered, arm, reward, info)
        seen.append(
            {
                "n": n,
                "order": int(state.happened.order),
                "arm": int(arm),
                "lowest": lowest,
                "earned": earned,
                "hoped": hoped,
                "failed": bool(state.happened.failed),
            }
        )
    return seen


@pytest.mark.parametrize("test_scale", [1.0, 0.01, 0.001])
@pytest.mark.parametrize("seed", range(4))
def test_the_network_does_what_master_does(seed: int, test_scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    horizon, arms, dim = 40, 4, 3
    master = Master(base=LinUCB(), test_scale=test_scale)
    features = torch.rand(horizon, arms, dim, generator=generator, dtype=torch.double) * 2 - 1
    noise = torch.rand(horizon, horizon.bit_length(), generator=generator, dtype=torch.double)
    w = torch.randn(2, dim, generator=generator, dtype=torch.double)
    errors = torch.randn(horizon, generator=generator, dtype=torch.double) * 0.3

    def pay(t: int, arm: int) -> float:
        return float(features[t, arm] @ w[t * 2 // horizon] + errors[t])  # w changes halfway

    by_weights = rollout(master, features, noise, pay)
    by_agent = agent_rounds(master, features, [one.coins for one in by_weights], pay)
    for t, (one, other) in enumerate(zip(by_weights, by_agent, strict=True)):
        assert (one.n, one.order, one.arm, one.failed) == tuple(
            other[key] for key in ("n", "order", "arm", "failed")
        ), t
        for key in ("lowest", "earned", "hoped"):
            assert getattr(one, key) == pytest.approx(other[key], abs=1e-8), (t, key)
    restarts = sum(one.failed for one in by_weights)
    assert restarts > 0 if test_scale == 0.001 else restarts < horizon / 2
    assert isinstance(by_weights[0], Round)


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
