"""Each drift does what its name says, exactly, and drifts compose."""

from __future__ import annotations

import dataclasses
import functools
import json
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import driftformer as df
from driftformer.agents.registry import make_agent
from driftformer.environments import drift
from driftformer.environments.registry import make_env
from driftformer.errors import InputError
from driftformer.randomness import Randomness
from driftformer.simulation.rollout import rollout
from driftformer.storage.fingerprint import is_identified
from tests.environments.test_linear import worlds


def path(rounds: list[Any]) -> Tensor:
    return torch.stack([world.effect.w for world in rounds], dim=1)  # [B, T, d]


def test_jumps_redraw_w_at_the_given_rounds_only_and_say_so() -> None:
    rounds = worlds("jumps", horizon=30, times=(7, 20))
    w = path(rounds)
    changed = (w[:, 1:] != w[:, :-1]).all(dim=-1)
    for t in range(2, 31):
        assert bool(changed[:, t - 2].all()) == (t in (7, 20))
        assert bool(rounds[t - 1].effect.redrawn.all()) == (t in (7, 20))
    assert w.min() >= 0
    assert w.max() <= 1


def test_random_jumps_come_as_often_as_asked_at_rounds_that_differ_between_problems() -> None:
    rounds = worlds("jumps", horizon=40, changes=6)
    flags = torch.stack([world.effect.redrawn for world in rounds], dim=1)  # [B, T]
    assert torch.equal(flags.sum(dim=1), torch.full((64,), 6))
    assert not bool(flags[:, 0].any())
    assert torch.equal((path(rounds)[:, 1:] != path(rounds)[:, :-1]).all(dim=-1), flags[:, 1:])
    assert len({tuple(row.nonzero().flatten().tolist()) for row in flags}) > 50


def test_random_jumps_may_fill_every_round() -> None:
    rounds = worlds("jumps", horizon=5, changes=4)
    assert all(bool(world.effect.redrawn.all()) for world in rounds[1:])


def test_random_jump_times_are_uniform() -> None:
    """64·8 problems, 3 of 9 rounds each: a round is hit with probability 1/3, checked to five standard errors."""
    hits = torch.zeros(10)
    for seed in range(8):
        hits += torch.stack([w.effect.redrawn for w in worlds("jumps", seed, horizon=10, changes=3)]).sum(dim=1)
    share = hits[1:] / 512
    assert float((share - 1 / 3).abs().max()) < 5 * (2 / 9 / 512) ** 0.5


@pytest.mark.parametrize("motion", ["random", "rotate"])
def test_walks_spend_their_budget_exactly(motion: str) -> None:
    w = path(worlds("walk", horizon=50, budget=4.0, motion=motion))
    steps = (w[:, 1:] - w[:, :-1]).norm(dim=-1)
    assert torch.allclose(steps.sum(dim=1), torch.full((64,), 4.0, dtype=torch.float64))
    assert torch.allclose(steps, torch.full_like(steps, 4.0 / 49))


def test_a_rotation_keeps_the_length_of_w() -> None:
    w = path(worlds("walk", horizon=50, budget=9.0, motion="rotate"))
    assert torch.allclose(w.norm(dim=-1), w[:, :1].norm(dim=-1).expand(-1, 50))


def test_seasons_return_after_a_period_and_share_the_weight() -> None:
    rounds = worlds("seasonal", horizon=61, period=20.0, seasons=3)
    w = path(rounds)
    assert torch.allclose(w[:, :40], w[:, 20:60])
    # The weights sum to one, so a mixture of w in [0,1]^d stays there, and its mean over a period is the seasons' mean.
    assert w.min() >= 0
    assert w.max() <= 1
    seasons = torch.cat([rounds[0].origin.w.unsqueeze(1), rounds[0].memory], dim=1)
    assert torch.allclose(w[:, :20].mean(dim=1), seasons.mean(dim=1))


