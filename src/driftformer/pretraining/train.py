"""Supervised pretraining (Equation sup-train-goal), then fine-tuning on regret, as one training that can be resumed.

OUT/state.safetensors   everything needed to go on
OUT/log.jsonl           one line a step: loss, learning rate, and regret where it was measured
OUT/tensorboard/        the same for TensorBoard
OUT/events.jsonl        what happened: starts, resumes, ends (see `events.py`)
OUT/best/               the policy with the least regret so far; where it imitates an expert, the latest
"""

from __future__ import annotations

import functools
import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor
from torch.nn import functional

from driftformer.errors import InputError, require_count, require_real
from driftformer.models.checkpoints import policy_sizes, read_policy, save_policy
from driftformer.models.configuration import PolicyConfig, tokens_in
from driftformer.models.incontext import InContextPolicy, placed
from driftformer.policies import TRAINING, digest_of, folder_of
from driftformer.pretraining.collect import check_behaviours
from driftformer.pretraining.dataset import StoredStream
from driftformer.pretraining.label import OPTIMAL, check_labels
from driftformer.pretraining.log import Log
from driftformer.pretraining.memory import fitting_tokens
from driftformer.pretraining.meter import Meter, training_flops_per_token
from driftformer.pretraining.play import Player
from driftformer.pretraining.processes import part_of
from driftformer.pretraining.recipes import Recipe
from driftformer.pretraining.state import Progress, load_state, save_state
from driftformer.pretraining.step import Stepper
from driftformer.pretraining.stream import FreshStream, Stream
from driftformer.pretraining.tuning import Average, Simulator, regret_loss
from driftformer.pretraining.validation import Judge
from driftformer.pretraining.worlds import describe, worlds_of
from driftformer.simulation.rollout import check_device
from driftformer.storage.events import sitting
from driftformer.storage.files import read_json, tidy, write_json


@dataclass(frozen=True)
class Report:
    """What a training tells while it runs."""

    phase: str  # labels or regret
    step: int
    steps: int
    loss: float
    tokens_per_second: float
    teraflops: float
    regret: float | None  # as a share of the uniform policy's


def learning_rate(step: int, steps: int, warmup: int, highest: float) -> float:
    """Linear warm-up, then a cosine down to a twentieth of the highest rate."""
    if step < warmup:
        return highest * (step + 1) / warmup
    done = min(1.0, (step - warmup) / max(1, steps - warmup))
    return highest * (0.05 + 0.95 * (1 + math.cos(math.pi * done)) / 2)


def label_loss(
    model: Callable[..., Tensor], features: Tensor, arms: Tensor, rewards: Tensor, labels: Tensor
) -> tuple[Tensor, Tensor]:
    """Minus the log-likelihood of the labels, per round (sup-train-goal)."""
    logits = model(features, arms, rewards)
    loss = functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten())
    return loss, loss


def tuning_loss(
    rollouts: int,
    future: float,
    average: Average,
    model: Callable[..., Tensor],
    features: Tensor,
    arms: Tensor,
    rewards: Tensor,
    gaps: Tensor,
) -> tuple[Tensor, Tensor]:
    """Regret, as `regret_loss` has it."""
    return regret_loss(model(features, arms, rewards), arms, gaps, rollouts, future, average)


def policy_config(recipe: Recipe) -> PolicyConfig:
    """The policy that a recipe asks for: large enough for all of its worlds."""
    environments = [world.environment for world in worlds_of(recipe.worlds)]
    return PolicyConfig(
        form=recipe.form,
        backbone=recipe.backbone,
        dim=max(environment.dim for environment in environments),
        arms=max(environment.arms for environment in environments),
        horizon=max(environment.horizon for environment in environments),
        layers=recipe.layers,
        heads=recipe.heads,
        width=recipe.width,
    )


def train(
    recipe: Recipe,
    out: Path,
    *,
    device: str = "cpu",
    max_minutes: float = math.inf,
    evaluate_every: int = 500,
    evaluate_problems: int = 512,
    data: Path | None = None,
    save_every: float = 60.0,
    on_report: Callable[[Report], None] | None = None,
) -> Progress:
    """Train as the recipe says, or go on with what `out` holds; stops early, resumably, after `max_minutes`.

    Trajectories are made while they are used, or come from the dataset `data`. The state is saved every `save_every`
    seconds, and at the end.
    """
    check_device(device)
    require_real("max_minutes", max_minutes, 0.0, above=True, most=math.inf)
    require_count("evaluate_every", evaluate_every)
    require_count("evaluate_problems", evaluate_problems)
    check_behaviours(recipe.behaviours)
    check_labels(recipe.labels, worlds_of(recipe.worlds))
    if data is not None:  # what is stored was played by others, all rounds of it
        recipe = replace(recipe, own=0.0, short=0.0)
    training = _Training(recipe, Path(out), device, evaluate_every, evaluate_problems, data, on_report, save_every)
    with sitting(Path(out) if training.is_main else None, recipe=recipe.name, **training.where()) as events:
        progress = training.run(max_minutes)
        events.tell("saved", **training.where())
    return progress


