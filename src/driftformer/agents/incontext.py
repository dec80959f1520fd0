"""A pretrained transformer as an agent: it reads what has happened so far and samples an arm (Equation alg-by-tf).

Its state is a cache with one row per problem, so a round costs one or two tokens, and rows may begin again at any time:
MASTER can wrap it like any other agent. Its auxiliary value is the probability that it gave the arm it chose, which is
what Section 3 proposes for transformers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional

from driftformer.agents.base import ProblemShape
from driftformer.agents.registry import policy_options
from driftformer.errors import InputError, require_choice, require_real
from driftformer.models.context import Context, begin, next_logits, record
from driftformer.models.sampling import standard_gumbel
from driftformer.policies import digest_of, folder_of
from driftformer.problem import Observation, pick
from driftformer.randomness import Stream

if TYPE_CHECKING:
    from pathlib import Path

    from driftformer.agents.online import Online
    from driftformer.models.configuration import PolicyConfig
    from driftformer.models.incontext import InContextPolicy

Mode = Literal["sample", "greedy"]


@dataclass(frozen=True)
class InContextInfo:
    values: Tensor  # [B, A] log-probabilities
    auxiliary_value: Tensor  # [B] the chosen arm's probability


@dataclass(frozen=True)
class InContext:
    """A policy by its name or folder. `sample` follows its distribution, sharpened by a temperature below 1."""

    source: str = field(default="drift", metadata={"named": True})
    mode: Mode = "sample"
    temperature: float = 1.0
    weights: str = field(default="", init=False, metadata={"named": True})
    """The first letters of the checksum of the weights, as they were when this agent was made: results belong to them,
    not to a name, and a file that changes later is refused."""
    learns: ClassVar[bool] = True
    stack: ClassVar[int] = 1
    """Chunks in a batch: products of matrices give other last bits in larger ones, and are hardly faster."""

    def __post_init__(self) -> None:
        require_choice("mode", self.mode, get_args(Mode))
        require_real("temperature", self.temperature, 1e-3)
        object.__setattr__(self, "weights", digest_of(self.source))

    @property
    def name(self) -> str:
        return f"policy:{self.source}"

    @property
    def config(self) -> PolicyConfig:
        return self.model(torch.device("cpu")).config

    def model(self, device: torch.device, dtype: torch.dtype = torch.float32) -> InContextPolicy:
        """The transformer itself."""
        return _load(self.source, self.weights, device, dtype)

    def online(self, seed: int = 0, state: Path | str | None = None) -> Online:
        """For one live problem: numpy in, an arm out; `state` is a file that `Online.save` wrote."""
        from driftformer.agents.online import Online

        return Online(self, seed) if state is None else Online.restore(self, state)

    def init(self, shape: ProblemShape) -> Context:
        config = self.config
        limits = {"horizon": config.horizon, "dim": config.dim}
        limits |= {"arms": config.arms} if config.form == "paper" else {}
        for size, most in limits.items():
            if getattr(shape, size) > most:
                hint = f"restart@base={self.name},every={most}" if size == "horizon" else "another policy"
                raise InputError(
                    f"{size} is {getattr(shape, size)}, but {self.name} was made for at most {most}; "
                    f"give less, or use {hint}"
                )
        return begin(self.model(shape.device, shape.dtype), shape.batch, shape.horizon)

    def act(self, state: Context, observation: Observation, rng: Stream) -> tuple[Tensor, InContextInfo]:
        action_set = observation.action_set
        policy = self.model(action_set.device, action_set.dtype)
        logits = observation.masked(padded_logits(policy, state, action_set)) / self.temperature  # [B, A]
        chosen = logits
        if self.mode == "sample":
            chosen = logits + standard_gumbel(rng.uniform(action_set.shape[1]))
        arm = chosen.argmax(dim=1)
        values = logits.log_softmax(dim=1)
        return arm, InContextInfo(values, pick(values, arm).exp())

    def update(
        self, state: Context, observation: Observation, arm: Tensor, reward: Tensor, info: InContextInfo
    ) -> Context:
        x = functional.pad(observation.features(arm), (0, state.x.shape[1] - observation.action_set.shape[2]))
        return record(state, x, arm, reward, torch.ones_like(reward))


def padded_logits(policy: InContextPolicy, context: Context, action_set: Tensor) -> Tensor:
    """Logits of the arms on offer, `[B, A]`: fewer dimensions, and in the paper's form fewer arms, are padded."""
    _, arms, dim = action_set.shape
    missing = policy.config.arms - arms if policy.config.form == "paper" else 0
    features = functional.pad(action_set, (0, policy.config.dim - dim, 0, missing))
    return next_logits(policy, context, features)[:, :arms]


@lru_cache(maxsize=8)
def _load(source: str, weights: str, device: torch.device, dtype: torch.dtype) -> InContextPolicy:
    from driftformer.models.checkpoints import read_policy
    from driftformer.models.incontext import placed

    if digest_of(source) != weights:
        raise InputError(f"policy {source} has other weights now than when it was named; name it again")
    return placed(read_policy(folder_of(source)), device, dtype)


def load_policy(source: str, **options: Any) -> InContext:
    """A shipped policy by its name, or one of your own by its folder."""
    return InContext(str(source), **policy_options(f"policy:{source}", options))
