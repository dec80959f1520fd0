"""Datasets: exactly what was asked for, resumable, and refused where anything is off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from driftformer.errors import InputError
from driftformer.models.incontext import InContextPolicy
from driftformer.pretraining import dataset
from driftformer.pretraining.dataset import StoredData, collect_dataset
from driftformer.pretraining.play import Player
from driftformer.pretraining.processes import Part
from driftformer.pretraining.recipes import recipe_of
from driftformer.pretraining.run import policy_config
from driftformer.pretraining.worlds import worlds_of

TINY = recipe_of("tiny")


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(dataset.SHARD, "cpu", 40)


def make(out: Path, trajectories: int = 150, **options: object) -> Path:
    return collect_dataset(out, "tiny", trajectories, behaviours={"random": 1.0}, **options)  # type: ignore[arg-type]


def stream(folder: Path) -> StoredData:
    return StoredData(folder, TINY, 4, torch.device("cpu"), Part(8))


def test_it_holds_exactly_as_many_trajectories_as_asked(tmp_path: Path) -> None:
    manifest = json.loads((make(tmp_path / "d", 151) / "manifest.json").read_text())
    counts = [shard["count"] for shard in manifest["shards"]]
    assert sum(counts) == 151
    worlds = [sum(s["count"] for s in manifest["shards"] if s["world"] == place) for place in (0, 1)]
    assert sorted(worlds) == [75, 76]


def test_high_has_equally_many_trajectories_of_each_frequency() -> None:
    from driftformer.randomness import Randomness
    from driftformer.simulation.tape import problems_of

    (world,) = worlds_of("high")
    problems = problems_of(world.environment, Randomness(0, size=400))
    # At t=50 the four cosines are 0, -1, 0 and 1 in size: only b=.01 and b=.02 still pay.
    alive = problems.spread[:, 49].abs() > 1.0
    assert int(alive.sum()) == 200


def test_reading_gives_back_what_was_played_on_the_same_problems(tmp_path: Path) -> None:
    """Every stored trajectory comes once in an epoch, with features made again from the seed."""
    stored = stream(make(tmp_path / "d"))
    player = Player(InContextPolicy(policy_config(TINY)))
    seen = 0
    for number in range(4):
        for batch in stored.generation(number, 0, player):
            assert batch.features.shape[1:] == (30, 4, 4)
            assert batch.arms.shape == batch.rewards.shape == batch.labels.shape == batch.features.shape[:2]
            seen += len(batch.arms)
    assert seen == 150
    whole = torch.cat([batch.labels for n in range(4) for batch in stored.generation(n, 0, player)])
    assert 0.2 < float((whole == 0).float().mean()) < 0.3  # optimal arms are spread over all four


def test_labels_in_a_dataset_are_the_best_arms_of_its_problems(tmp_path: Path) -> None:
    from driftformer.pretraining.data import TRAINING_SEED
    from driftformer.randomness import Randomness
    from driftformer.simulation.tape import problems_of

    folder = make(tmp_path / "d")
    shard = dataset.load((folder / "shards" / "00000.safetensors").read_bytes())
    problems = problems_of(worlds_of("tiny")[0].environment, Randomness(TRAINING_SEED, (0,), size=40))
    assert torch.equal(shard["labels"].long(), problems.best)


def test_a_killed_collection_goes_on_with_the_same_numbers(tmp_path: Path) -> None:
    class Killed(Exception): ...

    def kill(count: int) -> None:
        raise Killed

    with pytest.raises(Killed):
        make(tmp_path / "cut", on_trajectories=kill)
    assert len(json.loads((tmp_path / "cut" / "manifest.json").read_text())["shards"]) == 1
    with pytest.raises(InputError, match="with 40 of 150 trajectories; finish"):
        stream(tmp_path / "cut")
    make(tmp_path / "cut")
    make(tmp_path / "whole")
    for name in ("manifest.json", "shards/00000.safetensors", "shards/00003.safetensors"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_shard_with_a_wrong_checksum_or_none_is_refused(tmp_path: Path) -> None:
    folder = make(tmp_path / "d")
    player = Player(InContextPolicy(policy_config(TINY)))
    path = folder / "shards" / "00000.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"00000.safetensors does not match its checksum"):
        [list(stream(folder).generation(number, 0, player)) for number in range(4)]
    path.unlink()
    with pytest.raises(InputError, match=r"00000.safetensors is missing"):
        [list(stream(folder).generation(number, 0, player)) for number in range(4)]
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["shards"][1]["sha256"], manifest["sha256"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"is missing|does not match its checksum"):
        [list(stream(folder).generation(number, 0, player)) for number in range(4)]


def test_collecting_again_mends_what_is_broken(tmp_path: Path) -> None:
    folder = make(tmp_path / "d")
    whole = {path.name: path.read_bytes() for path in (folder / "shards").iterdir()}
    (folder / "shards" / "00001.safetensors").write_bytes(b"not a shard")
    (folder / "shards" / "00002.safetensors").unlink()
    make(folder)
    assert {path.name: path.read_bytes() for path in (folder / "shards").iterdir()} == whole


def test_a_collection_killed_before_its_first_shard_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(*_: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(dataset, "_collect_shard", kill)
        with pytest.raises(KeyboardInterrupt):
            make(tmp_path / "d")
    make(tmp_path / "d")
    stream(tmp_path / "d")


def test_a_dataset_of_another_kind_is_refused(tmp_path: Path) -> None:
    folder = make(tmp_path / "d")
    with pytest.raises(InputError, match=r"another kind \(seed is 0 there and 1 here\)"):
        make(folder, seed=1)
    with pytest.raises(InputError, match="where labels is optimal, but the training has linucb"):
        StoredData(folder, recipe_of("tiny", labels="linucb"), 4, torch.device("cpu"), Part(8))
    with pytest.raises(InputError, match="holds no dataset"):
        stream(tmp_path)
    with pytest.raises(InputError, match="not empty and holds no dataset; name a new or empty folder"):
        make(tmp_path)


def test_a_whole_dataset_of_fewer_or_more_worlds_is_not_called_broken(tmp_path: Path) -> None:
    folder = make(tmp_path / "d")
    with pytest.raises(InputError, match="worlds is tiny"):
        collect_dataset(folder, "high", 150, behaviours={"random": 1.0})
    with pytest.raises(InputError, match="worlds is tiny, but the training has high"):
        StoredData(folder, recipe_of("high"), 32, torch.device("cpu"), Part(1))
