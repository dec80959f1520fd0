"""What an agent at work remembers of each of its users: a row of its state, which grows with the users it has met.

Rewards are shown to it as they arrive. One that comes in time goes with what the agent computed when it chose; for a
late one the agent is asked again about that round's arms, with what it knows by now, which costs one more look at them
and never a second reading of the history. A reward that never comes is not missed.

Policies that read raw history (`Contexts`) have a limit to it: when as many rounds as they were made for have come, the
older half is forgotten and the rest counts as the beginning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from driftformer.agents.base import Agent, ProblemShape
from driftformer.agents.incontext import InContext
from driftformer.agents.propensity import Coins, counted
from driftformer.agents.rows import append_rows, put_rows, restart, take_rows
from driftformer.errors import InputError
from driftformer.models.cache import Slots
from driftformer.models.context import Context, begin, read_history
from driftformer.problem import Observation

Said = tuple[Tensor, Any]
"""The arms `[B]` that an agent chose, and its info."""


class Rows:
    """The state of any agent, a row for each user."""

    def __init__(self, agent: Agent, shape: ProblemShape) -> None:
        """`shape` is that of one user; its horizon is kept by agents that plan for one."""
        self._agent, self._shape = agent, shape
        self._limited = _plans_ahead(agent)
        self._row: dict[int, int] = {}
        self._state: Any = None
        self._room = 0
        self._learned = torch.zeros(0, dtype=torch.long)  # rewards of each row, where the agent's memory has an end

    @property
    def known(self) -> list[int]:
        return list(self._row)

    @property
    def arms(self) -> int:
        return self._shape.arms

    def _rows(self, users: list[int]) -> Tensor | None:
        """Where users stand, new ones at the end; None if they are all there is."""
        for user in users:
            if user not in self._row:
                if len(self._row) == self._room:
                    self._grow(max(1, self._room))
                self._row[user] = len(self._row)
        if len(users) == self._room == 1:
            return None
        return torch.tensor([self._row[user] for user in users])

    def _grow(self, rows: int) -> None:
        more = self._agent.init(replace(self._shape, batch=rows))
        self._state = more if self._state is None else append_rows(self._state, more)
        self._learned = torch.cat([self._learned, torch.zeros(rows, dtype=torch.long)])
        self._room += rows

    def ask(self, users: list[int], observation: Observation, coins: Coins) -> Said:
        rows = self._rows(users)
        if rows is None:
            return self._agent.act(self._state, observation, coins)
        state = take_rows(self._state, rows)
        said = self._agent.act(state, observation, coins)
        put_rows(self._state, rows, state)  # a first look at the arms may set units
        return said

    def learn(self, users: list[int], observation: Observation, arm: Tensor, reward: Tensor, info: Any) -> None:
        rows = self._rows(users)
        state = self._state if rows is None else take_rows(self._state, rows)
        if info is None:
            _, info = self._agent.act(state, observation, Coins(0, 0, len(users), self._shape.dtype))
        state = self._agent.update(state, observation, arm, reward, info)
        if rows is None:
            self._state = state
        else:
            put_rows(self._state, rows, state)
        if self._limited:
            self._begin_again(torch.zeros(1, dtype=torch.long) if rows is None else rows)

    def _begin_again(self, rows: Tensor) -> None:
        """Of agents that plan for a number of rounds: users who have had them."""
        self._learned[rows] += 1
        full = self._learned >= self._shape.horizon
        if bool(full.any()):
            self._state = restart(self._state, full, self._agent.init(self._shape))
            self._learned[full] = 0

    def count(self, users: list[int], observation: Observation, seed: int, number: int) -> Tensor:
        rows = self._rows(users)
        state = self._state if rows is None else take_rows(self._state, rows)
        return counted(self._agent, state, observation, seed, number)

    def copy(self, users: list[int]) -> Rows:
        """A memory of its own with what is known of some users."""
        made = Rows(self._agent, self._shape)
        rows = self._rows(users)
        made._state = take_rows(self._state, torch.zeros(1, dtype=torch.long) if rows is None else rows)
        made._row, made._room = {user: place for place, user in enumerate(users)}, len(users)
        made._learned = self._learned[: len(users)].clone()
        return made

    def tensors(self) -> dict[str, Tensor]:
        rows = torch.arange(len(self._row))
        held = {} if self._state is None else leaves(take_rows(self._state, rows))
        return {f"state.{name}": value for name, value in held.items()} | {"learned": self._learned[rows]}

    def take(self, users: list[int], tensors: dict[str, Tensor]) -> None:
        if not users:
            return
        self._grow(len(users))
        self._row = {user: place for place, user in enumerate(users)}
        for name, held in leaves(self._state).items():
            _fill(held, tensors[f"state.{name}"], name)
        _fill(self._learned, tensors["learned"], "learned")


def _plans_ahead(agent: Any) -> bool:
    """Whether an agent's memory, or that of the one it wraps, holds a given number of rounds."""
    return bool(getattr(agent, "plans_ahead", False)) or (hasattr(agent, "base") and _plans_ahead(agent.base))


