"""Results folders that were tampered with: read as they were written, or refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftformer as df
from driftformer.errors import InputError
from driftformer.experiments.reproduce import ABOUT, read_experiments
from tests.hostile.strategies import damaged, fuzz, json_values, loads_or_refuses, mutated

ENVIRONMENT = df.make_env("high", horizon=6, dim=2, arms=2)


def evaluate(out: Path) -> df.Result:
    return df.evaluate(ENVIRONMENT, ["random", "linucb"], runs=3, out=out, trajectories=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("results")
    return folder, evaluate(folder).summary.to_json()


@fuzz
@given(data=st.data())
def test_whatever_is_damaged_results_stay_right_or_are_refused(
    whole: tuple[Path, dict[str, Any]], tmp_path: Path, data: st.DataObject
) -> None:
    """Any file of a folder; timings alone are never checked, since nothing is computed from them."""
    folder, summary = whole
    shutil.rmtree(tmp_path / "x", ignore_errors=True)
    shutil.copytree(folder, tmp_path / "x")
    files = sorted(path for path in (tmp_path / "x").rglob("*") if path.is_file())
    victim = data.draw(st.sampled_from(files), label="victim")
    victim.write_bytes(data.draw(damaged(victim.read_bytes())))
    result = loads_or_refuses(lambda: evaluate(tmp_path / "x"))
    assert result is None or result.summary.to_json() == summary


@fuzz
@given(data=st.data())
def test_a_summary_that_loads_can_be_shown(
    whole: tuple[Path, dict[str, Any]], tmp_path: Path, data: st.DataObject
) -> None:
    summary = data.draw(mutated(whole[1]))
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    result = loads_or_refuses(lambda: df.load_result(tmp_path))
    if result is not None:
        assert "dynamic regret" in result.table()


@fuzz
@given(value=json_values)
def test_any_json_as_a_reproduction_is_refused(tmp_path: Path, value: object) -> None:
    (tmp_path / ABOUT).write_text(json.dumps(value))
    assert not loads_or_refuses(lambda: read_experiments(tmp_path))


def test_a_reproduction_cannot_name_folders_outside(tmp_path: Path) -> None:
    (tmp_path / ABOUT).write_text(json.dumps({"experiments": ["../../etc"]}))
    with pytest.raises(InputError, match=r"reproduction.json is broken \(its experiments are unknown\)"):
        read_experiments(tmp_path)
