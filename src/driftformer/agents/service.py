"""One live problem of a policy that reads statistics: `act(features)` gives an arm, `update(reward)` what came of it.

What the policy sees. Its bank takes a reward in when it comes: one that is late counts as if it had been earned then,
and one that never comes is not missed. No round is read twice, so a round costs the same however many came before it,
late rewards included, and nothing is forgotten but what the bank itself forgets.
"""

from __future__ import annotations

import dataclasses
import operator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from safetensors.torch import load, save
from torch import Tensor

from driftformer.agents.base import ProblemShape
from driftformer.agents.online import read_features, read_number
from driftformer.errors import InputError, require_count, shown
from driftformer.models.bank import Bank
from driftformer.problem import Observation
from driftformer.randomness import Randomness, Stream
from driftformer.storage.files import write_atomically
from driftformer.storage.tensors import BrokenFile, parse_object, read_tensors, with_checksum

if TYPE_CHECKING:
    from driftformer.agents.incontext import InContext, InContextInfo

_LARGEST = 1e15
"""Of rewards and features: float32 holds their squares."""
_MOST_OPEN = 10_000
"""Rounds that may wait for their reward; beyond, the oldest is given up."""
_MOST_DIM = 100_000


class Service:
    """A policy at work. Arms may be fewer or more from round to round, features as long as in the first."""

    def __init__(self, agent: InContext, seed: int = 0) -> None:
        require_count("seed", seed, 0, most=2**63)
        self._agent, self._seed = agent, seed
        self.round = 0
        """Rounds acted in so far: the number of the last one, counted from 1."""
        self._given_up = 0  # the latest round that waited too long
        self._open: dict[int, tuple[Tensor, int]] = {}  # what was on offer `[1, A, d]`, and the arm that was played
        self._dim = 0  # of the features; 0 before the first round
        self._bank: Bank | None = None
        self._latest: tuple[int, InContextInfo] | None = None  # what was said in a round after which nothing came

    def act(self, features: ArrayLike) -> int:
        """The arm to play, given the features `[arms, dim]` of those on offer."""
        offered = self._checked(features)
        bank = self._begun(offered.shape[2])
        at = self.round + 1
        with torch.inference_mode():
            arm, info = self._agent.act(bank, Observation(offered), self._chance(at))
        self.round, self._dim, self._bank, self._latest = at, offered.shape[2], bank, (at, info)
        self._open[at] = (offered, int(arm))
        if len(self._open) > _MOST_OPEN:
            self._given_up = next(iter(self._open))
            del self._open[self._given_up]
        return int(arm)

    def probabilities(self, features: ArrayLike) -> NDArray[np.float64]:
        """How likely the policy is to play each arm in the coming round; asking changes nothing."""
        offered = self._checked(features)
        info = self._read(_copy(self._begun(offered.shape[2])), offered)
        total: NDArray[np.float64] = info.values[0].double().softmax(0).numpy()
        return total

    def update(self, reward: float, round: int | None = None) -> bool:
        """What came of a round, by default the last one; False if it waited for too long."""
        given, at = read_number(reward, _LARGEST), self._checked_round(round)
        if at not in self._open:
            if at <= self._given_up:
                return False
            raise InputError(f"round {at} has its reward already; give each once")
        offered, arm = self._open.pop(at)
        assert self._bank is not None
        same = self._latest is not None and self._latest[0] == at
        info = self._latest[1] if same and self._latest is not None else self._read(self._bank, offered)
        with torch.inference_mode():
            self._agent.update(self._bank, Observation(offered), torch.tensor([arm]), torch.tensor([given]), info)
        self._latest = None
        return True

    def _read(self, bank: Bank, offered: Tensor) -> InContextInfo:
        with torch.inference_mode():
            return self._agent.act(bank, Observation(offered), self._chance(0))[1]

    def _chance(self, round: int) -> Stream:
        """Random numbers that belong to a round, so that nothing but its number need be stored."""
        return Randomness(self._seed, (round,), size=1).stream("service")

    def _begun(self, dim: int) -> Bank:
        if self._bank is not None:
            return self._bank
        with torch.inference_mode():
            bank = self._agent.init(ProblemShape(1, 1, 1, dim, torch.device("cpu"), torch.float32))
        assert isinstance(bank, Bank)
        return bank

    def _checked(self, features: ArrayLike) -> Tensor:
        """Features as the bank reads them, `[1, arms, d]`; missing columns count as zeros."""
        given = read_features(features, self._dim or _MOST_DIM, _LARGEST)
        missing = self._dim - given.shape[1] if self._dim else 0
        if missing < 0:
            raise InputError(
                f"features has {given.shape[1]} dimensions, but {self._dim} in the rounds before; give at most those"
            )
        return torch.from_numpy(np.pad(given, ((0, 0), (0, missing))).astype(np.float32)).unsqueeze(0)

    def _checked_round(self, round: int | None) -> int:
        try:
            at = self.round if round is None else operator.index(round)
        except TypeError:
            at = 0
        if not 1 <= at <= self.round:
            raise InputError(f"round is {shown(round)}; {self.round} rounds have been played: give the number of one")
        return at

    def save(self, path: Path | str) -> None:
        """Write everything needed to go on, in one file that is whole or not there."""
        tensors = {} if self._bank is None else {f"bank.{name}": value for name, value in vars(self._bank).items()}
        for at, (offered, arm) in self._open.items():
            tensors |= {f"offered.{at}": offered, f"arm.{at}": torch.tensor(arm)}
        about = {
            "policy": self._agent.source,
            "weights": self._agent.weights,
            "seed": self._seed,
            "round": self.round,
            "given_up": self._given_up,
            "dim": self._dim,
        }
        content = {name: value.clone().contiguous() for name, value in tensors.items()}
        write_atomically(Path(path), with_checksum(save(content), about))

    @classmethod
    def restore(cls, agent: InContext, path: Path | str) -> Service:
        """Go on where `save` left off, with the same policy."""
        try:
            tensors, text = read_tensors(Path(path), load)
            about = parse_object(text)
            if about.get("weights") != agent.weights:
                raise InputError(
                    f"state {path} is of policy '{about.get('policy')!s:.200}' with weights "
                    f"{about.get('weights')!s:.60}, not of '{agent.source}' with {agent.weights}; load that policy"
                )
            try:
                service = cls(agent, about["seed"])
                service._take(tensors, about)
            except (KeyError, TypeError, ValueError, InputError) as error:
                raise BrokenFile(f"{error!s:.60} is missing or of another kind") from None
        except (BrokenFile, OSError) as error:
            raise InputError(f"state {path} is broken ({error}); begin anew with online()") from None
        return service

    def _take(self, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
        """Put what was saved in place; everything is checked, since a state may have been tampered with."""
        self.round, self._given_up, self._dim = (operator.index(about[name]) for name in ("round", "given_up", "dim"))
        if not 0 <= self._given_up <= self.round < 2**62 or not 0 <= self._dim <= _MOST_DIM:
            raise BrokenFile("its rounds or sizes cannot be")
        if self.round == 0:
            return
        fresh = self._begun(self._dim)
        for name, like in vars(fresh).items():
            held = tensors[f"bank.{name}"]
            if held.shape != like.shape or held.dtype != like.dtype or not bool(held.isfinite().all()):
                raise BrokenFile(f"{name} has another size or type, or is not finite")
        self._bank = Bank(**{name: tensors[f"bank.{name}"] for name in vars(fresh)})
        for at in sorted(int(name[4:]) for name in tensors if name.startswith("arm.")):
            offered, arm = tensors[f"offered.{at}"], int(tensors[f"arm.{at}"])
            sound = offered.ndim == 3 and offered.shape[0] == 1 and offered.shape[2] == self._dim
            sound = sound and offered.dtype == torch.float32 and bool((offered.abs() <= _LARGEST).all())
            if not sound or not 0 <= arm < offered.shape[1] or not 1 <= at <= self.round:
                raise BrokenFile("it holds arms or features that cannot be")
            self._open[at] = (offered, arm)


def _copy(bank: Bank) -> Bank:
    return Bank(**{field.name: getattr(bank, field.name).clone() for field in dataclasses.fields(bank)})