def leaves(state: Any, name: str = "") -> dict[str, Tensor]:
    """The tensors of a state by their names."""
    if isinstance(state, Tensor):
        return {name: state}
    if isinstance(state, tuple):
        inner = {str(place): item for place, item in enumerate(state)}
    elif hasattr(state, "__dataclass_fields__"):
        inner = {field: getattr(state, field) for field in state.__dataclass_fields__}
    else:
        inner = {}
    found: dict[str, Tensor] = {}
    for key, item in inner.items():
        found |= leaves(item, f"{name}.{key}".lstrip("."))
    return found


def _fill(held: Tensor, saved: Tensor, name: str) -> None:
    if saved.shape != held.shape or saved.dtype != held.dtype or bool(saved.isnan().any()):
        raise ValueError(f"{name} has another size or type, or is no number")
    held.copy_(saved)


@dataclass
class _History:
    """What a user has shown to a policy that reads raw history."""

    rounds: list[tuple[Tensor, int, float]]  # what was on offer `[A, d]`, the arm and its reward
    context: Context | None = None  # of all these rounds; None if they must be read


class Contexts:
    """A policy of the paper's or the pointer form: each user has a context of its own, which grows as it fills."""

    def __init__(self, agent: InContext) -> None:
        self._agent, self._policy = agent, agent.model(torch.device("cpu"))
        self._of: dict[int, _History] = {}

    @property
    def known(self) -> list[int]:
        return list(self._of)

    def check(self, arms: int, dim: int) -> None:
        """Refuse more than the policy takes."""
        config = self._policy.config
        if dim > config.dim:
            raise InputError(f"features has {dim} dimensions, but {self._agent.name} takes at most {config.dim}")
        if config.form == "paper" and arms > config.arms:
            raise InputError(
                f"features has {arms} arms, but {self._agent.name} takes at most {config.arms}; "
                "a policy of the pointer form takes any number"
            )

    def ask(self, users: list[int], observation: Observation, coins: Coins) -> Said:
        if len(users) == 1:
            return self._ask(users[0], observation, coins)
        said = [self._ask(user, _row(observation, place), coins.apart(place)) for place, user in enumerate(users)]
        values = torch.cat([info.values for _, info in said])
        return torch.cat([arm for arm, _ in said]), replace(said[0][1], values=values)

    def _ask(self, user: int, observation: Observation, coins: Coins) -> Said:
        history = self._of.setdefault(user, _History([]))
        if history.context is None:
            history.context = self._read(history.rounds)
        history.context = _with_room(history.context, self._policy.config.tokens_per_round)
        return self._agent.act(history.context, observation, coins)

    def learn(self, users: list[int], observation: Observation, arm: Tensor, reward: Tensor, info: Any) -> None:
        for place, user in enumerate(users):
            history, chosen, paid = self._of.setdefault(user, _History([])), int(arm[place]), float(reward[place])
            history.rounds.append((observation.action_set[place], chosen, paid))
            if len(history.rounds) >= self._policy.config.horizon:
                del history.rounds[: max(1, len(history.rounds) // 2)]
                history.context = None
            elif history.context is not None:
                one = _row(observation, place)
                after = self._agent.update(history.context, one, arm[place, None], reward[place, None], None)
                history.context = cast(Context, after)

    def _read(self, rounds: list[tuple[Tensor, int, float]]) -> Context:
        """A history in one pass."""
        config = self._policy.config
        if not rounds:
            return begin(self._policy, 1, min(16, config.horizon))
        most = config.arms if config.form == "paper" else max(len(offered) for offered, _, _ in rounds)
        padded = [functional.pad(held, (0, config.dim - held.shape[1], 0, most - len(held))) for held, _, _ in rounds]
        arms = torch.tensor([[arm for _, arm, _ in rounds]])
        rewards = torch.tensor([[reward for _, _, reward in rounds]], dtype=torch.float32)
        return read_history(self._policy, torch.stack(padded).unsqueeze(0), arms, rewards, torch.ones_like(rewards))

    def count(self, users: list[int], observation: Observation, seed: int, number: int) -> Tensor:
        raise AssertionError("a policy states its probabilities")

    def copy(self, users: list[int]) -> Contexts:
        """Asking a context changes nothing that counts: the token it reads is read again next time."""
        return self

    def tensors(self) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for user, history in self._of.items():
            for place, (offered, arm, reward) in enumerate(history.rounds):
                found[f"offered.{user}.{place}"] = offered
                found[f"outcome.{user}.{place}"] = torch.tensor([arm, reward], dtype=torch.float64)
        return found

    def take(self, users: list[int], tensors: dict[str, Tensor]) -> None:
        for user in users:
            count = sum(name.startswith(f"outcome.{user}.") for name in tensors)
            rounds = []
            for place in range(count):
                offered, outcome = tensors[f"offered.{user}.{place}"], tensors[f"outcome.{user}.{place}"]
                sound = outcome.shape == (2,) and outcome.dtype == torch.float64 and bool(outcome.isfinite().all())
                sound = sound and offered.ndim == 2 and offered.dtype == torch.float32
                sound = sound and bool((offered.abs() <= 1e6).all()) and 0 <= int(outcome[0]) < len(offered)
                if not sound or count > self._policy.config.horizon or abs(float(outcome[1])) > 1e6:
                    raise ValueError("it holds arms, features or rewards that cannot be")
                self.check(*offered.shape)
                rounds.append((offered, int(outcome[0]), float(outcome[1])))
            self._of[user] = _History(rounds)


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
