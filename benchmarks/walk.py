"""How many files of the package one walk through it passes: from a command to the regret, or one training step.

    python -m benchmarks.walk evaluate high --agents linucb --runs 64
    python -m benchmarks.walk --step

Counted are files whose functions are called, imports and their side effects left out, up to the first finished regret;
for a training, the files of a step in the middle of a generation, and of one that begins a generation.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import driftformer
from driftformer.cli import main

_ROOT = str(Path(driftformer.__file__).parent)


class Walk:
    """Watches calls of the package's functions."""

    def __init__(self, until: str = "") -> None:
        self.files: dict[str, str] = {}  # by the first function called in it
        self.switches, self._last, self._until, self._over = 0, "", until, False

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or self._over or not code.co_filename.startswith(_ROOT) or _imports(frame):
            return
        file = code.co_filename.removeprefix(_ROOT + "/")
        self.files.setdefault(file, code.co_qualname)
        self.switches += file != self._last
        self._last, self._over = file, code.co_qualname == self._until

    def through(self, work: Callable[[], Any]) -> Any:
        sys.setprofile(self._see)
        try:
            return work()
        finally:
            sys.setprofile(None)

    def report(self, title: str) -> None:
        print(f"{title}: {len(self.files)} files")
        for file, function in self.files.items():
            print(f"  {file}: {function}")


def _imports(frame: FrameType | None) -> bool:
    """Whether a call belongs to the import of a module."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") != "__main__":
            return True
        frame = frame.f_back
    return False


def training_step() -> None:
    from driftformer.pretraining.loop import Loop
    from driftformer.pretraining.recipes import recipe_of
    from driftformer.pretraining.run import train

    recipe = recipe_of("tiny", steps=40, tuning_steps=0, generation=128 * 5, tokens=3840)
    steps: list[Walk] = []
    step = Loop.steps

    def watched(loop: Any) -> Any:
        inner = step(loop)
        while True:
            walk = Walk()
            try:
                found = walk.through(lambda: next(inner))
            except StopIteration:
                return
            steps.append(walk)
            yield found

    setattr(Loop, "steps", watched)  # noqa: B010
    with tempfile.TemporaryDirectory() as folder:
        train(recipe, Path(folder) / "run", evaluate_problems=8)
    begins = max(steps[5:20], key=lambda walk: len(walk.files))
    middle = min(steps[5:20], key=lambda walk: len(walk.files))
    begins.report("a step that begins a generation")
    middle.report("a step")


if __name__ == "__main__":
    if sys.argv[1:] == ["--step"]:
        training_step()
    else:
        walk = Walk("RegretRecorder.finish")
        walk.through(lambda: main(sys.argv[1:]))
        walk.report("from the command to the regret")
