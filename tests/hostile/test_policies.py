"""Policies from strangers: plain numbers of the sizes they claim, or refused; never code."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from driftformer.agents.incontext import load_policy
from driftformer.errors import InputError
from driftformer.models.checkpoints import policy_sizes, read_policy, save_policy
from driftformer.models.configuration import PolicyConfig
from driftformer.models.incontext import InContextPolicy
from tests.hostile.strategies import damaged, fuzz, json_values, loads_or_refuses, mutated


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("policy")
    save_policy(InContextPolicy(PolicyConfig(dim=3, arms=3, horizon=5, layers=1, heads=2, width=8)), folder)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "policy"))


@fuzz
@given(data=st.data())
def test_a_damaged_checkpoint_is_noticed(whole: Path, folder: Path, data: st.DataObject) -> None:
    content = data.draw(damaged((whole / "model.safetensors").read_bytes()))
    (folder / "model.safetensors").write_bytes(content)
    found = loads_or_refuses(lambda: read_policy(folder))
    if found is not None and b"sha256" in content:
        assert all(map(torch.equal, found.state_dict().values(), read_policy(whole).state_dict().values()))


@fuzz
@given(data=st.data())
def test_a_config_is_used_as_it_is_or_refused(whole: Path, folder: Path, data: st.DataObject) -> None:
    config = data.draw(mutated(json.loads((whole / "config.json").read_text())))
    (folder / "config.json").write_text(json.dumps(config))
    found = loads_or_refuses(lambda: read_policy(folder))
    assert found is None or policy_sizes(found.config) == policy_sizes(read_policy(whole).config)


@fuzz
@given(
    sizes=st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("form", "backbone", "dim", "arms", "horizon", "layers", "width"), json_values)
    )
)
def test_weights_without_a_checksum_are_held_against_the_config(
    whole: Path, folder: Path, sizes: dict[str, object]
) -> None:
    save_file(load_file(whole / "model.safetensors"), folder / "model.safetensors")
    config = json.loads((whole / "config.json").read_text()) | sizes
    (folder / "config.json").write_text(json.dumps(config))
    found = loads_or_refuses(lambda: read_policy(folder))
    kept = policy_sizes(read_policy(whole).config)
    # the number of arms leaves no trace in the weights of a pointer
    assert found is None or policy_sizes(found.config) | {"arms": 3} == kept


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"layers": 10**9}, "layers is 1000000000; give a whole number of at least 1 and at most 1000"),
        ({"layers": 1000, "width": 2}, "has 21 tensors, too few for the 1000 layers"),
        ({"width": 10**9}, "width is 1000000000; give a whole number of at least 1 and at most 100000"),
        ({"width": 100_000, "heads": 2}, "parameters; choose sizes with at most 2e"),
        ({"dim": 100_000, "arms": 100_000, "form": "paper"}, "parameters; choose sizes with at most 2e"),
        ({"horizon": 10**9}, "horizon is 1000000000"),
        ({"width": "8"}, "width is '8'"),
        ({"layers": True}, "layers is True"),
    ],
)
def test_absurd_sizes_are_refused_before_anything_is_allocated(
    folder: Path, sizes: dict[str, object], message: str
) -> None:
    save_file(load_file(folder / "model.safetensors"), folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | sizes))
    with pytest.raises(InputError, match=message):
        read_policy(folder)


def test_a_config_that_was_changed_after_training_is_refused(folder: Path) -> None:
    """The number of heads leaves no trace in the shapes of weights."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"heads": 4}))
    with pytest.raises(InputError, match=r"says that heads is 4, but model.safetensors was written with 2"):
        read_policy(folder)


@pytest.mark.parametrize("kind", [torch.int32, torch.complex64, torch.float8_e4m3fn, torch.bool])
def test_weights_that_are_no_plain_numbers_are_refused(folder: Path, kind: torch.dtype) -> None:
    weights = {name: value.to(kind) for name, value in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(InputError, match=r"save it in float32|is broken"):
        read_policy(folder)


class Trap:
    """A pickle that leaves a mark where it is opened."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self._mark,))


@pytest.mark.filterwarnings("ignore")
def test_neither_pickles_nor_code_in_a_policy_folder_are_ever_run(folder: Path, tmp_path: Path) -> None:
    mark = tmp_path / "it was run"
    for name in ("pytorch_model.bin", "model.pt", "training_args.bin", "model.pkl"):
        (folder / name).write_bytes(pickle.dumps(Trap(mark)))
    (folder / "modeling_trap.py").write_text(
        f"from pathlib import Path\nPath({str(mark)!r}).touch()\nclass Trap: ...\n"
    )
    config = json.loads((folder / "config.json").read_text())
    traps = {"AutoConfig": "modeling_trap.Trap", "AutoModel": "modeling_trap.Trap"}
    (folder / "config.json").write_text(json.dumps(config | {"auto_map": traps, "trust_remote_code": True}))
    read_policy(folder)
    load_policy(str(folder)).online().act([[0.1, 0.2, 0.3]])
    InContextPolicy.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"has no model.safetensors"):
        read_policy(folder)
    with pytest.raises(OSError, match="safetensors"):
        InContextPolicy.from_pretrained(folder)
    assert not mark.exists()
    pickle.loads(pickle.dumps(Trap(mark)))
    assert mark.exists(), "the trap works where a pickle is opened"
