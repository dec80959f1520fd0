"""One live problem: `act(features)` gives an arm, `update(reward)` says what came of it.

What the policy sees. Every round it reads the last round's arm with its reward. A reward that has not come is shown as
unknown: the arm alone. One that comes late is put where it belongs, and from then on the policy sees the history as if
it had come in time; one that never comes stays unknown. When as many rounds as the policy was made for have passed, the
older half is forgotten and the rest counts as the beginning: a sliding context.
"""

from __future__ import annotations

import math
import operator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from safetensors.numpy import load, save

from driftformer.errors import InputError, require_count, shown
from driftformer.models.context import Context, next_logits, read_history, record
from driftformer.storage.files import write_atomically
from driftformer.storage.tensors import BrokenFile, parse_object, read_tensors, with_checksum

if TYPE_CHECKING:
    from driftformer.agents.incontext import InContext


_MOST_ARMS = 10_000
"""On offer in one round: all rounds of the context are kept."""
_LARGEST = 1e6
"""Of rewards and features: far beyond what any policy has seen, and still far from what breaks its arithmetic."""


class Online:
    """A policy at work. Arms may be fewer or more from round to round, as far as the policy takes them."""

    def __init__(self, agent: InContext, seed: int = 0) -> None:
        self._agent = agent
        require_count("seed", seed, 0, most=2**63)
        self._policy = agent.model(torch.device("cpu"))
        self._rng = np.random.default_rng(seed)
        self._forgotten = 0  # rounds that have left the context
        self._offered: list[NDArray[np.float32]] = []  # [A, d] of each round in the context, padded
        self._counts: list[int] = []  # arms on offer in it
        self._arms: list[int] = []
        self._rewards: list[float] = []  # NaN: unknown
        self._context: Context | None = None  # of all these rounds; None if it must be read again

    @property
    def round(self) -> int:
        """Rounds acted in so far: the number of the last one, counted from 1."""
        return self._forgotten + len(self._arms)

    def act(self, features: ArrayLike) -> int:
        """The arm to play, given the features `[arms, dim]` of those on offer."""
        offered, count = self._checked(features)
        if len(self._arms) >= self._policy.config.horizon:
            self._forget()
        if self._context is None:
            self._context = self._read(0)
        probabilities = self._probabilities(self._context, offered, count)
        greedy = self._agent.mode == "greedy"
        arm = int(probabilities.argmax()) if greedy else int(self._rng.choice(count, p=probabilities))
        self._offered.append(offered)
        self._counts.append(count)
        self._arms.append(arm)
        self._rewards.append(math.nan)
        x, unknown = torch.from_numpy(offered[arm]).unsqueeze(0), torch.zeros(1)
        self._context = record(self._context, x, torch.tensor([arm]), unknown, unknown.clone())
        return arm

    def probabilities(self, features: ArrayLike) -> NDArray[np.float64]:
        """How likely the policy is to play each arm in the coming round; asking changes nothing."""
        offered, count = self._checked(features)
        if len(self._arms) >= self._policy.config.horizon:
            return self._probabilities(self._read(self._too_old()), offered, count)
        if self._context is None:
            self._context = self._read(0)
        return self._probabilities(self._context, offered, count)

    def _probabilities(self, context: Context, offered: NDArray[np.float32], count: int) -> NDArray[np.float64]:
        with torch.inference_mode():
            logits = next_logits(self._policy, context, torch.from_numpy(offered).unsqueeze(0))[0, :count]
        scores = logits.double().numpy() / self._agent.temperature
        weights = np.exp(scores - scores.max())
        total: NDArray[np.float64] = weights / weights.sum()
        return total

    def update(self, reward: float, round: int | None = None) -> bool:
        """What came of a round, by default the last one; False if the policy no longer looks that far back."""
        given, at = read_number(reward), self._round(round)
        if at <= self._forgotten:
            return False
        place = at - self._forgotten - 1
        if not math.isnan(self._rewards[place]):
            raise InputError(f"round {at} has its reward already, {self._rewards[place]:g}; give each once")
        self._rewards[place] = given
        if place == len(self._arms) - 1 and self._context is not None:  # not read yet: the common case costs nothing
            known = torch.tensor([given])
            self._context = replace(self._context, reward=known, seen=torch.ones_like(known))
        else:
            self._context = None
        return True

    def _round(self, round: int | None) -> int:
        try:
            at = self.round if round is None else operator.index(round)
        except TypeError:
            at = 0
        if not 1 <= at <= self.round:
            raise InputError(f"round is {shown(round)}; {self.round} rounds have been played: give the number of one")
        return at

    def save(self, path: Path | str) -> None:
        """Write everything needed to go on, in one file that is whole or not there."""
        arrays: dict[str, NDArray[Any]] = {
            "offered": self._all_offered(),
            "counts": np.array(self._counts, np.int64),
            "arms": np.array(self._arms, np.int64),
            "rewards": np.array(self._rewards, np.float64),
        }
        about = {
            "policy": self._agent.source,
            "weights": self._agent.weights,
            "forgotten": self._forgotten,
            "random": self._rng.bit_generator.state,
        }
        write_atomically(Path(path), with_checksum(save(arrays), about))

    @classmethod
    def restore(cls, agent: InContext, path: Path | str) -> Online:
        """Go on where `save` left off, with the same policy."""
        try:
            arrays, text = read_tensors(Path(path), load)
            about = parse_object(text)
            if about.get("weights") != agent.weights:
                raise InputError(
                    f"state {path} is of policy '{about.get('policy')!s:.200}' with weights "
                    f"{about.get('weights')!s:.60}, not of '{agent.source}' with {agent.weights}; load that policy"
                )
            online = cls(agent)
            online._take(arrays, about)
        except (BrokenFile, OSError) as error:
            raise InputError(f"state {path} is broken ({error}); begin anew with online()") from None
        return online

    def _take(self, arrays: dict[str, NDArray[Any]], about: dict[str, Any]) -> None:
        """Put what was saved in place; everything is checked, since a state may have been tampered with."""
        config = self._policy.config
        try:
            offered, counts, arms, rewards = (arrays[name] for name in ("offered", "counts", "arms", "rewards"))
            forgotten = operator.index(about["forgotten"])
            self._rng.bit_generator.state = about["random"]
            self._rng.random()  # a generator may take a broken state without a word
            self._rng.bit_generator.state = about["random"]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise BrokenFile(f"{error!s:.60} is missing or of another kind") from None
        rounds, most = offered.shape[:2] if offered.ndim == 3 else (-1, -1)
        fits = (
            offered.shape == (rounds, most, config.dim)
            and counts.shape == arms.shape == rewards.shape == (rounds,)
            and counts.dtype.kind == arms.dtype.kind == "i"
            and offered.dtype.kind == rewards.dtype.kind == "f"
            and rounds <= config.horizon
            and 0 <= forgotten < 2**62
        )
        if not fits:
            raise BrokenFile("its arrays have other sizes or types")
        limit = min(most, config.arms) if config.form == "paper" else most
        sound = (
            (np.abs(offered) <= _LARGEST).all()
            and ((counts >= 1) & (counts <= limit) & (arms >= 0) & (arms < counts)).all()
            and (np.isnan(rewards) | (np.abs(rewards) <= _LARGEST)).all()
        )
        if not sound:
            raise BrokenFile("it holds arms, features or rewards that cannot be")
        self._forgotten = forgotten
        rows = [config.arms if config.form == "paper" else int(count) for count in counts]
        self._offered = [held[:row].astype(np.float32) for held, row in zip(offered, rows, strict=True)]
        self._counts, self._arms, self._rewards = counts.tolist(), arms.tolist(), rewards.tolist()

    def _checked(self, features: ArrayLike) -> tuple[NDArray[np.float32], int]:
        """Features as the policy reads them and the number of arms, or an error that says what is wrong with them."""
        config = self._policy.config
        given = read_features(features, config.dim, _LARGEST)
        arms, dim = given.shape
        if dim > config.dim:
            raise InputError(f"features has {dim} dimensions, but {self._agent.name} takes at most {config.dim}")
        if config.form == "paper" and arms > config.arms:
            raise InputError(
                f"features has {arms} arms, but {self._agent.name} takes at most {config.arms}; "
                "a policy of the pointer form takes any number"
            )
        rows = config.arms if config.form == "paper" else arms
        padded = np.zeros((rows, config.dim), np.float32)
        padded[:arms, :dim] = given
        return padded, arms

    def _all_offered(self) -> NDArray[np.float32]:
        """What was on offer in all rounds of the context, `[n, most arms, d]`."""
        most = max((len(offered) for offered in self._offered), default=1)
        together = np.zeros((len(self._arms), most, self._policy.config.dim), np.float32)
        for place, offered in enumerate(self._offered):
            together[place, : len(offered)] = offered
        return together

    def _read(self, first: int) -> Context:
        """The history from some round of the context on, in one pass."""
        rewards = np.array(self._rewards[first:], np.float32)
        seen = ~np.isnan(rewards)
        with torch.inference_mode():
            return read_history(
                self._policy,
                torch.from_numpy(self._all_offered()[first:]).unsqueeze(0),
                torch.tensor([self._arms[first:]], dtype=torch.long),
                torch.from_numpy(np.where(seen, rewards, np.float32(0))).unsqueeze(0),
                torch.from_numpy(seen.astype(np.float32)).unsqueeze(0),
            )

    def _too_old(self) -> int:
        """How many rounds leave a full context: the older half."""
        return max(1, len(self._arms) // 2)

    def _forget(self) -> None:
        drop = self._too_old()
        self._forgotten += drop
        for held in (self._offered, self._counts, self._arms, self._rewards):
            del held[:drop]
        self._context = None


def read_features(features: ArrayLike, most_dim: int, largest: float) -> NDArray[np.float64]:
    """An array `[arms, dim]` of finite numbers, or an error that says what is wrong with it."""
    if len(shape := getattr(features, "shape", ())) == 2 and math.prod(shape) > _MOST_ARMS * most_dim:
        raise InputError(f"features has shape {tuple(shape)}; give at most {_MOST_ARMS} arms of {most_dim} numbers")
    try:
        given = np.asarray(features)
        if given.dtype.kind not in "biufO":
            raise TypeError
        given = given.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise InputError("features is no array of numbers; give one row of features for each arm") from None
    if given.ndim != 2 or 0 in given.shape:
        raise InputError(f"features has shape {given.shape}; give [arms, dim], one row for each arm")
    if not (np.abs(given) <= largest).all():
        raise InputError(f"features has NaN or numbers beyond {largest:g}; give finite ones")
    if len(given) > _MOST_ARMS:
        raise InputError(f"features has {len(given)} arms; give at most {_MOST_ARMS} in a round")
    return given


def read_number(reward: float, largest: float = _LARGEST) -> float:
    """A reward as a plain number: Python's, NumPy's, a click as True or False."""
    try:
        plain = not isinstance(reward, (str, bytes)) and getattr(reward, "ndim", 0) == 0
        number = float(reward) if plain else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not abs(number) <= largest:
        raise InputError(
            f"reward is {shown(reward)}; give a finite number up to {largest:g}, or no update at all if it is unknown"
        )
    return number
