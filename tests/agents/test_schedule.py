"""The window scheduler: frequencies, windows, the active order."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from driftformer.agents.schedule import WindowScheduler, malg, periodic, run
from driftformer.errors import InputError
from driftformer.randomness import Randomness


@settings(deadline=None)
@given(
    orders=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), st.floats(0, 1)), min_size=1, max_size=4),
    seed=st.integers(0, 99),
)
def test_an_instance_lives_for_its_window_and_the_lowest_live_order_is_active(
    orders: list[tuple[int, int, float]], seed: int
) -> None:
    scheduler = WindowScheduler(
        tuple(period for period, _, _ in orders),
        tuple(min(window, period) for period, window, _ in orders),
        tuple(probability for *_, probability in orders),
    )
    rounds = run(scheduler, 30, Randomness(seed, size=3).stream("coins"))
    for b in range(3):
        for m, (period, window) in enumerate(zip(scheduler.periods, scheduler.windows, strict=True)):
            for start in range(0, 30, period):
                begun = bool(rounds[start].started[b, m])
                for t in range(start, min(start + period, 30)):
                    assert bool(rounds[t].live[b, m]) == (begun and t < start + window)
                    assert bool(rounds[t].started[b, m]) == (begun and t == start)
                    assert bool(rounds[t].ending[b, m]) == (begun and t == start + window - 1)
        for one in rounds:
            live = one.live[b].nonzero().flatten().tolist()
            assert int(one.active[b]) == (min(live) if live else -1)


def test_malg_flips_its_coins_with_the_probabilities_of_rho() -> None:
    scheduler = malg(4, lambda t: 1 / math.sqrt(t))
    assert scheduler.periods == scheduler.windows == (1, 2, 4, 8, 16)
    assert scheduler.probabilities == pytest.approx([0.25, 8**-0.5, 0.5, 0.5**0.5, 1.0])
    rounds = run(scheduler, 16, Randomness(0, range(16)).stream("coins"))  # 1,024 blocks
    for m, chance in enumerate(scheduler.probabilities):
        coins = 1024 * 16 // 2**m
        starts = sum(int(one.started[:, m].sum()) for one in rounds)
        assert abs(starts - coins * chance) <= 5 * math.sqrt(coins * chance * (1 - chance))
    assert all(bool((one.active >= 0).all()) for one in rounds)


def test_one_order_of_adjacent_windows_starts_again_and_again() -> None:
    rounds = run(periodic(4), 12, Randomness(0, size=2).stream("coins"))
    assert [int(one.started[0, 0]) for one in rounds] == [1, 0, 0, 0] * 3
    assert all(bool((one.active == 0).all()) for one in rounds)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((2,), (3,), (1.0,)), "the window of order 0 is 3, longer than its period of 2"),
        (((2,), (2,), (1.5,)), "the probability of order 0 is 1.5; give a finite number of at least 0 and at most 1"),
        (((0,), (1,), (1.0,)), "the period of order 0 is 0"),
        (((2, 4), (2,), (1.0,)), "give one of each for every order"),
    ],
)
def test_impossible_schedules_are_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        WindowScheduler(*arguments)  # type: ignore[arg-type]


def test_a_rho_that_increases_is_refused() -> None:
    with pytest.raises(InputError, match="rho must not increase"):
        malg(3, lambda t: float(t))
    assert torch.tensor(malg(0, lambda t: 1.0).probabilities).tolist() == [1.0]


def test_a_window_longer_than_all_rounds_is_refused() -> None:
    coins = Randomness(0, size=2).stream("coins")
    assert len(run(periodic(4), 4, coins)) == 4
    with pytest.raises(InputError, match="the longest window is 4, but there are only 3 rounds"):
        run(periodic(4), 3, coins)