class _Training:
    def __init__(
        self,
        recipe: Recipe,
        out: Path,
        device: str,
        evaluate_every: int,
        evaluate_problems: int,
        data: Path | None,
        on_report: Callable[[Report], None] | None,
        save_every: float,
    ) -> None:
        self._recipe, self._out, self._on_report = recipe, out, on_report
        self._every = evaluate_every
        asked = torch.device(device)
        on_cpu = asked.type == "cpu"
        if asked.index is not None and not on_cpu:
            torch.cuda.set_device(asked)
        self._accelerator = Accelerator(mixed_precision="no" if on_cpu else "bf16", cpu=on_cpu)
        self._device: torch.device = self._accelerator.device
        self._policy = self._new_policy()
        self._optimizer = torch.optim.AdamW(
            _groups(self._policy, recipe.weight_decay),
            lr=recipe.rate,
            betas=(0.9, 0.95),
            fused=not on_cpu,
            capturable=not on_cpu,
        )
        self._part = part_of(self._accelerator, recipe.shards)
        self._stream = self._open(data)
        self._judge = Judge(self._stream.worlds, evaluate_problems, self._policy.config.dim, self._device)
        dim = self._policy.config.dim
        self._simulator = Simulator(self._stream.worlds, recipe, dim, self._device, self._part)
        self._setting = {
            "data": self._stream.identity,
            "worlds described": describe(self._stream.worlds),
            "weights at the start": None if recipe.start is None else digest_of(recipe.start),
        }
        self._progress = Progress()
        tidy(out)
        self._state = out / "state.safetensors"
        if self._state.exists():
            self._progress = load_state(self._state, recipe, self._setting, self._policy, self._optimizer)
            self._check_best()
        self._player = Player(self._policy)
        if not on_cpu:
            torch.set_float32_matmul_precision("high")
            for block in getattr(self._policy.backbone, "h", []):  # one block's code serves all of them
                block.compile(dynamic=False)
        self._model = self._accelerator.prepare(self._policy)
        self._stepper = Stepper(self._accelerator, self._model, self._optimizer)
        self._regret_loss = functools.partial(tuning_loss, recipe.tuning_rollouts, recipe.tuning_future, self._together)
        self._meter = Meter()
        self._began = self._mark = time.perf_counter()
        self._log = Log(out, self._progress) if self._accelerator.is_main_process else None
        self._saved_at, self._save_every = self._began, save_every

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that writes."""
        return bool(self._accelerator.is_main_process)

    def where(self) -> dict[str, Any]:
        """What its events tell of where it stands."""
        at = {"step": self._progress.step, "tuning_step": self._progress.tuning_step}
        return {**at, "device": self._device.type, "processes": self._accelerator.num_processes}

    def _open(self, data: Path | None) -> Stream:
        dim = self._policy.config.dim
        if data is None:
            return FreshStream(self._recipe, dim, self._device, self._part)
        return StoredStream(data, self._recipe, dim, self._device, self._part)

    def _new_policy(self) -> InContextPolicy:
        with torch.random.fork_rng():
            torch.manual_seed(self._recipe.seed)
            policy = InContextPolicy(policy_config(self._recipe))
        if self._recipe.start is not None:
            _take_weights(policy, self._recipe.start)
        return placed(policy, self._device, torch.float32)

    def run(self, max_minutes: float) -> Progress:
        deadline = self._began + 60 * max_minutes
        phase = "labels"
        try:
            while self._progress.step < self._recipe.steps and not self._is_over(deadline):
                self._one_generation()
                self._save_now_and_then()
            phase = "regret"
            while self._tuning_left() and not self._is_over(deadline):
                self._one_tuning_step()
                self._save_now_and_then()
        except torch.OutOfMemoryError as error:
            raise InputError(self._too_large(phase)) from error
        self._save()
        return self._progress

    def _is_over(self, deadline: float) -> bool:
        """Whether time is up; all processes agree on it."""
        over = torch.tensor(float(time.perf_counter() >= deadline), device=self._device)
        return float(self._together(over)) > 0

    def _together(self, value: Tensor) -> Tensor:
        """A number's mean over all processes."""
        if self._accelerator.num_processes == 1:
            return value
        mean: Tensor = self._accelerator.reduce(value.detach().clone(), "mean")
        return mean

    def _tuning_left(self) -> bool:
        return self._progress.step >= self._recipe.steps and self._progress.tuning_step < self._recipe.tuning_steps

    def _one_generation(self) -> None:
        recipe, progress = self._recipe, self._progress
        world = self._stream.world_of(progress.generation, progress.step)
        for batch in self._stream.generation(progress.generation, progress.step, self._player):
            rate = learning_rate(progress.step, recipe.steps, recipe.warmup, recipe.rate)
            inputs = (batch.features, batch.arms, batch.rewards, batch.labels)
            loss = self._together(self._stepper.accumulate(label_loss, inputs))
            self._stepper.descend(rate, recipe.clip)
            self._count(len(batch.arms), world.environment.horizon)
            progress.step += 1
            judged = progress.step % self._every == 0 or progress.step == recipe.steps
            if judged or progress.step % 10 == 0:
                self._tell("labels", progress.step, recipe.steps, loss, rate, judged)
            elif self._log is not None:
                self._log.keep("labels", progress.step, loss, rate)
            if progress.step >= recipe.steps:
                break
        progress.generation += 1

    def _one_tuning_step(self) -> None:
        recipe, progress = self._recipe, self._progress
        if progress.tuning_step == 0:
            self._sharpen(recipe.tuning_sharpen)
        rolled = self._simulator.roll(progress.tuning_step, self._player)
        rate = learning_rate(progress.tuning_step, recipe.tuning_steps, recipe.warmup // 10, recipe.tuning_rate)
        rows, horizon = rolled.played.arms.shape
        every = torch.arange(rows, device=self._device).view(rolled.count, self._part.count, -1)  # [R, S, problems]
        parts = torch.tensor_split(every, min(every.shape[2], recipe.tuning_updates), dim=2)  # some of every shard
        regrets = []
        for chosen in (part.flatten() for part in parts):
            inputs = (
                rolled.problems.features[chosen],
                rolled.played.arms[chosen],
                rolled.played.rewards[chosen],
                rolled.gaps[chosen],
            )
            regrets.append(self._stepper.accumulate(self._regret_loss, inputs))
            self._stepper.descend(rate, recipe.tuning_clip)
        self._count(rows, horizon)
        progress.tuning_step += 1
        often = max(1, self._every // 10)
        judged = progress.tuning_step % often == 0 or progress.tuning_step == recipe.tuning_steps
        regret = self._together(torch.stack(regrets).mean())
        self._tell("regret", progress.tuning_step, recipe.tuning_steps, regret, rate, judged)

    @torch.no_grad()
    def _sharpen(self, factor: float) -> None:
        """Multiply all logits."""
        for parameter in self._policy.head.parameters():
            parameter.mul_(factor)

    def _count(self, rows: int, horizon: int) -> None:
        """Add up the tokens of a step over all processes."""
        length = tokens_in(self._recipe.form, horizon)
        tokens = int(rows * length * self._accelerator.num_processes)
        self._progress.tokens += tokens
        self._meter.add(tokens, tokens * training_flops_per_token(self._policy.config, length), 0.0)

    def _lap(self) -> float:
        """Seconds since the last lap, which count as training time."""
        now = time.perf_counter()
        seconds, self._mark = now - self._mark, now
        self._progress.seconds += seconds
        return seconds

    def _tell(self, phase: str, step: int, steps: int, loss: Tensor, rate: float, judged: bool) -> None:
        value = float(loss)  # waits for the device
        self._meter.add(0, 0.0, self._lap())
        self._check(value, step)
        speed, teraflops = self._meter.read()
        regret = self._measure(step if phase == "labels" else self._recipe.steps + step) if judged else None
        self._lap()  # judging is training time, but says nothing about speed
        if self._log is not None:
            self._log.keep(phase, step, loss, rate, regret)
            self._log.write(step if phase == "labels" else self._recipe.steps + step, speed, teraflops, regret)
        if self._on_report is not None and self._accelerator.is_main_process:
            self._on_report(Report(phase, step, steps, value, speed, teraflops, regret))

    def _check(self, loss: float, step: int) -> None:
        """Stop where the loss is no number, before a state that holds none is saved."""
        if not math.isfinite(loss):
            raise InputError(
                f"the loss is {loss} by step {step}; the last saved state is from before: begin again in a new folder "
                "with a lower rate"
            )

    def _measure(self, at: int) -> float:
        """Measure regret, keep the policy if it is the best so far; one that imitates an expert in any case."""
        share = self._judge.share(self._player)
        imitates = self._recipe.labels != OPTIMAL and not self._progress.tuning_step
        if self._progress.best is None or share <= self._progress.best or imitates:
            self._progress.best, self._progress.best_at = share, at
            if self._accelerator.is_main_process:
                save_policy(self._policy, self._out / "best")
                write_json(self._out / "best" / TRAINING, self._made())
        return share

    def _check_best(self) -> None:
        """Refuse to go on beside a best policy that is gone or broken: it would never be made again."""
        if self._progress.best is None:
            return
        made, remedy = self._out / "best" / TRAINING, f"put it back from a copy, or delete {self._out} and train again"
        try:
            read_policy(self._out / "best")
        except InputError as error:
            raise InputError(f"{error}: {remedy}") from None
        if not made.exists():
            raise InputError(f"file {made} is missing; {remedy}")
        if not isinstance(read_json(made, remedy=remedy).get("progress"), dict):
            raise InputError(f"file {made} is broken (it does not tell the training's progress); {remedy}")

    def _made(self) -> dict[str, Any]:
        """How the policy was made, as its card will tell."""
        cuda = self._device.type == "cuda"
        return {
            "recipe": asdict(self._recipe),
            "policy": policy_sizes(self._policy.config),
            "parameters": sum(parameter.numel() for parameter in self._policy.parameters() if parameter.requires_grad),
            "worlds": describe(self._stream.worlds),
            "data": self._stream.identity,
            "processes": self._accelerator.num_processes,
            "progress": {key: value for key, value in asdict(self._progress).items() if not key.startswith("log_")},
            "device": torch.cuda.get_device_name() if cuda else "CPU core",
            "torch": torch.__version__,
        }

    def _save_now_and_then(self) -> None:
        if time.perf_counter() - self._saved_at >= self._save_every:
            self._save()

    def _save(self) -> None:
        self._lap()
        progress = self._progress
        if self._log is not None and self._log.latest is not None:
            self._check(float(self._log.latest), progress.tuning_step or progress.step)
        if self._accelerator.is_main_process:
            best = self._out / "best" / TRAINING
            if best.exists():  # the time and the steps spent, also after the best, which stays as it was written
                kept = read_json(best)["progress"]
                made = self._made()
                made["progress"] |= {"best": kept["best"], "best_at": kept["best_at"]}
                write_json(best, made)
            if self._log is not None:
                self._log.mark(progress)
            save_state(self._state, self._recipe, self._setting, self._policy, self._optimizer, progress)
        self._saved_at = time.perf_counter()

    def _too_large(self, phase: str) -> str:
        """What to say when the device's memory is full; the last saved state is untouched."""
        horizon = max(world.environment.horizon for world in self._stream.worlds)
        try:
            fits = fitting_tokens(self._model, self._policy.config, horizon)
        except torch.OutOfMemoryError:
            fits = 0
        option, given = "tokens", self._recipe.tokens
        if phase == "regret":
            option, given, fits = "tuning_tokens", self._recipe.tuning_tokens, fits * self._recipe.tuning_updates
        flag = option.replace("_", "-")
        hint = f"about --{flag} {fits} would fit" if fits else "not one trajectory fits: give fewer layers or width"
        return f"{option} is {given}, too many for this device's memory; {hint}; with that, go on in the same folder"


def _take_weights(policy: InContextPolicy, start: str) -> None:
    """Begin with the weights of a policy that is there already; it must have the same sizes."""
    given = read_policy(folder_of(start))
    asked, found = policy_sizes(policy.config), policy_sizes(given.config)
    for name, size in asked.items():
        if found[name] != size:
            raise InputError(f"start is '{start}', whose {name} is {found[name]}; this recipe's is {size}")
    policy.load_state_dict(given.state_dict())


def _groups(policy: InContextPolicy, decay: float) -> list[dict[str, Any]]:
    """Matrices decay, vectors do not."""
    trained = [parameter for parameter in policy.parameters() if parameter.requires_grad]
    return [
        {"params": [parameter for parameter in trained if parameter.ndim >= 2], "weight_decay": decay},
        {"params": [parameter for parameter in trained if parameter.ndim < 2], "weight_decay": 0.0},
    ]


if __name__ == "__main__":  # accelerate launch -m driftformer.pretraining.train RECIPE --out FOLDER
    from driftformer.cli import main

    main(["pretrain", *sys.argv[1:]])
