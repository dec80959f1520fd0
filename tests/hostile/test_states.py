"""States of trainings and of policies at work, tampered with or fed with nonsense."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.numpy import load, save

from driftformer.agents.incontext import InContext, load_policy
from driftformer.agents.registry import make_agent
from driftformer.agents.services.online import Online
from driftformer.errors import InputError
from driftformer.models.checkpoints import save_policy
from driftformer.models.configuration import PolicyConfig
from driftformer.models.incontext import InContextPolicy
from driftformer.pretraining.recipes import recipe_of
from driftformer.pretraining.run import policy_config, train
from driftformer.pretraining.state import TrainingState, load_state, save_state
from driftformer.storage.tensors import parse_object, parse_tensors, with_checksum
from tests.hostile.strategies import damaged, fuzz, json_values, loads_or_refuses, mutated

DIM, HORIZON = 3, 6
RECIPE = recipe_of("tiny", layers=1, width=16, steps=4, tuning_steps=0, tokens=480, generation=32)


@pytest.fixture(scope="module", params=["paper", "pointer"])
def agent(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> InContext:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp(request.param)
    save_policy(InContextPolicy(PolicyConfig(request.param, "gpt2", DIM, 4, HORIZON, 1, 2, 8)), folder)
    return load_policy(str(folder))


@pytest.fixture
def saved(agent: InContext, tmp_path: Path) -> Path:
    online = agent.online()
    for arms in (2, 3, 4):
        online.act(np.full((arms, DIM), 0.1 * arms))
        online.update(0.5)
    online.save(tmp_path / "state")
    return tmp_path / "state"


@fuzz
@given(data=st.data())
def test_a_damaged_online_state_is_noticed(agent: InContext, saved: Path, data: st.DataObject) -> None:
    whole = saved.read_bytes()
    content = data.draw(damaged(whole))
    saved.write_bytes(content)
    found = loads_or_refuses(lambda: agent.online(state=saved))
    saved.write_bytes(whole)
    if found is not None:
        assert found.act(np.zeros((2, DIM))) in (0, 1)
        assert found.round == 4 or b"sha256" not in content


@fuzz
@given(data=st.data())
def test_a_tampered_online_state_plays_or_is_refused(agent: InContext, saved: Path, data: st.DataObject) -> None:
    """With a right checksum, as one who knows the format would write it."""
    whole = saved.read_bytes()
    tensors, text = parse_tensors(whole, load)
    tensors = dict(tensors)
    name = data.draw(st.sampled_from(sorted(tensors)))
    shape = data.draw(st.sampled_from([tensors[name].shape, (3,), (3, 4, DIM), (0,), (7, 4, DIM), (3, 9, DIM)]))
    kind = data.draw(st.sampled_from([tensors[name].dtype, np.float64, np.int8, np.int64, np.bool_]))
    tensors[name] = data.draw(arrays.arrays(kind, shape))
    about = data.draw(st.one_of(st.just(parse_object(text)), mutated(parse_object(text))))
    saved.write_bytes(with_checksum(save(tensors), about))
    found = loads_or_refuses(lambda: agent.online(state=saved))
    saved.write_bytes(whole)
    if found is not None:
        assert found.act(np.zeros((2, DIM))) in (0, 1)


WORKING = {
    "master-linucb": {},
    "glr-kl-ucb": {},
    "sliding-window-ucb": {},
    "detection-linucb": {},
    "linucb": {"scale": True},
}


@pytest.fixture(params=WORKING)
def at_work(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """An agent's name and its state after three rounds of three users, some of them open, some with a mask."""
    online = make_agent(request.param).online(problems=3, horizon=60, **WORKING[request.param])
    for t in range(3):
        online.act(np.stack([np.eye(DIM)] * 2), users=[0, t % 2 + 1], offered=None if t else [[True, True, False]] * 2)
        online.update([0.5], users=[0], rounds=[online.round(0)] if t else None)
    online.save(tmp_path / "state")
    return request.param, tmp_path / "state"


@fuzz
@given(data=st.data())
def test_a_tampered_state_of_any_agent_plays_or_is_refused(at_work: tuple[str, Path], data: st.DataObject) -> None:
    name, path = at_work
    whole = path.read_bytes()
    tensors, text = parse_tensors(whole, load)
    tensors = dict(tensors)
    key, about = data.draw(st.sampled_from(sorted(tensors))), parse_object(text)
    if data.draw(st.booleans()):
        kind, shape = tensors[key].dtype, tensors[key].shape
        if data.draw(st.booleans()):
            kind = data.draw(st.sampled_from([np.dtype(one) for one in (np.float64, np.int8, np.int64, np.bool_)]))
            shape = data.draw(st.sampled_from([shape, (3,), (0,), (2, DIM), (3, 2), (0, DIM), (7, 4, DIM)]))
        tensors[key] = data.draw(arrays.arrays(kind, shape))
    else:
        about = data.draw(mutated(about))
    path.write_bytes(with_checksum(save(tensors), about))
    found = loads_or_refuses(lambda: make_agent(name).online(state=path))
    path.write_bytes(whole)
    if isinstance(found, Online):  # the number of problems was taken away
        loads_or_refuses(lambda: found.act(np.eye(DIM)))
    elif found is not None:
        arms = loads_or_refuses(
            lambda: found.act(np.stack([np.eye(DIM)] * found.problems)) if found.problems < 9 else []
        )
        assert arms is None or all(arm in range(DIM) for arm in arms)


