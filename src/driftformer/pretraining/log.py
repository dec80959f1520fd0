"""The log of a training: one line a step, and TensorBoard's files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from driftformer.files import write_atomically
from driftformer.pretraining.state import Progress


class Log:
    """One line a step; losses stay on the device until they are written."""

    def __init__(self, out: Path, progress: Progress) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self._path = out / "log.jsonl"
        self._waiting: list[tuple[str, int, Tensor, float, float | None]] = []
        self.latest: Tensor | None = None
        self._forget_after(progress)
        from torch.utils.tensorboard import SummaryWriter

        self._board = SummaryWriter(str(out / "tensorboard"))

    def _forget_after(self, progress: Progress) -> None:
        """Steps after the saved state will come again; of a killed write half a line may be left."""
        if not self._path.exists():
            return
        done = {"labels": progress.step, "regret": progress.tuning_step}
        kept = []
        for line in self._path.read_text().splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if entry["step"] <= done[entry["phase"]]:
                kept.append(line)
        write_atomically(self._path, "".join(f"{line}\n" for line in kept).encode())

    def keep(self, phase: str, step: int, loss: Tensor, rate: float, regret: float | None = None) -> None:
        self.latest = loss.detach()
        self._waiting.append((phase, step, self.latest, rate, regret))

    def settle(self) -> None:
        """Write what waits."""
        with self._path.open("a") as file:
            for phase, step, loss, rate, regret in self._waiting:
                entry: dict[str, Any] = {"phase": phase, "step": step, "loss": float(loss), "rate": rate}
                entry |= {} if regret is None else {"regret": regret}
                file.write(json.dumps(entry) + "\n")
        self._waiting.clear()

    def write(self, at: int, speed: float, teraflops: float, regret: float | None) -> None:
        """Write what waits, and tell TensorBoard."""
        phase, _, loss, rate, _ = self._waiting[-1]
        self._board.add_scalar(f"loss/{phase}", float(loss), at)
        self._board.add_scalar("rate", rate, at)
        self._board.add_scalar("speed/tokens_per_second", speed, at)
        self._board.add_scalar("speed/teraflops", teraflops, at)
        if regret is not None:
            self._board.add_scalar("regret", regret, at)
        self._board.flush()
        self.settle()
