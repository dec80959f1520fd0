"""Exponents: the fit finds known ones, and the sweeps are what they say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from driftformer.errors import InputError
from driftformer.experiments import rates
from driftformer.experiments.rates import Point, RateSweep, sweeps


def test_the_fit_finds_a_known_exponent_and_its_interval_holds_it() -> None:
    """Regret 3·T^0.6 with 30% noise between 200 runs: the interval covers 0.6 and is a few hundredths wide."""
    rng = np.random.default_rng(0)
    values = [1e2, 1e3, 1e4, 1e5]
    exponent = rates.fit(values, [3 * value**0.6 * rng.lognormal(0, 0.3, 200) for value in values], seed=1)
    assert exponent.low < 0.6 < exponent.high
    assert exponent.high - exponent.low < 0.05


def test_each_sweep_changes_one_number_only() -> None:
    for sweep in sweeps(100_000):
        presets = [vars(point.preset) for point in sweep.points]
        differing = {key for key in presets[0] if len({preset[key] for preset in presets}) > 1}
        assert differing == {{"T": "horizon", "J": "changes", "Δ": "budget"}[sweep.axis]}
        assert all(point.agents.keys() == sweep.points[0].agents.keys() for point in sweep.points)


def test_a_small_sweep_runs_is_stored_and_only_fits_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def small(longest: int) -> tuple[RateSweep, ...]:
        agents = {"linucb": "linucb", "master-linucb": "master-linucb"}
        return tuple(
            RateSweep(one.name, one.axis, one.expected, tuple(Point(p.value, p.preset, agents) for p in one.points[:2]))
            for one in sweeps(longest)
        )

    monkeypatch.setattr(rates, "sweeps", small)
    first = rates.measure_rates(tmp_path, longest=10_000, runs=8)
    record = json.loads((tmp_path / "rates.json").read_text())
    assert record["horizon-jumps"]["agents"]["linucb"]["slope"] == first["horizon-jumps"]["linucb"].slope
    assert record["changes"]["values"] == [2, 4]
    picture = (tmp_path / "rates.png").read_bytes()
    assert rates.measure_rates(tmp_path, longest=10_000, runs=8) == first
    assert (tmp_path / "rates.png").read_bytes() == picture


def test_a_horizon_too_short_for_the_sweep_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="longest is 50; give a whole number of at least 10000"):
        rates.measure_rates(tmp_path, longest=50)


def test_definition_1_grows_in_proportion_to_the_path() -> None:
    """With two arms of two features and w* of length one, so exponents are the same along either axis."""
    points = rates.sweeps(10_000)[-1].points
    shares = [rates.definition_1(point.preset) / point.value for point in points]
    assert max(shares) < 1.05 * min(shares)
    assert 0.5 < shares[0] < 1.0
