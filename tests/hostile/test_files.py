"""JSON and tensors from anywhere: as they were written, or refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from driftformer.errors import InputError
from driftformer.storage import files
from driftformer.storage.files import is_partial, read_json, tidy, write_atomically, write_json
from driftformer.storage.tensors import BrokenFile, parse_object, parse_tensors, read_tensors, with_checksum
from tests.hostile.strategies import damaged, fuzz, json_values, loads_or_refuses

VALUE = {"name": "high", "numbers": [1, 2.5, -0.1], "inner": {"flag": True, "none": None}, "text": "ρ̂"}
TENSORS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.arange(3)}


@fuzz
@given(data=st.data())
def test_damaged_json_is_noticed(tmp_path: Path, data: st.DataObject) -> None:
    write_json(tmp_path / "x.json", VALUE)
    whole = (tmp_path / "x.json").read_bytes()
    content = data.draw(damaged(whole))
    (tmp_path / "x.json").write_bytes(content)
    found = loads_or_refuses(lambda: read_json(tmp_path / "x.json"))
    # Without its checksum an object counts as written by hand; whatever still carries one is as it was.
    assert found is None or found == VALUE or b'"sha256"' not in content


@fuzz
@given(value=st.dictionaries(st.text(max_size=8), json_values, max_size=4))
def test_json_comes_back_as_it_was(tmp_path: Path, value: dict[str, object]) -> None:
    value.pop("sha256", None)
    write_json(tmp_path / "x.json", value)
    assert read_json(tmp_path / "x.json") == json.loads(json.dumps(value))


@fuzz
@given(data=st.data())
def test_damaged_tensors_are_noticed(data: st.DataObject) -> None:
    whole = with_checksum(save(TENSORS), {"about": 1})
    content = data.draw(damaged(whole))
    try:
        tensors, text = parse_tensors(content, load)
    except BrokenFile:
        return
    if b"sha256" in content:
        assert parse_object(text) == {"about": 1}
        assert {name: value.tobytes() for name, value in tensors.items()} == {
            name: value.tobytes() for name, value in TENSORS.items()
        }


def test_equal_tensors_are_equal_files_and_safetensors_reads_them() -> None:
    sealed = with_checksum(save(TENSORS, metadata={"format": "pt"}), {"about": 1})
    assert sealed == with_checksum(save(TENSORS, metadata={"format": "pt"}), {"about": 1})
    assert np.array_equal(load(sealed)["a"], TENSORS["a"])


def test_files_of_absurd_size_are_refused_before_they_are_read(tmp_path: Path) -> None:
    """Sparse files: reading them would take all memory, so that they are not read shows in the test's coming back."""
    for name in ("x.json", "x.safetensors"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(2**40)
    with pytest.raises(InputError, match=r"x.json has 1,099,511,627,776 bytes, more than"):
        read_json(tmp_path / "x.json")
    with pytest.raises(BrokenFile, match="1,099,511,627,776 bytes, more than"):
        read_tensors(tmp_path / "x.safetensors", load)


@pytest.mark.parametrize("content", [b"[" * 10**6, b'{"a":' * 10**5, b'{"a": NaN}', b'{"a": ' + b"9" * 9999 + b"}"])
def test_json_of_absurd_depth_or_numbers_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(InputError, match=r"x.json is broken"):
        read_json(tmp_path / "x.json")


def test_only_dead_or_old_partial_files_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = 2**22 + 1  # above every process number
    names = {
        f".a.{dead}.partial": False,
        f"deep/.b.{dead}.partial": False,
        f".c.{os.getpid()}.partial": True,
        ".d.1.partial": True,
        ".notes.partial": True,
        "e.partial": True,
    }
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("half")
    tidy(tmp_path)
    assert {name: (tmp_path / name).exists() for name in names} == names
    monkeypatch.setattr(files, "_DAY", -1.0)
    tidy(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*.partial")) == [".notes.partial", "e.partial"]
    assert not is_partial(tmp_path / "e.partial")


def test_a_failed_write_names_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_atomically(tmp_path / "x", b"content")
    assert caught.value.filename == str(tmp_path / "x")
    assert not list(tmp_path.iterdir())
