"""What an agent at work remembers of its users: a row of its state for each, and more rows as more users come.

Rewards are shown to it as they arrive. One that comes in time goes with what the agent computed when it chose; for a
late one the agent is asked again about that round's arms, with what it knows by now, which costs one more look at them
and never a second reading of the history. A reward that never comes is not missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from driftformer.agents.base import Agent, ProblemShape
from driftformer.agents.incontext import InContext
from driftformer.agents.rows import append_rows, put_rows, restart, take_rows
from driftformer.agents.services.propensity import Coins
from driftformer.errors import InputError
from driftformer.problem import Observation
from driftformer.randomness import Stream

LARGEST = 2**30
"""Bytes of one user's state; what needs more is refused before it is made."""
_AT_ONCE = 64
"""Users whose restored states are tried together."""


class Rows:
    """The state of any agent, a row for each user."""

    def __init__(self, agent: Agent, shape: ProblemShape) -> None:
        """`shape` is that of one user; its horizon counts for agents that plan ahead."""
        self._agent, self.shape = agent, shape
        self._limited = _plans_ahead(agent)
        self._row: dict[int, int] = {}
        self._check_size()
        self._state, self._room = self._fresh(1), 1  # users that there is space for
        self._learned = torch.zeros(1, dtype=torch.long)  # rewards of each row, for agents that plan ahead

    def _fresh(self, rows: int) -> Any:
        """The states of users that nothing is known of, in tensors of their own."""
        return take_rows(self._agent.init(replace(self.shape, batch=rows)), torch.arange(rows))

    def _expected(self, rows: int) -> dict[str, Tensor]:
        """Tensors like those of so many users; without their numbers, where an agent can do without."""
        shape = replace(self.shape, batch=rows)
        try:
            return leaves(self._agent.init(replace(shape, device=torch.device("meta"))))
        except (NotImplementedError, RuntimeError):
            return leaves(self._agent.init(shape))

    def _check_size(self) -> None:
        size = sum(held.numel() * held.element_size() for held in self._expected(1).values())
        if size > LARGEST:
            raise InputError(
                f"features has {self.shape.dim} dimensions and {self.shape.arms} arms, for which {self._agent.name} "
                f"needs {size / 2**30:.1f} GiB; give fewer, or a lower horizon to agents that plan ahead"
            )

    @property
    def known(self) -> list[int]:
        """Users in the order of their rows."""
        return list(self._row)

    def _rows(self, users: list[int]) -> Tensor | None:
        """Where users stand, new ones at the end; None if they are all there is, in order."""
        if len(users) == self._room and users == list(self._row):
            return None
        new = [user for user in users if user not in self._row]
        needed = len(self._row) + len(new)
        if needed > self._room:
            more = max(needed - self._room, self._room)
            self._state = append_rows(self._state, self._fresh(more))
            self._learned = torch.cat([self._learned, torch.zeros(more, dtype=torch.long)])
            self._room += more
        for user in new:
            self._row[user] = len(self._row)
        return torch.tensor([self._row[user] for user in users])

    def copied(self, users: list[int]) -> Any:
        """What is known of some users, as a state of its own; of new ones what is known before the first round."""
        state = take_rows(self._state, torch.tensor([self._row.get(user, 0) for user in users]))
        new = torch.tensor([user not in self._row for user in users])
        return restart(state, new, self._fresh(1)) if bool(new.any()) else state

    def ask(self, users: list[int], observation: Observation, rng: Stream) -> tuple[Tensor, Any]:
        """The agent's choice and its info."""
        rows = self._rows(users)
        if rows is None:
            return self._agent.act(self._state, observation, rng)
        state = take_rows(self._state, rows)
        said = self._agent.act(state, observation, rng)
        put_rows(self._state, rows, state)  # a first look at the arms may set units
        return said

    def ask_apart(self, users: list[int], observation: Observation, rng: Stream) -> tuple[Tensor, Any]:
        """The same, and nothing changes."""
        return self._agent.act(self.copied(users), observation, rng)

    def learn(
        self, users: list[int], observation: Observation, arm: Tensor, reward: Tensor, info: Any, rng: Stream
    ) -> None:
        """Take in a reward of each user; without the info of the choice, an agent that uses it is asked again."""
        rows = self._rows(users)
        state = self._state if rows is None else take_rows(self._state, rows)
        if info is None and not isinstance(self._agent, InContext):  # which needs to predict only, not to choose
            _, info = self._agent.act(state, observation, rng)
        state = self._agent.update(state, observation, arm, reward, info)
        if rows is None:
            self._state = state
        else:
            put_rows(self._state, rows, state)
        if self._limited:
            self._begin_again(torch.arange(len(users)) if rows is None else rows)

    def _begin_again(self, rows: Tensor) -> None:
        """Of agents that plan for a number of rounds: users who have had them."""
        self._learned[rows] += 1
        full = self._learned >= self.shape.horizon
        if bool(full.any()):
            self._state = restart(self._state, full, self._fresh(1))
            self._learned[full] = 0

    def tensors(self) -> dict[str, Tensor]:
        """Everything that is known, by name."""
        rows = torch.arange(len(self._row))
        held = {f"state.{name}": value for name, value in leaves(take_rows(self._state, rows)).items()}
        return held | {"learned": self._learned[rows]}

    def take(self, known: list[int], tensors: dict[str, Tensor]) -> None:
        """Put back what `tensors` gave; it may have been tampered with."""
        if not known:
            return
        for name, like in self._expected(len(known)).items():
            saved = tensors[f"state.{name}"]
            if saved.shape != like.shape or saved.dtype != like.dtype or bool(saved.isnan().any()):
                raise ValueError(f"{name} has another size or type, or is no number")
        learned = tensors["learned"]
        if learned.shape != (len(known),) or learned.dtype != torch.long or bool((learned < 0).any()):
            raise ValueError("its counts cannot be")
        self._row = {user: place for place, user in enumerate(known)}
        self._state, self._room, self._learned = self._fresh(len(known)), len(known), learned.clone()
        for name, held in leaves(self._state).items():
            held.copy_(tensors[f"state.{name}"])
        self._try_out()

    def _try_out(self) -> None:
        """Let every user play a round on copies: numbers that lead out of a table are found here and not at work."""
        for first in range(0, len(self._row), _AT_ONCE):
            users = self.known[first : first + _AT_ONCE]
            arms = torch.eye(self.shape.arms, self.shape.dim, dtype=self.shape.dtype).expand(len(users), -1, -1)
            state, zero = self.copied(users), torch.zeros(len(users), dtype=torch.long)
            arm, info = self._agent.act(state, Observation(arms), Coins(0, 0, len(users), self.shape.dtype))
            if bool(((arm < 0) | (arm >= self.shape.arms)).any()):
                raise ValueError("its counts cannot be")
            self._agent.update(state, Observation(arms), zero, zero.to(arms), info)


def _plans_ahead(agent: Any) -> bool:
    """Whether the memory of an agent, or of the one it wraps, holds a given number of rounds."""
    return bool(getattr(agent, "plans_ahead", hasattr(agent, "base") and _plans_ahead(agent.base)))


def leaves(state: Any) -> dict[str, Tensor]:
    """The tensors of a state by their names."""
    return dict(_leaves(state, ""))


def _leaves(state: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(state, Tensor):
        yield name.removeprefix("."), state
    elif isinstance(state, tuple):
        for place, item in enumerate(state):
            yield from _leaves(item, f"{name}.{place}")
    elif hasattr(state, "__dataclass_fields__"):
        for field in state.__dataclass_fields__:
            yield from _leaves(getattr(state, field), f"{name}.{field}")
