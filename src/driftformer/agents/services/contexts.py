"""What a policy that reads raw history remembers: each user's rewarded rounds, and a context that grows as it fills.

Rounds stand in the history in the order in which their rewards came, without gaps, as in training; a late reward is one
token more and never a second reading. When as many have come as the policy was made for, the older half is forgotten
and the rest counts as the beginning.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from driftformer.agents.incontext import InContext
from driftformer.agents.services.propensity import Coins
from driftformer.agents.services.ragged import joined, parted
from driftformer.errors import InputError
from driftformer.models.cache import Slots
from driftformer.models.context import Context, begin, read_history
from driftformer.problem import Observation

_ROOM = 16
"""Rounds that a new context has space for."""


@dataclass(frozen=True)
class _Round:
    features: Tensor  # [A, d] of all arms on offer
    arm: int
    reward: float


@dataclass
class _History:
    """What a user has shown."""

    rounds: list[_Round] = field(default_factory=list)
    context: Context | None = None  # of all these rounds; None if they must be read
    complete: bool = False  # whether the context holds the last of them already, since something was asked


class Contexts:
    """A context for each user of a policy of the paper's or the pointer form."""

    def __init__(self, agent: InContext) -> None:
        self._agent, self._policy = agent, agent.model(torch.device("cpu"))
        self._of: dict[int, _History] = {}

    @property
    def known(self) -> list[int]:
        """Users who have been asked about."""
        return list(self._of)

    def check(self, arms: int, dim: int) -> None:
        """Refuse more than the policy takes."""
        config, name = self._policy.config, self._agent.name
        if dim > config.dim:
            raise InputError(f"features has {dim} dimensions with scale or arms, but {name} takes at most {config.dim}")
        if config.form == "paper" and arms > config.arms:
            raise InputError(
                f"features has {arms} arms, but {name} takes at most {config.arms}; "
                "a policy of the pointer form takes any number"
            )

    def ask(self, users: list[int], observation: Observation, rng: Coins) -> tuple[Tensor, Any]:
        """The policy's choice and its info, user by user: their contexts have different lengths."""
        said = [self._ask(user, _row(observation, place), rng.apart(place)) for place, user in enumerate(users)]
        values = torch.cat([info.values for _, info in said])
        return torch.cat([arm for arm, _ in said]), replace(said[0][1], values=values)

    ask_apart = ask
    """Asking changes nothing that counts: the token it reads is read again next time."""

    def _ask(self, user: int, observation: Observation, rng: Coins) -> tuple[Tensor, Any]:
        history = self._of.setdefault(user, _History())
        context = self._read(history.rounds) if history.context is None else history.context
        history.context, history.complete = _with_room(context, self._policy.config.tokens_per_round), True
        return self._agent.act(history.context, observation, rng)

    def learn(
        self, users: list[int], observation: Observation, arm: Tensor, reward: Tensor, info: Any, rng: Coins
    ) -> None:
        """Take in a reward of each user. Before that, the one before it must have been read; in the paper's form, where
        a round's arms are a token, also those of this very round, which nobody asked about last if there is no info.
        """
        for place, user in enumerate(users):
            history, one = self._of.setdefault(user, _History()), _row(observation, place)
            if not history.complete or (info is None and self._policy.config.form == "paper"):
                self._ask(user, one, rng.apart(place))
            history.complete = False
            history.rounds.append(_Round(observation.action_set[place].clone(), int(arm[place]), float(reward[place])))
            if len(history.rounds) >= self._policy.config.horizon:
                del history.rounds[: max(1, len(history.rounds) // 2)]
                history.context = None
            else:
                assert history.context is not None, "it was asked since it last forgot"
                after = self._agent.update(history.context, one, arm[place, None], reward[place, None], None)
                history.context = cast(Context, after)

    def _read(self, rounds: list[_Round]) -> Context:
        """A history in one pass."""
        config = self._policy.config
        if not rounds:
            return begin(self._policy, 1, min(_ROOM, config.horizon))
        most = config.arms if config.form == "paper" else max(len(one.features) for one in rounds)
        pads = [(0, config.dim - one.features.shape[1], 0, most - len(one.features)) for one in rounds]
        shown = [functional.pad(one.features, pad) for one, pad in zip(rounds, pads, strict=True)]
        arms = torch.tensor([[one.arm for one in rounds]])
        rewards = torch.tensor([[one.reward for one in rounds]], dtype=torch.float32)
        return read_history(self._policy, torch.stack(shown).unsqueeze(0), arms, rewards, torch.ones_like(rewards))

    def tensors(self) -> dict[str, Tensor]:
        """Everything that is known, by name."""
        rounds = [(user, one) for user, history in self._of.items() for one in history.rounds]
        return {
            "history.round": torch.tensor([[user, one.arm] for user, one in rounds]).view(-1, 2).long(),
            "history.reward": torch.tensor([one.reward for _, one in rounds], dtype=torch.float64),
            **joined("history.features", [one.features for _, one in rounds]),
        }

    def take(self, known: list[int], tensors: dict[str, Tensor]) -> None:
        """Put back what `tensors` gave; it may have been tampered with."""
        keys, rewards = tensors["history.round"], tensors["history.reward"]
        shown = parted("history.features", tensors, len(keys), torch.float32, 1e6)
        sound = keys.dtype == torch.long and keys.shape == (len(shown), 2) and rewards.shape == (len(shown),)
        if not sound or rewards.dtype != torch.float64 or not bool((rewards.abs() <= 1e6).all()):
            raise ValueError("it holds rewards or rounds that cannot be")
        self._of = {user: _History() for user in known}
        for (user, arm), reward, features in zip(keys.tolist(), rewards.tolist(), shown, strict=True):
            self.check(*features.shape)
            if not 0 <= arm < len(features) or len(self._of[user].rounds) >= self._policy.config.horizon:
                raise ValueError("it holds arms or rounds that cannot be")
            self._of[user].rounds.append(_Round(features, arm, reward))


def _row(observation: Observation, place: int) -> Observation:
    offered = None if observation.offered is None else observation.offered[place, None]
    return Observation(observation.action_set[place, None], offered)


def _with_room(context: Context, tokens_per_round: int) -> Context:
    """The same context with slots for one round more, twice as many as before where there are none left."""
    held = context.slots.keys[0].shape[2]
    if (int(context.rounds[0]) + 1) * tokens_per_round <= held:
        return context

    def wider(slots: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(functional.pad(slot, (0, 0, 0, held)) for slot in slots)

    return replace(context, slots=Slots(wider(context.slots.keys), wider(context.slots.values)))
