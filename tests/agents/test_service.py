"""A policy that reads statistics at work: one live problem, whatever comes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from driftformer.agents.incontext import load_policy
from driftformer.agents.services.online import Online as Service
from driftformer.environments.linear import LinearBandit
from driftformer.errors import InputError
from driftformer.models.bank import MOST_DIM
from driftformer.models.checkpoints import save_policy
from driftformer.randomness import Randomness
from driftformer.simulation.rollout import rollout
from driftformer.simulation.tape import lay_out
from tests.models.test_query import make_policy

DIM = 5
Array = np.ndarray


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("policy")
    save_policy(make_policy(), folder, torch.float32)
    return str(folder)


def begin(source: str, **options: object) -> Service:
    service = load_policy(source).online(**options)  # type: ignore[arg-type]
    assert isinstance(service, Service)
    return service


def offer(rng: np.random.Generator, arms: int = 4) -> Array:
    return rng.uniform(-1, 1, (arms, DIM))


def test_it_plays_what_the_agent_plays_in_a_rollout(source: str) -> None:
    environment, greedy = LinearBandit(horizon=60, dim=DIM, arms=4), f"{source}"
    played = rollout(environment, f"policy:{greedy}@mode=greedy", trajectories=True).trajectories
    assert played is not None
    tape = lay_out(environment, Randomness(0))
    service = load_policy(source, mode="greedy").online()
    arms = []
    for t in range(60):
        arms.append(service.act(tape.features[3, t].numpy()))
        service.update(float(played.rewards[3, t]))
        if arms[-1] != int(played.arms[3, t]):
            break
    assert arms == played.arms[3].tolist()


def test_probabilities_are_those_it_draws_with_and_asking_changes_nothing(source: str) -> None:
    rng, service, silent = np.random.default_rng(0), begin(source), begin(source)
    for _ in range(10):
        offered, reward = offer(rng), rng.normal()
        likely = service.probabilities(offered)
        assert likely.sum() == pytest.approx(1)
        service.probabilities(offered * 100)
        assert service.act(offered) == silent.act(offered)
        for one in (service, silent):
            one.update(reward)
    counts = np.bincount([begin(source, seed=seed).act(offered) for seed in range(400)], minlength=4) / 400
    assert abs(counts - begin(source).probabilities(offered)).max() < 0.1


def test_late_rewards_count_when_they_come_and_lost_ones_never(source: str) -> None:
    rng, late, plain = np.random.default_rng(1), begin(source), begin(source)
    first, second, third = (offer(rng) for _ in range(3))
    arm = late.act(first)
    assert plain.act(first) == arm
    late.act(second)
    late.act(third)
    assert late.update(0.3, round=1)
    assert plain.update(0.3)
    assert np.allclose(late.probabilities(third), plain.probabilities(third))
    with pytest.raises(InputError, match="round 1 has its reward already"):
        late.update(0.3, round=1)
    assert late.round == 3


def test_it_goes_on_where_it_was_saved(source: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    offered, rewards = [offer(rng, 2 + t % 4) for t in range(16)], rng.normal(size=16)

    def play(service: Service, rounds: range) -> list[int]:
        arms = []
        for t in rounds:
            arms.append(service.act(offered[t]))
            if t % 3:
                service.update(rewards[t])
            if t % 5 == 4:
                service.update(9.0, round=t - 1 - (t - 1) % 3 + 1)  # a late one
        return arms

    whole, first = play(begin(source, seed=3), range(16)), begin(source, seed=3)
    begun = play(first, range(8))
    first.save(tmp_path / "state")
    assert begun + play(begin(source, state=tmp_path / "state"), range(8, 16)) == whole


@pytest.mark.parametrize("kind", ["constant", "equal arms", "outlier", "more arms", "tiny"])
def test_whatever_comes_it_answers(source: str, kind: str) -> None:
    rng, service = np.random.default_rng(4), begin(source)
    for t in range(30):
        offered = offer(rng, 300 if kind == "more arms" and t > 10 else 3)
        offered = np.ones_like(offered) if kind == "equal arms" else offered * (1e-9 if kind == "tiny" else 1)
        assert np.isfinite(service.probabilities(offered)).all()
        service.act(offered)
        service.update({"constant": 2.0, "outlier": 1e12 if t == 20 else 1.0}.get(kind, rng.normal()))


def test_more_dimensions_than_it_takes_are_combined_with_a_warning(source: str) -> None:
    rng, service = np.random.default_rng(5), begin(source)
    with pytest.warns(UserWarning, match=f"features have 300 dimensions; .* reads {MOST_DIM} random combinations"):
        service.act(rng.normal(size=(3, 300)))
    service.update(1.0)
    assert 0 <= service.act(rng.normal(size=(4, 300))) < 4


def test_bad_input_is_refused_and_nothing_is_lost(source: str, tmp_path: Path) -> None:
    rng, service = np.random.default_rng(6), begin(source)
    with pytest.raises(InputError, match="0 rounds have been played"):
        service.update(1.0)
    service.act(offer(rng))
    for wrong, message in (
        (np.full((3, DIM), np.nan), "NaN"),
        (np.full((3, DIM), 1e30), "beyond 1e"),
        (np.zeros(DIM), r"give \[arms, dim\]"),
        (np.zeros((2, DIM + 1)), "6 dimensions, but in the rounds before there were 5"),
        ("features", "no array"),
    ):
        with pytest.raises(InputError, match=message):
            service.act(wrong)
    for reward in (np.nan, "much", None, 1e30):
        with pytest.raises(InputError, match="give a finite number"):
            service.update(reward)  # type: ignore[arg-type]
    assert service.round == 1
    with pytest.raises(InputError, match="round is 9; 1 rounds have been played"):
        service.update(0.7, round=9)
    assert service.update(np.float32(0.5), round=np.int64(1))  # type: ignore[arg-type]
    service.save(tmp_path / "state")
    (tmp_path / "state").write_bytes((tmp_path / "state").read_bytes()[:50])
    with pytest.raises(InputError, match="is broken"):
        begin(source, state=tmp_path / "state")
