"""`driftformer pretrain`: train a policy."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import math
import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

from tyro.conf import Positional, arg

from driftformer.commands.options import Command, Folder, LogJson
from driftformer.pretraining.recipes import Recipe, recipe_of


def _settings() -> Any:
    """A dataclass with the options that change a recipe: each of its fields, or None for the recipe's own value."""
    (source,) = ast.parse(inspect.getsource(Recipe)).body
    assert isinstance(source, ast.ClassDef)
    texts = {
        field.target.id: " ".join(str(text.value.value).split())
        for field, text in pairwise(source.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }
    fields = []
    for name, kind in get_type_hints(Recipe).items():
        if name in ("name", "summary", "worlds", "behaviours"):  # what makes it this recipe
            continue
        values = [value for value in get_args(kind) or (kind,) if value is not type(None)]
        metavar = "|".join(value if isinstance(value, str) else value.__name__.upper() for value in values)
        option = arg(help=texts.get(name), metavar=metavar, help_behavior_hint="")
        fields.append((name, Annotated[kind | None, option], dataclasses.field(default=None)))
    settings = dataclasses.make_dataclass("Settings", fields, frozen=True)
    settings.__doc__ = "Settings of the recipe. Those that are not given keep the recipe's values."
    return settings


if TYPE_CHECKING:
    Settings = Recipe
else:
    Settings = _settings()


@dataclass(frozen=True)
class Pretrain(Command):
    """Train a policy.

    For example:
        driftformer pretrain tiny --out runs/tiny
        driftformer pretrain cosine --layers 4 --device cuda --out runs/small-cosine

    A recipe fixes all settings; options change some of them. `driftformer list` shows the recipes. A policy first
    learns from labels and then, in some recipes, from its own regret.

    Training can be stopped at any time: the same command resumes from the last saved state. OUT/best is the policy with
    the lowest regret or, when the labels are those of another agent, the latest one. Play it as an agent:
        driftformer evaluate high --agents linucb policy:runs/tiny/best
    """

    recipe: Positional[Annotated[str, arg(metavar="RECIPE")]]
    """Name of the recipe."""
    out: Path
    """Folder for the state, the log, TensorBoard files and the best policy."""
    settings: Settings
    data: Folder = None
    """Folder of `driftformer collect`. Without it, trajectories are generated as they are needed."""
    device: str = "cpu"
    """cpu or cuda."""
    max_minutes: Annotated[float, arg(help_behavior_hint="(default: no limit)")] = math.inf
    """Stop after this many minutes. The same command resumes."""
    evaluate_every: int = 500
    """Measure regret every so many steps, ten times as often while learning from regret."""
    log_json: LogJson = False

    def run(self) -> None:
        from driftformer.evaluation.progress import TrainingProgress
        from driftformer.pretraining.train import train
        from driftformer.simulation.rollout import check_device

        recipe = recipe_of(self.recipe, **vars(self.settings))
        check_device(self.device)
        with TrainingProgress(recipe.name, recipe.steps, recipe.tuning_steps) as bar:
            progress = train(
                recipe,
                self.out,
                device=self.device,
                max_minutes=self.max_minutes,
                evaluate_every=self.evaluate_every,
                data=self.data,
                on_report=bar.show,
            )
        if os.environ.get("RANK", "0") != "0":  # one of several processes: the first one speaks for all
            return
        if progress.step < recipe.steps or progress.tuning_step < recipe.tuning_steps:
            print(f"stopped at step {progress.step + progress.tuning_step}; run the same command to resume")
        if progress.best is not None:
            print(f"lowest regret: {progress.best:.3f} of the uniform policy's; play it as policy:{self.out}/best")
