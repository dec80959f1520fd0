"""Several processes see together what one would see alone, and learn the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate import DistributedType

from driftformer.errors import InputError
from driftformer.models.incontext import InContextPolicy
from driftformer.pretraining.data import FreshData
from driftformer.pretraining.dataset import StoredData, collect_dataset
from driftformer.pretraining.play import Player
from driftformer.pretraining.processes import Part, part_of
from driftformer.pretraining.recipes import recipe_of
from driftformer.pretraining.run import policy_config, train

TINY = recipe_of("tiny", steps=24, tuning_steps=8, tokens=960, generation=128, tuning_tokens=3_840)
CPU = torch.device("cpu")


def test_processes_that_cannot_share_the_shards_are_refused() -> None:
    with pytest.raises(InputError, match="shards is 8, which 3 processes cannot share evenly"):
        Part(8, 0, 3)


def test_weights_that_would_be_shared_out_are_refused() -> None:
    launched = SimpleNamespace(distributed_type=DistributedType.FSDP)
    with pytest.raises(InputError, match="accelerate is set to FSDP, but a policy is small enough"):
        part_of(launched, 8)  # type: ignore[arg-type]


@pytest.mark.parametrize("processes", [2, 4, 8])
def test_processes_make_together_what_one_makes_alone(processes: int) -> None:
    player = Player(InContextPolicy(policy_config(TINY)))
    alone = next(FreshData(TINY, 4, CPU, Part(8)).generation(3, 0, player))
    parts = [
        next(FreshData(TINY, 4, CPU, Part(8, process, processes)).generation(3, 0, player))
        for process in range(processes)
    ]
    for name in ("features", "arms", "rewards", "labels"):
        assert torch.equal(torch.cat([getattr(part, name) for part in parts]), getattr(alone, name)), name


def test_processes_share_the_rows_of_a_stored_batch_without_overlap(tmp_path: Path) -> None:
    folder = collect_dataset(tmp_path, "tiny", 100, behaviours={"random": 1.0})
    player = Player(InContextPolicy(policy_config(TINY)))

    def rewards(part: Part) -> list[set[float]]:
        stream = StoredData(folder, TINY, 4, CPU, part)
        return [{float(row.sum()) for row in batch.rewards} for batch in stream.generation(0, 0, player)]

    for alone, first, second in zip(rewards(Part(8)), rewards(Part(8, 0, 2)), rewards(Part(8, 1, 2)), strict=True):
        assert not first & second
        assert first | second <= alone
        assert len(first) == len(second) == len(alone) // 2


POINTER = {"steps": 24, "tuning_steps": 8, "rate": 2e-4, "tuning_rate": 2e-5, "tokens": 960, "tuning_tokens": 3_840}
QUERY = {
    "worlds": "tiny",
    "layers": 1,
    "width": 16,
    "steps": 4,
    "tuning_steps": 3,
    "tokens": 3840,
    "tuning_tokens": 7680,
}


@pytest.mark.parametrize(("name", "settings"), [("tiny", POINTER), ("drift", QUERY)])
def test_two_processes_have_the_losses_of_one(name: str, settings: dict[str, Any], tmp_path: Path) -> None:
    # Rounding differs, and training magnifies it a thousandfold in a few hundred steps; so few steps, and slow ones.
    options = [part for key, value in settings.items() for part in (f"--{key.replace('_', '-')}", str(value))]
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command = [*launch, "-m", "driftformer", "pretrain", name, *options, "--out", str(tmp_path / "two")]
    done = subprocess.run(command, capture_output=True, timeout=300, text=True)
    assert done.returncode == 0, done.stderr
    train(recipe_of(name, **settings), tmp_path / "one")
    assert json.loads((tmp_path / "two" / "best" / "training.json").read_text())["processes"] == 2
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-5)


def losses(folder: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (folder / "log.jsonl").read_text().splitlines()]
