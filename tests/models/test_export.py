"""Exported policies: in onnxruntime they do what they do in torch, round by round, and the player of the docs works."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from driftformer.agents.base import ProblemShape
from driftformer.agents.incontext import InContext, load_policy
from driftformer.cli import main
from driftformer.errors import InputError
from driftformer.models.checkpoints import new_policy, save_policy
from driftformer.models.configuration import PolicyConfig
from driftformer.models.export import export_policy
from driftformer.policies import digest_of
from driftformer.problem import Observation
from driftformer.randomness import Randomness

for name in ("onnxscript", "onnxruntime"):
    pytest.importorskip(name, reason="needs pip install 'driftformer[export]'")

ROOT = Path(__file__).parents[2]
Array = Any


def session_of(path: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options)


@pytest.fixture(scope="module")
def drift(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "drift.onnx"
    main(["export", "drift", "--dim", "6", "--out", str(path)])
    return path


def differences(
    session: Any, agent: InContext, dim: int, rounds: int, dtype: torch.dtype, arms: Callable[[Any], int]
) -> list[float]:
    """How far the probabilities of a graph and of the agent itself are apart, in each round of a changing world."""
    rng = np.random.default_rng(0)
    most = agent.config.arms if agent.config.form == "paper" else 100
    state = agent.init(ProblemShape(1, rounds, min(most, 10), dim, torch.device("cpu"), dtype))
    given = {one.name: one for one in session.get_inputs()}
    shape = [size if isinstance(size, int) else 0 for size in given["state"].shape]
    kind = np.float64 if "double" in given["state"].type else np.float32
    held = np.zeros((1, *shape[1:]), kind)
    told: dict[str, Array] = {"played": np.zeros((1, dim)), "reward": np.full(1, np.nan), "arm": np.zeros(1, np.int64)}
    told = {name: value for name, value in told.items() if name in given}
    stream, weights, found = Randomness(0, size=1, dtype=dtype).stream("agent"), rng.normal(size=dim), []
    for t in range(rounds):
        features = rng.uniform(-1, 1, (1, arms(rng), dim))
        likely, held = session.run(None, {"features": features, "state": held, **told})
        seen = Observation(torch.from_numpy(features).to(dtype))
        with torch.inference_mode():
            arm, info = agent.act(state, seen, stream)
            expected = agent.probabilities(seen, info).numpy()
            weights = -weights if t == rounds // 2 else weights
            reward = float(features[0, arm] @ weights + 0.3 * rng.normal())
            state = agent.update(state, seen, arm, torch.tensor([reward], dtype=dtype), info)
        found.append(float(np.abs(likely - expected).max()))
        now = {"played": features[:, int(arm)], "reward": np.array([reward]), "arm": arm.numpy()}
        told = {name: now[name] for name in told}
    return found


def test_a_bank_and_its_network_are_those_of_torch_over_200_rounds_with_any_number_of_arms(drift: Path) -> None:
    found = differences(session_of(drift), load_policy("drift"), 6, 200, torch.float64, lambda rng: rng.integers(1, 12))
    assert max(found) < 1e-6  # the promise is 1e-5


@pytest.mark.parametrize("form", ["pointer", "paper"])
def test_a_history_of_keys_and_values_is_that_of_torch(form: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    sizes = {"dim": 5, "arms": 4, "horizon": 30, "layers": 2, "heads": 2, "width": 16}
    save_policy(new_policy(PolicyConfig(form, **sizes)), tmp_path / "policy", torch.float32)  # type: ignore[arg-type]
    source = str(tmp_path / "policy")
    export_policy(f"policy:{source}", tmp_path / "policy.onnx", 3)
    arms = (lambda rng: 4) if form == "paper" else (lambda rng: rng.integers(1, 7))
    found = differences(session_of(tmp_path / "policy.onnx"), load_policy(source), 3, 30, torch.float32, arms)
    assert max(found) < 1e-5


def test_problems_of_a_batch_do_not_meet_and_a_reward_of_nan_teaches_nothing(drift: Path) -> None:
    session, rng = session_of(drift), np.random.default_rng(1)
    features, played = rng.normal(size=(3, 4, 6)), rng.normal(size=(3, 6))
    state = np.zeros((3, session.get_inputs()[3].shape[1]))
    rewards = [np.full(3, np.nan), np.array([1.0, np.nan, 3.0]), np.array([2.0, np.nan, np.nan])]
    alone = [state[:1]] * 3
    for reward in rewards:
        likely, state = session.run(None, {"features": features, "played": played, "reward": reward, "state": state})
        for row in range(3):
            at = slice(row, row + 1)
            feed = {"features": features[at], "played": played[at], "reward": reward[at], "state": alone[row]}
            one, alone[row] = session.run(None, feed)
            np.testing.assert_allclose(likely[at], one, atol=1e-9)
    feed = {
        "features": features[1:2],
        "played": played[1:2],
        "reward": np.full(1, np.nan),
        "state": np.zeros_like(state[:1]),
    }
    np.testing.assert_allclose(likely[1:2], session.run(None, feed)[0], atol=1e-9)
    assert np.abs(likely[0] - likely[1]).max() > 1e-4


def test_the_player_of_the_docs_learns_also_from_late_rewards_and_is_printed_there(
    drift: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    player = import_module("onnx_policy").Policy(drift)
    weights, rng, late, gained = np.array([1.0, -1, 0.5, 0, 0, 2]), np.random.default_rng(0), [], []
    for t in range(120):
        features = rng.uniform(-1, 1, (5, 6))
        arm, probability = player.act(features)
        assert 0 < probability <= 1
        worth = features @ weights
        gained.append(worth[arm] - worth.mean())
        late.append((features[arm], worth[arm]))
        if t % 3 == 2:  # three rewards at once
            for outcome in late:
                player.update(*outcome)
            late = []
    assert np.mean(gained[60:]) > 1.2
    code = (ROOT / "examples" / "onnx_policy.py").read_text().split("\n\n", 1)[1].strip()
    assert code in (ROOT / "docs" / "policies.md").read_text()


def test_a_file_says_what_it_holds(drift: Path) -> None:
    said = session_of(drift).get_modelmeta().custom_metadata_map
    assert (said["policy"], said["form"], said["dim"]) == ("drift", "query", "6")
    assert said["weights"] == digest_of("drift")
    assert re.fullmatch(r"\d+\.\d+\.\d+", said["driftformer"])


@pytest.mark.parametrize(
    ("source", "out", "dim", "reason"),
    [
        ("drift", "drift.pt", None, r"names? a file that ends in \.onnx"),
        ("drift", ".", None, r"names? a file that ends in \.onnx"),
        ("drift", "a.onnx", 257, "dim is 257; give a whole number of at least 1 and at most 256"),
        ("cosine", "a.onnx", 33, "at most 32"),
        ("drfit", "a.onnx", None, "did you mean 'drift'"),
    ],
)
def test_what_cannot_be_exported_is_refused_at_once(
    source: str, out: str, dim: int | None, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=reason):
        export_policy(source, tmp_path / out, dim)
    assert not list(tmp_path.iterdir())


def test_a_file_where_a_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "full.csv").touch()
    for out in ("full.csv/a.onnx", "full.csv/b/a.onnx"):
        with pytest.raises(InputError, match=r"but '.*full\.csv' is a file; name a folder"):
            export_policy("drift", tmp_path / out)


def test_without_the_extra_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(InputError, match=r"pip install 'driftformer\[export\]'"):
        export_policy("drift", tmp_path / "a.onnx")
