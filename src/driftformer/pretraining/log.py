"""The log of a training: one line per step, and what a tracker shows: TensorBoard, Weights & Biases or trackio.

The training's state says how many bytes of the log belong to its steps, and their checksum. What stands behind them, be
it steps that will come again or half a line of a killed write, is cut off when the training goes on.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any, Literal, get_args

from torch import Tensor

from driftformer.errors import InputError, require_choice, require_package
from driftformer.pretraining.state import TrainingState
from driftformer.storage.checksum import checksum, running_checksum
from driftformer.storage.files import named, write_atomically

Tracker = Literal["tensorboard", "wandb", "trackio"]
_PROJECT = "driftformer"
_usual = threading.excepthook


def _shown_once(raised: threading.ExceptHookArgs) -> None:
    """TensorBoard's thread raises what it also hands to its caller, where it becomes an error in words."""
    if type(raised.thread).__name__ != "_AsyncWriterThread":
        _usual(raised)


class Log:
    """One line a step; losses stay on the device until they are written."""

    def __init__(self, out: Path, progress: TrainingState, tracker: Tracker = "tensorboard") -> None:
        out.mkdir(parents=True, exist_ok=True)
        self._path = out / "log.jsonl"
        self._waiting: list[tuple[str, int, Tensor, float, float | None]] = []
        self.latest: Tensor | None = None
        kept = self._kept(progress)
        self._digest, self._length = running_checksum(kept), len(kept)
        write_atomically(self._path, kept)
        threading.excepthook = _shown_once
        self._tracker = _started(tracker, out)

    def _kept(self, progress: TrainingState) -> bytes:
        """What was logged up to the saved state."""
        if not self._path.exists() or not progress.step + progress.tuning_step:
            return b""
        content = self._path.read_bytes()
        if not progress.log_sha256:  # a state of an older version
            return content
        kept = content[: progress.log_bytes]
        if checksum(kept) != progress.log_sha256:
            raise InputError(
                f"log {self._path} does not match its checksum in the training's state; delete it, and the training "
                "goes on with a log that begins there"
            )
        return kept

    def keep(self, phase: str, step: int, loss: Tensor, rate: float, regret: float | None = None) -> None:
        self.latest = loss.detach()
        self._waiting.append((phase, step, self.latest, rate, regret))

    def settle(self) -> None:
        """Write what waits."""
        lines = []
        for phase, step, loss, rate, regret in self._waiting:
            entry: dict[str, Any] = {"phase": phase, "step": step, "loss": float(loss), "rate": rate}
            entry |= {} if regret is None else {"regret": regret}
            lines.append(json.dumps(entry) + "\n")
        content = "".join(lines).encode()
        with named(self._path), self._path.open("ab") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        self._digest.update(content)
        self._length += len(content)
        self._waiting.clear()

    def mark(self, progress: TrainingState) -> None:
        """Write what waits, and note in the progress how much of the log belongs to it."""
        self.settle()
        progress.log_bytes, progress.log_sha256 = self._length, self._digest.hexdigest()

    def write(self, at: int, speed: float, teraflops: float, regret: float | None) -> None:
        """Write what waits, and tell the tracker."""
        phase, _, loss, rate, _ = self._waiting[-1]
        values = {f"loss/{phase}": float(loss), "rate": rate}
        values |= {"speed/tokens_per_second": speed, "speed/teraflops": teraflops}
        with named(self._path.parent):
            self._tracker.log(values if regret is None else values | {"regret": regret}, step=at)
        self.settle()

    def close(self) -> None:
        with named(self._path.parent):
            self._tracker.finish()


def _started(tracker: Tracker, out: Path) -> Any:
    """One of accelerate's trackers; runs go by the names of their folders."""
    require_choice("tracker", tracker, get_args(Tracker))
    from accelerate.tracking import TensorBoardTracker, TrackioTracker, WandBTracker

    started: Any
    if tracker == "tensorboard":
        require_package("tensorboard", "train")
        started = TensorBoardTracker("tensorboard", out)
    elif tracker == "wandb":
        started = WandBTracker(_PROJECT, name=out.name, dir=str(out))
    else:
        started = TrackioTracker(_PROJECT, name=out.name)
    try:
        with named(out):
            started.start()
    except ModuleNotFoundError:
        raise InputError(f"{tracker} is not installed; pip install {tracker}") from None
    return started


def curve_of(path: Path) -> list[tuple[str, int, float]]:
    """Phase, step and regret wherever regret was measured, from a log."""
    entries = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [(entry["phase"], entry["step"], entry["regret"]) for entry in entries if "regret" in entry]
