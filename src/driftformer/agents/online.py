"""One live problem: `act(features)` gives an arm, `update(reward)` says what came of it.

What the policy sees. Every round it reads the last round's arm with its reward. A reward that has not come is shown as
unknown: the arm alone. One that comes late is put where it belongs, and from then on the policy sees the history as if
it had come in time; one that never comes stays unknown. When as many rounds as the policy was made for have passed, the
older half is forgotten and the rest counts as the beginning: a sliding context.
"""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from driftformer.errors import InputError
from driftformer.files import write_atomically
from driftformer.models.context import Context, next_logits, read_history, record

if TYPE_CHECKING:
    from driftformer.agents.incontext import InContext


class Online:
    """A policy at work. Arms may be fewer or more from round to round, as far as the policy takes them."""

    def __init__(self, agent: InContext, seed: int = 0) -> None:
        self._agent = agent
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
        probabilities = self.probabilities(features)
        offered, count = self._checked(features), len(probabilities)
        if self._agent.mode == "greedy":
            arm = int(probabilities.argmax())
        else:
            arm = int(self._rng.choice(count, p=probabilities))
        self._offered.append(offered)
        self._counts.append(count)
        self._arms.append(arm)
        self._rewards.append(math.nan)
        assert self._context is not None
        x = torch.from_numpy(offered[arm]).unsqueeze(0)
        zero = torch.zeros(1)
        self._context = record(self._context, x, torch.tensor([arm]), zero, zero.clone())
        return arm

    def probabilities(self, features: ArrayLike) -> NDArray[np.float64]:
        """How likely the policy is to play each arm in the coming round."""
        offered, count = self._checked(features), len(np.asarray(features))
        if len(self._arms) >= self._policy.config.horizon:
            self._forget()
        with torch.inference_mode():
            if self._context is None:
                self._context = self._read()
            logits = next_logits(self._policy, self._context, torch.from_numpy(offered).unsqueeze(0))[0, :count]
        scores = logits.double().numpy() / self._agent.temperature
        weights = np.exp(scores - scores.max())
        total: NDArray[np.float64] = weights / weights.sum()
        return total

    def update(self, reward: float, round: int | None = None) -> bool:
        """What came of a round, by default the last one; False if the policy no longer looks that far back."""
        if not isinstance(reward, (int, float, np.floating, np.integer)) or not math.isfinite(reward):
            raise InputError(f"reward is {reward!r}; give a finite number, or no update at all if it is unknown")
        at = self.round if round is None else round
        if not isinstance(at, int) or not 1 <= at <= self.round:
            raise InputError(f"round is {at!r}; {self.round} rounds have been played: give one of them")
        if at <= self._forgotten:
            return False
        place = at - self._forgotten - 1
        if not math.isnan(self._rewards[place]):
            raise InputError(f"round {at} has its reward already, {self._rewards[place]:g}; give each once")
        self._rewards[place] = float(reward)
        if place == len(self._arms) - 1 and self._context is not None:  # not read yet: the common case costs nothing
            given = torch.tensor([float(reward)])
            context = self._context
            self._context = Context(
                context.slots, context.rounds, context.x, context.arm, given, torch.ones_like(given)
            )
        else:
            self._context = None
        return True

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
        write_atomically(Path(path), save(arrays, metadata={"driftformer": json.dumps(about)}))

    @classmethod
    def restore(cls, agent: InContext, path: Path | str) -> Online:
        """Go on where `save` left off, with the same policy."""
        content = Path(path).read_bytes()
        try:
            arrays = load(content)
            (length,) = struct.unpack("<Q", content[:8])
            about = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["driftformer"])
            offered, counts = arrays["offered"], [int(count) for count in arrays["counts"]]
            arms, rewards = [int(arm) for arm in arrays["arms"]], [float(reward) for reward in arrays["rewards"]]
        except (SafetensorError, ValueError, KeyError, struct.error) as error:
            raise InputError(f"state {path} is broken ({error}); begin anew with online()") from None
        if about["weights"] != agent.weights:
            raise InputError(
                f"state {path} is of policy '{about['policy']}' with weights {about['weights']}, not of "
                f"'{agent.source}' with {agent.weights}; load that policy"
            )
        online = cls(agent)
        online._rng.bit_generator.state = about["random"]
        online._forgotten = about["forgotten"]
        rows = [online._policy.config.arms if online._policy.config.form == "paper" else count for count in counts]
        online._offered = [held[:row] for held, row in zip(offered, rows, strict=True)]
        online._counts, online._arms, online._rewards = counts, arms, rewards
        return online

    def _checked(self, features: ArrayLike) -> NDArray[np.float32]:
        """Features as the policy reads them, or an error that says what is wrong with them."""
        config = self._policy.config
        try:
            given = np.asarray(features, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("features is no array of numbers; give one row of features for each arm") from None
        if given.ndim != 2 or 0 in given.shape:
            raise InputError(f"features has shape {given.shape}; give [arms, dim], one row for each arm")
        if not np.isfinite(given).all():
            raise InputError("features has NaN or infinite numbers; give finite ones")
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
        return padded

    def _all_offered(self) -> NDArray[np.float32]:
        """What was on offer in all rounds of the context, `[n, most arms, d]`."""
        most = max((len(offered) for offered in self._offered), default=1)
        together = np.zeros((len(self._arms), most, self._policy.config.dim), np.float32)
        for place, offered in enumerate(self._offered):
            together[place, : len(offered)] = offered
        return together

    def _read(self) -> Context:
        """The whole history in one pass."""
        rewards = np.array(self._rewards, np.float32)
        seen = ~np.isnan(rewards)
        return read_history(
            self._policy,
            torch.from_numpy(self._all_offered()).unsqueeze(0),
            torch.tensor([self._arms], dtype=torch.long),
            torch.from_numpy(np.where(seen, rewards, 0.0).astype(np.float32)).unsqueeze(0),
            torch.from_numpy(seen.astype(np.float32)).unsqueeze(0),
        )

    def _forget(self) -> None:
        """Let the older half of the context go."""
        drop = max(1, len(self._arms) // 2)
        self._forgotten += drop
        for held in (self._offered, self._counts, self._arms, self._rewards):
            del held[:drop]
        self._context = None
