"""A service to strike: two agents at work, their states saved after every round, gone on from wherever it was killed.

What is learned is in the states, and each round's arms are in a file of their own before the reward is: so a kill
between `act` and `update` may lose the open round, which is then decided again, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from driftformer.agents.registry import make_agent
from driftformer.storage.files import read_json, tidy, write_json

USERS, ARMS, DIM, LATE = 3, 4, 5, 3


@dataclass(frozen=True)
class Serve:
    """Play rounds and save after each."""

    computes: ClassVar[bool] = True
    out: Path
    """Where states and arms are kept."""
    rounds: int = 20
    """Of each user."""

    def run(self) -> None:
        tidy(self.out)
        for name, options in (("discounted-thompson", {"explore": 0.1, "scale": True}), ("policy:drift", {})):
            folder = self.out / name.removeprefix("policy:")
            state, service = folder / "service.safetensors", make_agent(name).online(problems=USERS, seed=7, **options)
            if state.exists():
                restored = make_agent(name).online(state=state)
                service = restored if _whole(folder, restored.round(0)) else service
            while service.round(0) < self.rounds:
                self._play(service, folder)
                service.save(state)

    def _play(self, service: Any, folder: Path) -> None:
        """One round of all users; the last of them learns of a reward when it is three rounds old."""
        at = service.round(0) + 1
        rng = np.random.default_rng(at)
        said = service.decide(rng.normal(size=(USERS, ARMS, DIM)))
        write_json(_log(folder, at), {"said": [[one.arm, one.probability] for one in said]})
        service.update(rng.normal(size=USERS - 1), users=range(USERS - 1))
        if at > LATE:
            service.update([float(at)], users=[USERS - 1], rounds=[at - LATE])


def _log(folder: Path, at: int) -> Path:
    return folder / f"rounds/{at:03}.json"


def _whole(folder: Path, rounds: int) -> bool:
    """Whether the arms of all these rounds are there, checksums included; a file that is broken is refused."""
    logs = [_log(folder, at) for at in range(1, rounds + 1)]
    return all(log.exists() and set(read_json(log)) == {"said"} for log in logs)