_FEATURES = st.one_of(
    json_values,
    arrays.arrays(np.float64, arrays.array_shapes(max_dims=3, max_side=5)),
    arrays.arrays(
        st.sampled_from([np.dtype(kind) for kind in ("bool", "int8", "uint64", "complex64", "U3", "S3", "M8[s]")]),
        arrays.array_shapes(min_dims=2, max_dims=2, max_side=3),
    ),
    st.just(np.zeros((2, DIM))),
    st.just(np.broadcast_to(0.0, (10**9, DIM))),
    st.just(np.broadcast_to(0.0, (2, 10**9))),
    st.just([[object()]]),
    st.just(torch.zeros(2, DIM, requires_grad=True)),
)
_REWARDS = st.one_of(json_values, st.floats(), st.just(np.float32(0.5)), st.just(np.zeros(1)), st.just(1j))


@fuzz
@given(
    moves=st.lists(
        st.one_of(
            st.tuples(st.just("act"), _FEATURES),
            st.tuples(st.just("update"), _REWARDS, st.one_of(st.none(), json_values, st.integers(0, 9))),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_online_takes_what_is_right_and_refuses_the_rest(agent: InContext, moves: list[tuple]) -> None:  # type: ignore[type-arg]
    online, rounds = agent.online(), 0
    for move, *given_ in moves:
        if move == "act":
            arm = loads_or_refuses(lambda features=given_[0]: online.act(features))  # type: ignore[misc]
            rounds += arm is not None
        else:
            loads_or_refuses(lambda reward=given_: online.update(*reward))  # type: ignore[misc]
        assert online.round == rounds, "what is refused changes nothing"
    assert online.act(np.zeros((2, DIM))) in (0, 1)


@pytest.mark.parametrize("shape", [(10**9, DIM), (10**6, DIM), (2, 10**9), (0, DIM), (10**5, 10**5)])
def test_absurd_numbers_of_arms_are_refused_before_anything_is_copied(agent: InContext, shape: tuple[int, int]) -> None:
    with pytest.raises(InputError, match=r"features has (shape|\d+ dimensions|\d+ arms)"):
        agent.online().act(np.broadcast_to(np.float64(0.0), shape))


def test_numbers_too_long_to_print_are_refused_in_words(agent: InContext) -> None:
    online = agent.online()
    online.act(np.zeros((2, DIM)))
    with pytest.raises(InputError, match="reward is a huge number"):
        online.update(10**5000)
    with pytest.raises(InputError, match="round is a huge number"):
        online.update(1.0, round=10**5000)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training") / "run"
    with torch.inference_mode(False):
        train(RECIPE, folder, evaluate_every=2, evaluate_problems=4, save_every=0.0)
    return folder


@pytest.fixture
def copied(training: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(training, tmp_path / "run"))


def again(folder: Path) -> TrainingState:
    with torch.inference_mode(False):
        return train(RECIPE, folder, evaluate_every=2, evaluate_problems=4)


def test_a_broken_best_policy_or_log_is_refused_by_name_before_any_work(copied: Path) -> None:
    done = again(copied)
    for name, message in {
        "best/model.safetensors": r"model.safetensors is broken .* delete \S+run and train again",
        "best/training.json": r"training.json is broken .* delete \S+run and train again",
        "best/config.json": r"config.json is broken .* delete \S+run and train again",
        "log.jsonl": r"log.jsonl does not match its checksum .* delete it, and the training goes on",
    }.items():
        whole = (copied / name).read_bytes()
        changed = bytearray(whole)
        changed[len(whole) // 2] ^= 128
        (copied / name).write_bytes(changed)
        with pytest.raises(InputError, match=message):
            again(copied)
        (copied / name).write_bytes(whole)
    assert replace(again(copied), seconds=0.0) == replace(done, seconds=0.0)
    (copied / "log.jsonl").unlink()
    assert again(copied).step == done.step


def test_a_best_policy_that_is_gone_is_missed(copied: Path) -> None:
    shutil.rmtree(copied / "best")
    with pytest.raises(InputError, match=r"best has no config.json.* delete \S+run and train again"):
        again(copied)


@fuzz
@given(data=st.data())
def test_a_damaged_training_state_is_noticed(training: Path, tmp_path: Path, data: st.DataObject) -> None:
    policy = InContextPolicy(policy_config(RECIPE))
    optimizer = torch.optim.AdamW(policy.parameters())
    path, where = tmp_path / "state", {"data": None}
    save_state(path, RECIPE, where, policy, optimizer, TrainingState(step=3), {})
    whole = path.read_bytes()
    if data.draw(st.booleans()):
        content = data.draw(damaged(whole))
    else:
        tensors, text = parse_tensors(whole, load)
        content = with_checksum(save(dict(tensors)), data.draw(mutated(parse_object(text))))
    path.write_bytes(content)
    loads_or_refuses(lambda: load_state(path, RECIPE, where, policy, optimizer))
