"""Policies on disk: what was written comes back, and what is broken is refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from driftformer.errors import InputError
from driftformer.models.checkpoints import read_policy, save_policy
from driftformer.models.configuration import PolicyConfig
from driftformer.models.incontext import InContextPolicy


@pytest.fixture
def policy() -> InContextPolicy:
    torch.manual_seed(0)
    return InContextPolicy(PolicyConfig(dim=3, arms=3, horizon=5, layers=1, heads=2, width=8))


def same(one: InContextPolicy, other: InContextPolicy) -> bool:
    pairs = zip(one.state_dict().items(), other.state_dict().items(), strict=True)
    return all(name == again and torch.equal(value, copy) for (name, value), (again, copy) in pairs)


def test_weights_come_back_as_they_were(policy: InContextPolicy, tmp_path: Path) -> None:
    save_policy(policy, tmp_path, torch.float32)
    assert same(policy, read_policy(tmp_path))


def test_by_default_weights_take_two_bytes(policy: InContextPolicy, tmp_path: Path) -> None:
    save_policy(policy, tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    assert {value.dtype for value in weights.values()} == {torch.bfloat16}
    assert next(read_policy(tmp_path).parameters()).dtype == torch.float32


def test_policies_and_transformers_read_each_other(policy: InContextPolicy, tmp_path: Path) -> None:
    policy.save_pretrained(tmp_path / "theirs")
    assert same(policy, read_policy(tmp_path / "theirs"))
    save_policy(policy, tmp_path / "ours", torch.float32)
    assert same(policy, InContextPolicy.from_pretrained(tmp_path / "ours"))
    assert not list((tmp_path / "theirs").glob("*.bin")), "safetensors only"


def test_a_model_of_two_bytes_takes_plain_numbers(policy: InContextPolicy, tmp_path: Path) -> None:
    save_policy(policy, tmp_path)
    small = InContextPolicy.from_pretrained(tmp_path)
    assert small.dtype == torch.bfloat16
    logits = small(torch.rand(2, 5, 3, 3), torch.zeros(2, 5, dtype=torch.long), torch.rand(2, 5))
    assert logits.shape == (2, 5, 3)


def test_a_truncated_checkpoint_is_refused(policy: InContextPolicy, tmp_path: Path) -> None:
    save_policy(policy, tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="broken or cut off"):
        read_policy(tmp_path)


def test_nan_weights_are_refused(policy: InContextPolicy, tmp_path: Path) -> None:
    policy.head.weight.data[0, 0] = torch.nan
    save_policy(policy, tmp_path)
    with pytest.raises(InputError, match=r"NaN or infinite weights in head.weight"):
        read_policy(tmp_path)


def test_another_architecture_is_refused(policy: InContextPolicy, tmp_path: Path) -> None:
    save_policy(policy, tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["head.bias"]
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=r"another architecture .* head.bias is missing"):
        read_policy(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    with pytest.raises(InputError, match="of kind 'gpt2'"):
        read_policy(tmp_path)


def test_a_folder_without_a_policy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no config.json"):
        read_policy(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "message"), [({"width": 7}, "multiple of the heads"), ({"form": "letter"}, "form"), ({"layers": 0}, "0")]
)
def test_impossible_sizes_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PolicyConfig(**{"heads": 2, "width": 8, **wrong})  # type: ignore[arg-type]