def test_two_seasons_alternate_between_their_own_parameters() -> None:
    rounds = worlds("seasonal", horizon=40, period=20.0, seasons=2)
    assert torch.allclose(rounds[19].effect.w, rounds[0].origin.w)
    assert torch.allclose(rounds[9].effect.w, rounds[0].memory[:, 0])


def test_drifts_compose_in_order() -> None:
    lifted_then_scaled = drift.Compose((drift.Elevated(((1, 9),), 2.0), drift.Cosine(b=0.5)))
    scaled_then_lifted = drift.Compose((drift.Cosine(b=0.5), drift.Elevated(((1, 9),), 2.0)))
    for order, shift in ((lifted_then_scaled, -2.0), (scaled_then_lifted, 2.0)):
        world = make_env("stationary", horizon=3, drift=order).reset(Randomness(0))
        assert torch.allclose(world.effect.scale, torch.tensor(-1.0))  # cos(π)
        assert torch.allclose(world.effect.shift, torch.tensor(shift))


def test_a_users_function_moves_w() -> None:
    environment = make_env("stationary", horizon=4, drift=lambda t, w: w * t)
    randomness = Randomness(0)
    world = environment.reset(randomness)
    third = environment.advance(environment.advance(world, randomness), randomness)
    assert torch.allclose(third.effect.w, world.origin.w * 3)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda t, w: w / (t - 3), r"<lambda>\(3, w\) returned NaN or infinite numbers"),
        (
            lambda t, w: w[:, :1],
            r"returned a .* tensor \[64, 1\]; return w_t as a .* tensor \[64, 32\]",
        ),
        (lambda t, w: w.double(), "returned a torch.float64 tensor"),
        (lambda t, w: 1.0, "returned float; return w_t as a torch.float32 tensor"),
    ],
)
def test_a_users_function_that_goes_wrong_is_named(function: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rollout(make_env("stationary", horizon=5, drift=function), make_agent("linucb"))


def test_a_users_drift_object_that_makes_rewards_infinite_is_named_by_its_round() -> None:
    class Exploding(drift.Stationary):
        def at(self, t: int, effect: drift.Effect, memory: None, rng: Any) -> tuple[drift.Effect, None]:
            return dataclasses.replace(effect, shift=effect.shift + (float("inf") if t == 7 else 0.0)), None

    with pytest.raises(InputError, match="values are NaN or infinite in round 7"):
        rollout(make_env("stationary", horizon=9, drift=Exploding()), make_agent("linucb"))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("jumps", {"changes": 10, "horizon": 10}, "changes is 10; at most horizon - 1 = 9"),
        ("jumps", {"times": (1,)}, "times .* is 1; give a whole number of at least 2"),
        ("jumps", {"times": (5, 5)}, "give each round of a change once"),
        ("walk", {"budget": -1.0}, "budget is -1.0; give a finite number of at least 0"),
        ("walk", {"budget": 1e9, "motion": "rotate"}, "cannot turn that far"),
        ("walk", {"dim": 1, "motion": "rotate"}, "dim is 1; a rotation needs a plane"),
        ("seasonal", {"period": 0.0}, "period is 0.0; give a finite number of at least 1e-06"),
        ("seasonal", {"seasons": 1}, "seasons is 1; give a whole number of at least 2"),
        ("high", {"b": float("inf")}, "b is inf; give a finite number"),
        ("low", {"windows": ((9, 3),)}, "windows' last round is 3; give a whole number of at least 9"),
    ],
)
def test_impossible_drifts_are_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_env(name, **options).reset(Randomness(0))


def test_a_drift_cannot_be_replaced_and_configured_at_once() -> None:
    with pytest.raises(InputError, match="b belongs to the drift of 'high', which drift= replaces"):
        make_env("high", b=0.1, drift=lambda t, w: w)


