"""The table of checks: verdicts, threads, progress, and what a folder keeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from driftformer.errors import InputError
from driftformer.storage.files import read_json
from driftformer.theory import save_checks, scheduler
from driftformer.theory.checks import CHECKS, Scale, run_checks
from driftformer.theory.network import Layer


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in ("linucb", "sizes")])
def test_every_check_ends_with_a_verdict_that_its_numbers_support(name: str) -> None:
    assert "differs" not in run_checks([name], Scale(2, problems=4))[name].verdict


def test_a_construction_that_is_wrong_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "sigma1", lambda layout: Layer())
    assert run_checks(["sigma1"], Scale(2))["sigma1"].verdict == "differs"


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_checks_compute_with_one_thread_and_put_the_number_back(
    two_threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    build = scheduler.sigma1
    monkeypatch.setattr(scheduler, "sigma1", lambda layout: seen.append(torch.get_num_threads()) or build(layout))
    assert run_checks(["sigma1"], Scale(2))["sigma1"].verdict == "exact"
    assert (seen, torch.get_num_threads()) == ([1], 2)


def test_progress_hears_each_check_in_turn() -> None:
    heard: list[str] = []
    rows = run_checks(["lemma", "sigma1"], Scale(1), heard.append)
    assert list(rows) == heard == ["lemma", "sigma1"]


@pytest.mark.parametrize(
    ("name", "n", "message"), [("sigma3", 3, "did you mean 'sigma"), ("lemma", 7, "n is 7"), ("lemma", 0, "n is 0")]
)
def test_unknown_checks_and_sizes_are_refused(name: str, n: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_checks([name], Scale(n))


def test_a_folder_keeps_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(save_checks, "CHECKS", ["lemma"])
    heard: list[str] = []
    for _ in range(2):
        save_checks.check_theory(tmp_path, heard.append)
    assert heard == ["lemma"], "the second time there is nothing to do"
    assert read_json(tmp_path / save_checks.CHECKED)["lemma"]["verdict"].startswith("holds")
    assert {path.name for path in tmp_path.glob("*.svg")} == {"overview.svg", "scheduler.svg", "equivalence.svg"}
