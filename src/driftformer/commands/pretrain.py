"""`driftformer pretrain` and `card`: train a policy, and measure it."""

import math
import os
from dataclasses import dataclass, field, make_dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from tyro.conf import Suppress, arg

from driftformer.commands.options import Command, Device, LogJson, Name, OptionalFolder, Seed, Workers, one_of
from driftformer.errors import require_package
from driftformer.pretraining.recipes import RECIPES, Recipe


def _as_options(recipe: Recipe) -> type[Recipe]:
    """The recipe as a choice on the command line: its values are the defaults of options that change them."""
    fields: list[tuple[str, Any, Any]] = []
    for name, kind in get_type_hints(Recipe).items():
        value = getattr(recipe, name)
        option = Suppress if name in _FIXED else arg()
        if name == "start" and value is None:
            option = arg(metavar="STR", help_behavior_hint="(default: none)")
        default = field(default_factory=partial(dict, value)) if isinstance(value, dict) else value
        fields.append((name, Annotated[kind, option], default))
    text = {"__doc__": f"{recipe.summary[0].upper()}{recipe.summary[1:]}."}
    return make_dataclass("Settings", fields, bases=(Recipe,), namespace=text, frozen=True, kw_only=True)


_FIXED = ("name", "summary", "behaviours")
"""What makes it that recipe."""

if TYPE_CHECKING:
    Settings = Recipe
else:
    Settings = one_of({name: _as_options(recipe) for name, recipe in RECIPES.items()})


@dataclass(frozen=True)
class Pretrain(Command):
    """Train a policy.

    For example:
        driftformer pretrain tiny --out runs/tiny
        driftformer pretrain tiny --help
        driftformer pretrain cosine --layers 4 --device cuda --out runs/small

    A recipe fixes all settings, and its help shows their values; options change some of them. A policy first learns
    from labels and then, in some recipes, from its own regret.

    Training can be stopped at any time: the same command resumes from the last saved state. OUT/best is the policy with
    the lowest regret or, when the labels are those of another agent, the latest one. Play it as an agent:
        driftformer evaluate high --agents linucb policy:runs/tiny/best
    """

    recipe: Settings
    """The recipe; `driftformer pretrain tiny --help` shows the settings of one."""
    out: Path
    """Folder for the state, the log and the best policy."""
    data: OptionalFolder = None
    """Folder of `driftformer collect`. Without it, trajectories are generated as they are needed."""
    device: Device = "cpu"
    max_minutes: Annotated[float, arg(help_behavior_hint="(default: no limit)")] = math.inf
    """Stop after this many minutes. The same command resumes."""
    evaluate_every: int = 500
    """Measure regret every so many steps, ten times as often while learning from regret."""
    tracker: Literal["tensorboard", "wandb", "trackio"] = "tensorboard"
    """Where losses and regret can be watched: files in OUT/tensorboard, Weights & Biases, or trackio."""
    log_json: LogJson = False

    def run(self) -> None:
        require_package("accelerate", "train")
        from driftformer.evaluation.progress import TrainingProgress
        from driftformer.pretraining.processes import part_in_peace
        from driftformer.pretraining.run import train
        from driftformer.simulation.rollout import check_device

        recipe = replace(RECIPES[self.recipe.name], **vars(self.recipe))
        check_device(self.device)
        options = {
            name: vars(self)[name] for name in ("out", "device", "max_minutes", "evaluate_every", "data", "tracker")
        }
        with TrainingProgress(recipe.name) as bar:
            progress = train(recipe, **options, on_report=bar.show)
        part_in_peace()
        if os.environ.get("RANK", "0") != "0":  # one of several processes: the first one speaks for all
            return
        if progress.step < recipe.steps or progress.tuning_step < recipe.tuning_steps:
            print(f"stopped at step {progress.step + progress.tuning_step}; run the same command to resume")
        if progress.best is not None:
            print(f"lowest regret: {progress.best:.3f} of the uniform policy's; play it as policy:{self.out}/best")


@dataclass(frozen=True)
class Card(Command):
    """Measure a policy and write its model card.

    For example, for a policy that comes with the package and for one of your own:
        driftformer card cosine --out cards/cosine
        driftformer card runs/tiny/best --out cards/tiny

    The card has tables of regret, shows how closely the policy follows its teacher, and says how it was trained.
    """

    policy: Name
    """Name of a shipped policy, or a folder."""
    out: Path
    """Folder for card.md, card.json and the evaluations behind them."""
    runs: int = 200
    """Number of problems in each evaluation."""
    seed: Seed = 0
    workers: Workers = 1

    def run(self) -> None:
        from driftformer.evaluation.card import write_card

        print(f"card: {write_card(self.policy, self.out, self.runs, self.seed, self.workers)}")