def test_a_function_that_works_in_place_does_not_pile_up() -> None:
    def shove(t: int, w: Tensor) -> Tensor:
        w += 0.1
        return w

    environment, randomness = make_env("stationary", horizon=5, drift=shove), Randomness(0)
    world = environment.reset(randomness)
    drawn = world.origin.w.clone()
    for _ in range(4):
        world = environment.advance(world, randomness)
        assert torch.allclose(world.effect.w, drawn + 0.1)


def test_a_jump_after_another_drift_keeps_what_that_one_moved() -> None:
    walk = drift.RandomWalk(2.0)
    both = make_env("stationary", horizon=12, drift=drift.Compose((walk, drift.Jumps(times=(6,)))))
    alone = make_env("stationary", horizon=12, drift=walk)
    ours, theirs = (Randomness(2, dtype=torch.float64) for _ in range(2))
    world, same = both.reset(ours), alone.reset(theirs)
    assert torch.allclose(world.effect.w, same.effect.w)
    before = world.effect.w
    for t in range(2, 13):
        world = both.advance(world, ours)
        step = (world.effect.w - before).norm(dim=1)
        before = world.effect.w
        assert bool((step > 0.5).all()) == (t == 6)
        assert t == 6 or torch.allclose(step, torch.full_like(step, 2.0 / 11))
    assert not both.traits.linear
    assert make_env("stationary", drift=drift.Compose((drift.Cosine(0.1), drift.Jumps()))).traits.linear
    assert not make_env("stationary", drift=drift.Compose((drift.Jumps(), drift.Jumps()))).traits.linear


def scaled(t: int, w: Tensor, factor: float) -> Tensor:
    return w * factor


class Wobble:
    """A drift that is no dataclass."""

    def __init__(self, size: float) -> None:
        self.size = size

    def start(self, start: drift.Start) -> None:
        return None

    def at(self, t: int, effect: drift.Effect, memory: None, rng: Any) -> tuple[drift.Effect, None]:
        return dataclasses.replace(effect, w=effect.w * self.size), None


def closing_over(factor: object) -> Any:
    return lambda t, w: w * factor


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (lambda t, w: w * 2, lambda t, w: w * 3),
        (lambda t, w: w.sin(), lambda t, w: w.cos()),
        (closing_over(2.0), closing_over(3.0)),
        (closing_over(torch.tensor([1.0])), closing_over(torch.tensor([2.0]))),
        (functools.partial(scaled, factor=2.0), functools.partial(scaled, factor=3.0)),
        (lambda t, w, factor=2.0: w * factor, lambda t, w, factor=3.0: w * factor),
        (Wobble(2.0), Wobble(3.0)),
        (drift.Jumps(times=[3, 4]), drift.Jumps(times=[2, 9])),
        (drift.Compose([drift.Cosine(0.1)]), drift.Compose([drift.Cosine(0.2)])),
        (drift.Elevated([[3, 4]], 1.0), drift.Elevated([[3, 5]], 1.0)),
    ],
)
def test_the_config_tells_drifts_apart(one: Any, two: Any) -> None:
    first, second, again = (make_env("stationary", drift=each).config() for each in (one, two, one))
    assert first == again
    assert first["drift"] != second["drift"]
    assert is_identified(first)
    json.dumps(first)


def test_what_cannot_be_identified_is_played_but_not_stored(tmp_path: Path) -> None:
    environment = make_env("stationary", horizon=5, drift=closing_over(threading.Lock()))
    assert not is_identified(environment.config())
    with pytest.raises(InputError, match="cannot be told apart from others of its kind"):
        df.evaluate(environment, ["random"], runs=2, out=tmp_path / "X")


def test_a_users_drift_object_needs_only_its_two_methods() -> None:
    environment = make_env("stationary", horizon=5, drift=Wobble(1.5))
    assert environment.name == "stationary+Wobble"
    assert "stationary+Wobble" in df.evaluate(environment, ["linucb"], runs=2).table()
    with pytest.raises(InputError, match="agent 'oracle' cannot play 'stationary\\+Wobble'"):
        df.rollout(environment, "oracle")
