"""Datasets from strangers: no manifest leads out of its folder, and no shard brings more than it should."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load, save

from driftformer.errors import InputError
from driftformer.models.incontext import InContextPolicy
from driftformer.pretraining.dataset import StoredData, collect_dataset
from driftformer.pretraining.play import Player
from driftformer.pretraining.processes import Part
from driftformer.pretraining.recipes import recipe_of
from driftformer.pretraining.run import policy_config
from driftformer.storage.checksum import checksum
from tests.hostile.strategies import damaged, fuzz, loads_or_refuses, mutated

TINY = recipe_of("tiny")
SHARD = "shards/00000.safetensors"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("dataset") / "d")


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "d"))


@pytest.fixture(scope="module")
def player() -> Player:
    return Player(InContextPolicy(policy_config(TINY)))


def make(out: Path) -> Path:
    return collect_dataset(out, "tiny", 6, behaviours={"random": 1.0})


def read(folder: Path, player: Player) -> int:
    """Read all of a dataset; the number of its trajectories."""
    stream = StoredData(folder, TINY, 4, torch.device("cpu"), Part(8))
    return sum(len(batch.arms) for number in range(2) for batch in stream.generation(number, 0, player))


def change(folder: Path, **entries: Any) -> None:
    """Put other entries into the first shard's part of a manifest, and leave its checksum out."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest.pop("sha256")
    manifest["shards"][0] |= entries
    (folder / "manifest.json").write_text(json.dumps(manifest))


@fuzz
@given(data=st.data())
def test_a_damaged_manifest_or_shard_is_noticed(whole: Path, folder: Path, player: Player, data: st.DataObject) -> None:
    victim = data.draw(st.sampled_from(["manifest.json", SHARD]))
    content = data.draw(damaged((whole / victim).read_bytes()))
    for name in ("manifest.json", SHARD):
        (folder / name).write_bytes((whole / name).read_bytes())
    (folder / victim).write_bytes(content)
    assert loads_or_refuses(lambda: read(folder, player)) in (None, 6)
    if loads_or_refuses(lambda: make(folder)) is not None and b"sha256" in content:
        assert (folder / SHARD).read_bytes() == (whole / SHARD).read_bytes()


@fuzz
@given(data=st.data())
def test_any_manifest_is_used_as_it_is_or_refused(
    whole: Path, folder: Path, player: Player, data: st.DataObject
) -> None:
    manifest = json.loads((whole / "manifest.json").read_text())
    manifest.pop("sha256")
    (folder / "manifest.json").write_text(json.dumps(data.draw(mutated(manifest))))
    loads_or_refuses(lambda: read(folder, player))
    loads_or_refuses(lambda: make(folder))


@pytest.mark.parametrize("file", ["../../etc/passwd", "/etc/passwd", "../shards/00000.safetensors", "", None, "."])
def test_a_manifest_cannot_name_other_files(folder: Path, player: Player, file: str | None) -> None:
    change(folder, file=file)
    with pytest.raises(InputError, match=r"manifest.json is broken \(its shards are not those of a dataset\)"):
        read(folder, player)
    with pytest.raises(InputError, match=r"manifest.json is broken"):
        make(folder)


def test_a_shard_that_is_a_link_out_of_the_folder_is_refused_and_mended(
    folder: Path, player: Player, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.safetensors"
    (folder / SHARD).rename(outside)
    (folder / SHARD).symlink_to(outside)
    with pytest.raises(InputError, match=r"00000.safetensors is a link out of its folder"):
        read(folder, player)
    before = outside.read_bytes()
    make(folder)
    assert not (folder / SHARD).is_symlink()
    assert outside.read_bytes() == before


@pytest.mark.parametrize("count", [10**12, 0, -1, True, "3"])
def test_shards_of_absurd_size_are_refused_before_anything_is_made(folder: Path, player: Player, count: object) -> None:
    change(folder, count=count)
    with pytest.raises(InputError, match=r"manifest.json is broken"):
        read(folder, player)


@pytest.mark.parametrize("wrong", ["arms beyond those on offer", "other sizes", "other names"])
def test_a_shard_that_is_not_of_these_worlds_is_refused(folder: Path, player: Player, wrong: str) -> None:
    """Its checksum is right: whoever made it made the manifest too."""
    tensors = load((folder / SHARD).read_bytes())
    if wrong == "other names":
        tensors["weapons"] = tensors.pop("arms")
    else:
        tensors["arms"] = tensors["arms"] + 200 if wrong.startswith("arms") else tensors["arms"][:, :7].contiguous()
    content = save(tensors)
    (folder / SHARD).write_bytes(content)
    change(folder, sha256=checksum(content))
    with pytest.raises(InputError, match=r"00000.safetensors is not of these worlds"):
        read(folder, player)


def test_a_lost_manifest_is_made_again(folder: Path, whole: Path) -> None:
    (folder / "manifest.json").unlink()
    make(folder)
    assert (folder / "manifest.json").read_bytes() == (whole / "manifest.json").read_bytes()
