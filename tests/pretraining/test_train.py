"""Training: it can be killed and resumed to the last bit, and it makes a policy that beats random play."""

from __future__ import annotations

import itertools
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from safetensors.torch import load

from driftformer.agents.incontext import InContext
from driftformer.environments.registry import make_env
from driftformer.errors import InputError
from driftformer.evaluation.evaluate import evaluate
from driftformer.models.checkpoints import read_policy
from driftformer.pretraining import run
from driftformer.pretraining.data import FreshData, halvings
from driftformer.pretraining.dataset import collect_dataset
from driftformer.pretraining.log import Log
from driftformer.pretraining.loop import learning_rate
from driftformer.pretraining.meter import Meter, training_flops_per_token
from driftformer.pretraining.processes import Part
from driftformer.pretraining.recipes import RECIPES, Recipe, recipe_of
from driftformer.pretraining.run import policy_config, train
from driftformer.pretraining.state import TrainingState
from driftformer.storage.tensors import parse_object, read_tensors

SHORT = recipe_of("tiny", steps=12, tuning_steps=4, generation=256, tuning_tokens=1920)


def losses(out: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def weights(out: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(out / "state.safetensors")


class Killed(Exception): ...


@pytest.mark.parametrize("at", [("labels", 8), ("regret", 2)])
def test_a_killed_training_goes_on_with_exactly_the_same_losses(at: tuple[str, int], tmp_path: Path) -> None:
    def kill(report: object) -> None:
        if (report.phase, report.step) == at:  # type: ignore[attr-defined]
            raise Killed

    train(SHORT, tmp_path / "whole", evaluate_every=4, evaluate_problems=16)
    with pytest.raises(Killed):
        train(SHORT, tmp_path / "cut", evaluate_every=4, evaluate_problems=16, on_report=kill, save_every=0.0)
    train(SHORT, tmp_path / "cut", evaluate_every=4, evaluate_problems=16)
    assert losses(tmp_path / "whole") == losses(tmp_path / "cut")
    assert [entry["step"] for entry in losses(tmp_path / "cut")] == [*range(1, 13), *range(1, 5)]
    for name, value in weights(tmp_path / "whole").items():
        assert torch.equal(value, weights(tmp_path / "cut")[name]), name


def test_a_kill_right_after_the_last_step_on_labels_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state is saved within a generation that has nothing left to give."""

    def progress(out: Path) -> dict[str, object]:
        told = parse_object(read_tensors(out / "state.safetensors", load)[1])["progress"]
        return {key: value for key, value in told.items() if key != "seconds"}

    real = run.save_state

    def save_and_die(*about: Any) -> None:
        real(*about)
        if (about[5].step, about[5].tuning_step) == (12, 0):
            raise Killed

    train(SHORT, tmp_path / "whole", evaluate_problems=16)
    monkeypatch.setattr(run, "save_state", save_and_die)
    with pytest.raises(Killed):
        train(SHORT, tmp_path / "cut", evaluate_problems=16, save_every=0.0)
    monkeypatch.setattr(run, "save_state", real)
    assert progress(tmp_path / "cut")["used"]
    train(SHORT, tmp_path / "cut", evaluate_problems=16)
    assert progress(tmp_path / "cut") == progress(tmp_path / "whole")


def test_what_was_measured_is_known_after_the_log_was_deleted(tmp_path: Path) -> None:
    """As a damaged log is to be; the curve stands with the best policy, and its card tells it."""

    def kill(report: object) -> None:
        if (report.phase, report.step) == ("regret", 2):  # type: ignore[attr-defined]
            raise Killed

    def curve(out: Path) -> list[list[object]]:
        return json.loads((out / "best" / "training.json").read_text())["curve"]

    train(SHORT, tmp_path / "whole", evaluate_every=4, evaluate_problems=16)
    with pytest.raises(Killed):
        train(SHORT, tmp_path / "cut", evaluate_every=4, evaluate_problems=16, on_report=kill, save_every=0.0)
    for _ in range(2):
        (tmp_path / "cut" / "log.jsonl").unlink()
        train(SHORT, tmp_path / "cut", evaluate_every=4, evaluate_problems=16)
        assert curve(tmp_path / "cut") == curve(tmp_path / "whole") != []


def test_half_a_line_of_the_log_and_steps_in_waiting_are_no_trouble(tmp_path: Path) -> None:
    train(SHORT, tmp_path, max_minutes=1e-9, evaluate_problems=16)
    recipe = replace(SHORT, generation=128)
    stopped = []

    def stop(report: object) -> None:
        stopped.append(report)
        raise Killed

    with pytest.raises(Killed):
        train(recipe, tmp_path, evaluate_every=100, evaluate_problems=16, save_every=0.0, on_report=stop)
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"phase": "lab')
    train(recipe, tmp_path, evaluate_every=100, evaluate_problems=16)
    assert [entry["step"] for entry in losses(tmp_path)] == [*range(1, 13), *range(1, 5)]


def test_a_training_on_other_data_is_another_training(tmp_path: Path) -> None:
    data = collect_dataset(tmp_path / "data", "tiny", 256, behaviours={"random": 1.0})
    train(SHORT, tmp_path / "run", data=data, max_minutes=1e-9, evaluate_problems=16)
    with pytest.raises(InputError, match=r"of another training \((own|data) is"):
        train(SHORT, tmp_path / "run")


def test_max_minutes_stops_early_and_resumably(tmp_path: Path) -> None:
    stopped = train(SHORT, tmp_path, max_minutes=1e-9, evaluate_problems=16)
    assert stopped.step == 0
    finished = train(SHORT, tmp_path, evaluate_problems=16)
    assert (finished.step, finished.tuning_step) == (12, 4)
    assert train(SHORT, tmp_path, evaluate_problems=16) == replace(finished, seconds=pytest.approx(finished.seconds, 1))


def test_a_state_of_another_recipe_or_a_broken_one_is_refused(tmp_path: Path) -> None:
    train(SHORT, tmp_path, max_minutes=1e-9, evaluate_problems=16)
    with pytest.raises(InputError, match=r"of another training \(rate is 0.003 there and 0.5 here"):
        train(replace(SHORT, rate=0.5), tmp_path)
    path = tmp_path / "state.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match=r"training state .* is broken"):
        train(SHORT, tmp_path)


def test_a_loss_that_is_no_number_stops_the_training_and_keeps_the_last_state(tmp_path: Path) -> None:
    train(SHORT, tmp_path, max_minutes=1e-9, evaluate_problems=16)
    wild = replace(SHORT, rate=1e12, warmup=1)
    with pytest.raises(InputError, match=r"the loss is nan by step \d+"):
        train(wild, tmp_path / "wild", evaluate_problems=16)
    assert not (tmp_path / "wild" / "state.safetensors").exists()
    with pytest.raises(InputError, match=r"the loss is nan by step \d+"):
        train(replace(wild, generation=128), tmp_path / "often", evaluate_problems=16, save_every=0.0)
    kept = weights(tmp_path / "often") if (tmp_path / "often" / "state.safetensors").exists() else {}
    assert all(bool(value.isfinite().all()) for value in kept.values()), "a broken state is never saved"


def test_collect_label_pretrain_tune_and_play_beats_random_by_far(tmp_path: Path) -> None:
    """The whole way on a toy world: at most 40% of random play's regret and less than LinUCB's, in both arm modes."""
    data = collect_dataset(tmp_path / "data", "tiny", 6400, behaviours={"random": 0.7, "linucb": 0.3})
    recipe = recipe_of("tiny", steps=200, tuning_steps=12)
    train(recipe, tmp_path / "run", data=data, evaluate_every=200, evaluate_problems=128)
    policy = InContext(str(tmp_path / "run" / "best"))
    for mode in ("fixed", "resampled"):
        environment = make_env("high", b=0.02, horizon=30, dim=4, arms=4, noise=0.3, arm_mode=mode)
        result = evaluate(environment, [policy, "random", "linucb"], runs=128, seed=7)
        mine, random, linucb = (one.regret_mean for one in result.summary.agents.values())
        assert mine < 0.4 * random
        assert mine < linucb


def test_a_full_gpu_says_what_would_fit_and_keeps_the_last_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no GPU here: its memory is played by numbers, 1 MB for each trajectory out of 100 MB."""
    train(SHORT, tmp_path, max_minutes=1e-9, evaluate_problems=16)
    kept = (tmp_path / "state.safetensors").read_bytes()
    for name, value in (
        ("empty_cache", None),
        ("reset_peak_memory_stats", None),
        ("mem_get_info", (100_000_000, 0)),
        ("memory_allocated", 0),
        ("max_memory_allocated", 1_000_000),
    ):
        monkeypatch.setattr(torch.cuda, name, lambda value=value: value)

    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("driftformer.pretraining.step.Stepper.accumulate", full)
    with pytest.raises(InputError, match=r"tokens is 3840, .* about --tokens 2400 would fit"):
        train(SHORT, tmp_path, evaluate_problems=16)
    assert (tmp_path / "state.safetensors").read_bytes() == kept


@pytest.mark.parametrize(("form", "backbone"), [("paper", "gpt2"), ("pointer", "relu"), ("paper", "relu")])
def test_other_forms_and_backbones_train_too(form: str, backbone: str, tmp_path: Path) -> None:
    recipe = recipe_of("tiny", form=form, backbone=backbone, steps=60, tuning_steps=0, warmup=5)
    train(recipe, tmp_path, evaluate_every=60, evaluate_problems=64)
    entries = losses(tmp_path)
    first, last = (sum(entry["loss"] for entry in part) / 10 for part in (entries[:10], entries[-10:]))
    assert last < first - 0.01


def test_a_training_may_begin_with_a_policy_of_the_same_sizes(tmp_path: Path) -> None:
    train(SHORT, tmp_path / "first", evaluate_problems=16)
    begun = replace(SHORT, start=str(tmp_path / "first" / "best"), steps=0, tuning_steps=0)
    train(begun, tmp_path / "second")
    first, second = read_policy(tmp_path / "first" / "best").state_dict(), weights(tmp_path / "second")
    for name, value in first.items():
        assert torch.equal(value, second[f"weights.{name}"]), name
    with pytest.raises(InputError, match=r"whose width is 32; this recipe's is 16"):
        train(replace(begun, width=16), tmp_path / "third")


def test_a_policy_that_imitates_is_kept_whatever_its_regret(tmp_path: Path) -> None:
    recipe = replace(SHORT, labels="random", tuning_steps=0)
    done = train(recipe, tmp_path, evaluate_every=4, evaluate_problems=16)
    assert done.best_at == done.step == 12


def test_trajectories_are_short_at_first_where_a_recipe_says_so() -> None:
    recipe = recipe_of("high", steps=100)
    stream = FreshData(recipe, 32, torch.device("cpu"), Part(recipe.shards))
    horizons = [stream.world_of(0, step).environment.horizon for step in (0, 9, 10, 19, 20, 29, 30, 99)]
    assert horizons == [25, 25, 50, 50, 100, 100, 200, 200]
    batches = {horizon: 8 * stream.sizes_of(stream.world_of(0, step))[0] for step, horizon in ((0, 25), (99, 200))}
    tokens = [batch * (2 * horizon - 1) for horizon, batch in batches.items()]
    assert all(0.95 * recipe.tokens < count <= recipe.tokens for count in tokens), "a step has as many tokens"
    assert halvings(0, recipe_of("cosine")) == 0


def test_learning_rate_rises_then_falls_to_a_twentieth() -> None:
    rates = [learning_rate(step, 100, 10, 1.0) for step in range(101)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == rates[9] == pytest.approx(1.0)
    assert rates[100] == pytest.approx(0.05)
    assert all(later <= earlier for earlier, later in itertools.pairwise(rates[10:]))


def test_counted_operations_are_those_of_the_paper_size() -> None:
    """16 layers of width 256 at 200 tokens are 80 million operations a token."""
    config = policy_config(replace(RECIPES["cosine"], layers=16, heads=16))
    assert training_flops_per_token(config, 200) == pytest.approx(80.4e6, rel=1e-2)
    meter = Meter()
    meter.add(1000, 2e12, 2.0)
    assert meter.read() == (500, 1.0)
    assert meter.read() == (0, 0)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_describes_a_policy(name: str) -> None:
    recipe = RECIPES[name]
    assert recipe.name == name
    config = policy_config(recipe)
    assert config.form == recipe.form
    assert config.horizon in (30, 200, 600, 1000, 1500)


@pytest.mark.parametrize("name", [name for name in RECIPES if name not in ("tiny", "paper", "drift")])
def test_every_recipe_runs_in_small(name: str, tmp_path: Path) -> None:
    """Its worlds, behaviours and labels with a toy model: one step on labels, one on regret, one judgement."""
    worlds = "few-mdps" if name == "mdp" else RECIPES[name].worlds  # of its 13 kinds each has a thousand steps
    horizon = policy_config(recipe_of(name, worlds=worlds)).horizon
    sizes = {"layers": 1, "heads": 2, "width": 16, "tokens": 8 * horizon, "generation": 4, "tuning_tokens": 8 * horizon}
    recipe = recipe_of(name, **sizes, steps=1, warmup=1, tuning_steps=min(1, RECIPES[name].tuning_steps))
    recipe = replace(recipe, start=None, worlds=worlds)
    done = train(recipe, tmp_path, evaluate_every=1, evaluate_problems=2)
    assert (done.step, done.tuning_step) == (1, recipe.tuning_steps)
    assert done.best is not None
    assert 0 < done.best < 3


def test_a_recipe_refuses_what_cannot_be() -> None:
    with pytest.raises(InputError, match="did you mean 'cosine'"):
        recipe_of("cosin")
    with pytest.raises(InputError, match="own is 2; give a finite number of at least 0 and at most 1"):
        Recipe(name="x", summary="", worlds="tiny", steps=1, own=2)
    with pytest.raises(InputError, match="rate"):
        recipe_of("tiny", rate=-1.0)


def test_what_tensorboard_cannot_write_is_said_once_and_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Accelerator(cpu=True)
    log = Log(tmp_path, TrainingState())
    log._tracker.log({"before": 1.0}, step=0)
    broken = OSError(1, "Operation not permitted", b"events.out")
    writer = log._tracker.tracker.file_writer.event_writer._async_writer  # type: ignore[union-attr]

    def refuse(*_: object) -> None:
        raise broken

    def tell() -> None:
        log._tracker.log({"after": 1.0}, step=1)

    writer._writer.write = refuse
    with pytest.raises(OSError, match="not permitted"):
        tell()
    writer._worker.join()
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("tracker", ["wandb", "trackio"])
def test_another_tracker_is_told_losses_and_regret_by_its_own_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tracker: Any
) -> None:
    with pytest.raises(InputError, match=f"{tracker} is not installed; pip install {tracker}"):
        train(recipe_of("tiny", steps=2, tuning_steps=0), tmp_path / "without", evaluate_problems=64, tracker=tracker)
    begun: list[dict[str, Any]] = []
    told: list[tuple[dict[str, float], int]] = []
    ended: list[bool] = []

    def init(**options: Any) -> SimpleNamespace:
        begun.append(options)
        return SimpleNamespace(log=lambda values, step: told.append((values, step)), finish=lambda: ended.append(True))

    monkeypatch.setitem(sys.modules, tracker, SimpleNamespace(init=init))
    out = tmp_path / "mine"
    train(recipe_of("tiny", steps=2, tuning_steps=0), out, evaluate_problems=64, evaluate_every=1, tracker=tracker)
    assert [(options["project"], options["name"]) for options in begun] == [("driftformer", "mine")]
    assert [step for _, step in told] == [1, 2]
    assert all({"loss/labels", "rate", "regret"} <= set(values) for values, _ in told)
    assert ended
    assert not (out / "tensorboard").exists()
