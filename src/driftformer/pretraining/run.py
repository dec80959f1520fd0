"""A training from the first step to the last: set up or resumed, validated, logged, saved.

OUT/state.safetensors   everything needed to go on
OUT/log.jsonl           a line for each step: loss, learning rate, and regret where it was measured
OUT/tensorboard/        the same for TensorBoard, unless another tracker is told
OUT/events.jsonl        what happened: starts, resumes, ends (see `storage/events.py`)
OUT/best/               the policy with the least regret so far; where it imitates an expert, the latest
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from driftformer.errors import InputError, brought_by, require_count, require_real
from driftformer.models.checkpoints import Policy, new_policy, policy_sizes, read_policy, save_policy
from driftformer.models.configuration import PolicyConfig, tokens_in
from driftformer.models.incontext import InContextPolicy, placed
from driftformer.policies import TRAINING, digest_of, folder_of
from driftformer.pretraining.data import FreshData, OwnRollouts, TrainingData
from driftformer.pretraining.dataset import StoredData
from driftformer.pretraining.labels import OPTIMAL, check_labels
from driftformer.pretraining.log import Log, Tracker, curve_of
from driftformer.pretraining.loop import Loop, Step
from driftformer.pretraining.meter import Meter, fitting_tokens, training_flops_per_token
from driftformer.pretraining.play import Player
from driftformer.pretraining.players import player_of
from driftformer.pretraining.processes import part_of
from driftformer.pretraining.query import AHEAD, QueryLoop
from driftformer.pretraining.recipes import Recipe
from driftformer.pretraining.state import TrainingState, load_state, save_state
from driftformer.pretraining.step import Stepper
from driftformer.pretraining.validation import Validation
from driftformer.pretraining.worlds import describe, worlds_of
from driftformer.problem import check_environment
from driftformer.randomness import one_thread
from driftformer.simulation.collect import check_behaviours
from driftformer.simulation.rollout import check_device
from driftformer.storage.events import sitting
from driftformer.storage.files import read_json, tidy, write_json

with brought_by("train"):
    from accelerate import Accelerator


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
    tracker: Tracker = "tensorboard",
    on_report: Callable[[Report], None] | None = None,
) -> TrainingState:
    """Train as the recipe says, or go on with what `out` holds; stops early, resumably, after `max_minutes`.

    Trajectories are made while they are used, or come from the dataset `data`. The state is saved every `save_every`
    seconds, and at the end. A step that is likely to end after `max_minutes` is not begun.
    """
    deadline = time.perf_counter() + 60 * max_minutes
    check_device(device)
    require_real("max_minutes", max_minutes, 0.0, above=True, most=math.inf)
    require_count("evaluate_every", evaluate_every)
    require_count("evaluate_problems", evaluate_problems)
    check_behaviours(recipe.behaviours)
    for world in worlds_of(recipe.worlds):
        check_environment(world.environment)
    check_labels(recipe.labels, worlds_of(recipe.worlds))
    if data is not None and recipe.reads_statistics:
        raise InputError("data is set, but this form learns from what it plays itself; leave --data out")
    if data is not None:  # what is stored was played by others, all rounds of it
        recipe = replace(recipe, own=0.0, short=0.0)
    with one_thread():
        run = _Run(recipe, Path(out), device, evaluate_every, evaluate_problems, data, on_report, save_every, tracker)
        with sitting(Path(out) if run.is_main else None, recipe=recipe.name, **run.where()) as events:
            state = run.to(deadline)
            events.tell("saved", **run.where())
        run.close()
    return state


class _Run:
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
        tracker: Tracker,
    ) -> None:
        self._recipe, self._out, self._on_report = recipe, out, on_report
        self._every = evaluate_every
        asked = torch.device(device)
        on_cpu = asked.type == "cpu"
        if asked.index is not None and not on_cpu:
            torch.cuda.set_device(asked)
        whole = on_cpu or recipe.reads_statistics  # in 8 bits the differences between arms would be lost
        self._accelerator = Accelerator(mixed_precision="no" if whole else "bf16", cpu=on_cpu)
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
        dim = self._policy.config.dim
        self._data = self._open(data)
        self._validation = Validation(self._data.worlds, evaluate_problems, dim, self._device)
        self._setting = {
            "data": self._data.identity,
            "worlds described": describe(self._data.worlds),
            "weights at the start": None if recipe.start is None else digest_of(recipe.start),
        }
        self._state, earlier = TrainingState(), dict[str, Tensor]()
        tidy(out)
        self._path = out / "state.safetensors"
        if self._path.exists():
            self._state, earlier = load_state(self._path, recipe, self._setting, self._policy, self._optimizer)
            self._check_best()
        self._player = player_of(self._policy)
        if not on_cpu:
            torch.set_float32_matmul_precision("high")
            policy = self._policy
            blocks = getattr(policy.backbone, "h", []) if isinstance(policy, InContextPolicy) else policy.blocks
            for block in blocks:
                block.compile(dynamic=recipe.reads_statistics)  # one block's code for all
        self._model = self._accelerator.prepare(self._policy)
        self._loop = self._make_loop(earlier)
        self._meter = Meter()
        self._began = self._mark = time.perf_counter()
        self._log = Log(out, self._state, tracker) if self.is_main else None
        self._saved_at, self._save_every = self._began, save_every

    def close(self) -> None:
        if self._log is not None:
            self._log.close()

    def _make_loop(self, earlier: dict[str, Tensor]) -> Loop | QueryLoop:
        recipe, worlds, where = self._recipe, self._data.worlds, (self._device, self._part)
        shared = (self._part, self._together, self._state)
        if not isinstance(self._player, Player):
            stepper = Stepper(self._accelerator, self._model, self._optimizer, captures=False)
            ahead = AHEAD if self._device.type == "cuda" else 1
            return QueryLoop(recipe, self._model, worlds, self._player, stepper, *shared, self._device, ahead=ahead)
        assert isinstance(self._policy, InContextPolicy)
        stepper = Stepper(self._accelerator, self._model, self._optimizer)
        rollouts = OwnRollouts(worlds, recipe, self._policy.config.dim, *where)
        return Loop(recipe, self._policy, self._data, rollouts, self._player, stepper, *shared, earlier)

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that writes."""
        return bool(self._accelerator.is_main_process)

    def where(self) -> dict[str, Any]:
        """What its events tell of where it stands."""
        at = {"step": self._state.step, "tuning_step": self._state.tuning_step}
        return {**at, "device": self._device.type, "processes": self._accelerator.num_processes}

    def _open(self, data: Path | None) -> TrainingData:
        dim = self._policy.config.dim
        if data is None:
            return FreshData(self._recipe, dim, self._device, self._part)
        return StoredData(data, self._recipe, dim, self._device, self._part)

    def _new_policy(self) -> Policy:
        with torch.random.fork_rng():
            torch.manual_seed(self._recipe.seed)
            policy = new_policy(policy_config(self._recipe))
        if self._recipe.start is not None:
            _take_weights(policy, self._recipe.start)
        return placed(policy, self._device, torch.float32)

    def to(self, deadline: float) -> TrainingState:
        """Take steps until all are done or time is up."""
        phase, steps = "labels", self._loop.steps()
        took = self._step_seconds() if math.isfinite(deadline) else 0.0
        try:
            while not self._is_over(time.perf_counter() + took > deadline):  # another step would end too late
                began = time.perf_counter()
                step = next(steps, None)
                if step is None:
                    break
                phase = step.phase
                self._count(step)
                self._tell(step)
                if time.perf_counter() - self._saved_at >= self._save_every:
                    self._save()
                took = time.perf_counter() - began
        except torch.OutOfMemoryError as error:
            raise InputError(self._too_large(phase)) from error
        self._save()
        return self._state

    def _step_seconds(self) -> float:
        """About how long the first step will take: on a CPU perhaps minutes, on a GPU next to nothing."""
        if self._device.type != "cpu" or self._recipe.reads_statistics:
            return 0.0
        few, config = 4, self._policy.config
        horizon = self._data.worlds[0].environment.horizon
        began = time.perf_counter()
        arms, rewards = torch.zeros(few, horizon, dtype=torch.long), torch.zeros(few, horizon)
        self._model(torch.zeros(few, horizon, config.arms, config.dim), arms, rewards).sum().backward()
        self._optimizer.zero_grad()
        rows = self._recipe.tokens / tokens_in(self._recipe.form, horizon) / self._accelerator.num_processes
        return float((time.perf_counter() - began) * rows / few)

    def _is_over(self, late: bool) -> bool:
        """Whether time is up for any process: all of them must agree on it."""
        return float(self._together(torch.tensor(float(late), device=self._device))) > 0

    def _together(self, value: Tensor) -> Tensor:
        """A number's mean over all processes."""
        if self._accelerator.num_processes == 1:
            return value
        mean: Tensor = self._accelerator.reduce(value.detach().clone(), "mean")
        return mean

    def _count(self, step: Step) -> None:
        """Add up the tokens of a step over all processes."""
        tokens = int(step.rows * step.tokens * self._accelerator.num_processes)
        self._state.tokens += tokens
        self._meter.add(tokens, tokens * training_flops_per_token(self._policy.config, step.seen), 0.0)

    def _lap(self) -> float:
        """Seconds since the last lap, which count as training time."""
        now = time.perf_counter()
        seconds, self._mark = now - self._mark, now
        self._state.seconds += seconds
        return seconds

    def _tell(self, step: Step) -> None:
        """Log a step; now and then report it, and measure regret."""
        often = self._every if step.phase == "labels" else max(1, self._every // 10)
        judged = step.number % often == 0 or step.number == step.of
        if not judged and step.phase == "labels" and step.number % 10:
            if self._log is not None:
                self._log.keep(step.phase, step.number, step.loss, step.rate)
            return
        loss = float(step.loss)  # waits for the device
        self._meter.add(0, 0.0, self._lap())
        self._check(loss, step.number)
        speed, teraflops = self._meter.read()
        at = step.number if step.phase == "labels" else self._recipe.steps + step.number
        regret = self._measure(at) if judged else None
        self._lap()  # validation is training time, but says nothing about speed
        if self._log is not None:
            self._log.keep(step.phase, step.number, step.loss, step.rate, regret)
            self._log.write(at, speed, teraflops, regret)
        if self._on_report is not None and self.is_main:
            self._on_report(Report(step.phase, step.number, step.of, loss, speed, teraflops, regret))

    def _check(self, loss: float, step: int) -> None:
        """Stop where the loss is no number, before a state that holds none is saved."""
        if not math.isfinite(loss):
            raise InputError(
                f"the loss is {loss} by step {step}; the last saved state is from before: begin again in a new folder "
                "with a lower rate"
            )

    def _measure(self, at: int) -> float:
        """Measure regret, keep the policy if it is the best so far; one that imitates an expert in any case."""
        share = self._validation.share(self._player)
        imitates = self._recipe.labels != OPTIMAL and not self._state.tuning_step
        if self._state.best is None or share <= self._state.best or imitates:
            self._state.best, self._state.best_at = share, at
            if self.is_main:
                save_policy(self._policy, self._out / "best")
                write_json(self._out / "best" / TRAINING, self._made())
        return share

    def _check_best(self) -> None:
        """Refuse to go on beside a best policy that is gone or broken: it would never be made again."""
        if self._state.best is None:
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
            "worlds": describe(self._data.worlds),
            "data": self._data.identity,
            "processes": self._accelerator.num_processes,
            "progress": {key: value for key, value in asdict(self._state).items() if not key.startswith("log_")},
            "device": torch.cuda.get_device_name() if cuda else "CPU core",
            "torch": torch.__version__,
            "curve": self._curve(),
            "before": self._before(),
        }

    def _curve(self) -> list[Any]:
        """Regret as it was measured on the way; of times before a log that was deleted, as it was written down then."""
        measured, best = [list(point) for point in curve_of(self._out / "log.jsonl")], self._out / "best" / TRAINING
        earlier = read_json(best).get("curve") if best.exists() else []
        return (
            [point for point in earlier if point not in measured] + measured if isinstance(earlier, list) else measured
        )

    def _before(self) -> dict[str, Any] | None:
        """How the policy was made whose weights it began with."""
        path = None if self._recipe.start is None else folder_of(self._recipe.start) / TRAINING
        return read_json(path) if path is not None and path.exists() else None

    def _save(self) -> None:
        self._lap()
        state = self._state
        if self._log is not None and self._log.latest is not None:
            self._check(float(self._log.latest), state.tuning_step or state.step)
        if self.is_main:
            if self._log is not None:
                self._log.mark(state)
            best = self._out / "best" / TRAINING
            if best.exists():  # the time and the steps spent, also after the best, which stays as it was written
                kept = read_json(best)["progress"]
                made = self._made()
                made["progress"] |= {"best": kept["best"], "best_at": kept["best_at"]}
                write_json(best, made)
            earlier = self._loop.earlier if state.used else {}
            save_state(self._path, self._recipe, self._setting, self._policy, self._optimizer, state, earlier)
        self._saved_at = time.perf_counter()

    def _too_large(self, phase: str) -> str:
        """What to say when the device's memory is full; the last saved state is untouched."""
        horizon = max(world.environment.horizon for world in self._data.worlds)
        try:
            query = self._recipe.reads_statistics
            fits = self._recipe.tokens // 2 if query else fitting_tokens(self._model, self._policy.config, horizon)
        except torch.OutOfMemoryError:
            fits = 0
        option, given = "tokens", self._recipe.tokens
        if phase == "regret":
            option, given, fits = "tuning_tokens", self._recipe.tuning_tokens, fits * self._recipe.tuning_updates
        flag = option.replace("_", "-")
        hint = f"about --{flag} {fits} would fit" if fits else "not one trajectory fits: give fewer layers or width"
        return f"{option} is {given}, too many for this device's memory; {hint}; with that, go on in the same folder"


def _take_weights(policy: Policy, start: str) -> None:
    """Begin with the weights of a policy that is there already; it must have the same sizes."""
    given = read_policy(folder_of(start))
    asked, found = policy_sizes(policy.config), policy_sizes(given.config)
    for name, size in asked.items():
        if found[name] != size:
            raise InputError(f"start is '{start}', whose {name} is {found[name]}; this recipe's is {size}")
    policy.load_state_dict(given.state_dict())


def _groups(policy: Policy, decay: float) -> list[dict[str, Any]]:
    """Matrices decay, vectors do not."""
    trained = [parameter for parameter in policy.parameters() if parameter.requires_grad]
    return [
        {"params": [parameter for parameter in trained if parameter.ndim >= 2], "weight_decay": decay},
        {"params": [parameter for parameter in trained if parameter.ndim < 2], "weight_decay": 0.0},
    ]
