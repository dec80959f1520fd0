"""A pretrained transformer as an agent: it reads what has happened so far and samples an arm (Equation alg-by-tf).

Its state is a cache, or a bank of statistics, with one row per problem, so no round is read twice, and rows may begin
again at any time: MASTER can wrap it like any other agent. Its auxiliary value is the probability that it gave the arm
it chose, which is what Section 3 proposes for transformers.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast, get_args

import torch
from torch import Tensor
from torch.nn import functional

from driftformer.agents.base import ProblemShape
from driftformer.agents.registry import policy_options
from driftformer.errors import InputError, require_choice, require_package, require_real
from driftformer.models.bank import MOST_DIM, Bank, Prediction, empty, learn, predict
from driftformer.models.context import Context, begin, next_logits, record
from driftformer.models.ledger import Ledger, read
from driftformer.models.ledger import empty as empty_ledger
from driftformer.models.ledger import learn as learn_step
from driftformer.models.sampling import standard_gumbel
from driftformer.models.statistics import statistics
from driftformer.policies import PREFIX, digest_of, folder_of
from driftformer.problem import Observation, Traits, pick
from driftformer.randomness import Stream

if TYPE_CHECKING:
    from driftformer.models.checkpoints import Policy
    from driftformer.models.configuration import PolicyConfig
    from driftformer.models.incontext import InContextPolicy
    from driftformer.models.query import QueryPolicy
    from driftformer.models.tabular import TabularPolicy

Mode = Literal["sample", "greedy"]


@dataclass(frozen=True)
class InContextInfo:
    values: Tensor  # [B, A] log-probabilities
    auxiliary_value: Tensor  # [B] the chosen arm's probability
    prediction: Prediction | None = None  # of the bank, in the query form


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

    def __post_init__(self) -> None:
        require_choice("mode", self.mode, get_args(Mode))
        require_real("temperature", self.temperature, 1e-3)
        require_package("transformers", "policies")
        object.__setattr__(self, "weights", digest_of(self.source))

    @property
    def name(self) -> str:
        return f"policy:{self.source}"

    @property
    def config(self) -> PolicyConfig:
        return self.network(torch.device("cpu")).config

    def model(self, device: torch.device, dtype: torch.dtype = torch.float32) -> InContextPolicy:
        """The transformer itself, in the paper's or the pointer form."""
        return cast("InContextPolicy", self.network(device, dtype))

    def network(self, device: torch.device, dtype: torch.dtype = torch.float32) -> Policy:
        """The network, of whatever form."""
        return _load(self.source, self.weights, device, dtype)

    def online(self, **options: Any) -> Any:
        """Put it to work in a service: see `agents.services.online`."""
        from driftformer.agents.services.online import online

        return online(self, **options)

    @property
    def stack(self) -> int:
        """Chunks in a batch: products of matrices give other last bits in larger ones, and are hardly faster. Those of
        a ledger are too small for either.
        """
        return 8 if self.episodic else 1

    @property
    def episodic(self) -> bool:
        """Whether it plays MDPs."""
        return self.config.form == "tabular"

    def why_not(self, traits: Traits) -> str | None:
        return "it is made for MDPs with states and episodes" if self.episodic and not traits.stages else None

    def init(self, shape: ProblemShape) -> Context | Bank | Ledger:
        config = self.config
        if config.form == "tabular":
            steps = shape.stages if shape.stages_differ else 1
            like = torch.empty(0, device=shape.device, dtype=shape.dtype)
            return empty_ledger(shape.batch, shape.states, shape.arms, shape.stages, steps, like)
        if config.form == "query":
            if shape.dim > MOST_DIM:
                warnings.warn(
                    f"features have {shape.dim} dimensions; {self.name} reads {MOST_DIM} random combinations of them",
                    stacklevel=2,
                )
            return empty(shape.batch, min(shape.dim, MOST_DIM), shape.device, shape.dtype)
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

    def act(
        self, state: Context | Bank | Ledger, observation: Observation, rng: Stream
    ) -> tuple[Tensor, InContextInfo]:
        action_set, prediction = observation.action_set, None
        policy = self.network(action_set.device, action_set.dtype)
        if isinstance(state, Ledger):
            logits = cast("TabularPolicy", policy)(read(state, *where(observation))).logits
        elif isinstance(state, Bank):
            prediction = _predicted(state, observation)
            known = statistics(state, prediction, observation.offered)
            logits = cast("QueryPolicy", policy)(known, observation.offered).logits
        else:
            logits = padded_logits(cast("InContextPolicy", policy), state, action_set)
        logits = observation.masked(logits) / self.temperature  # [B, A]
        chosen = logits
        if self.mode == "sample":
            chosen = logits + standard_gumbel(rng.uniform(action_set.shape[1]))
        arm = chosen.argmax(dim=1)
        values = logits.log_softmax(dim=1)
        return arm, InContextInfo(values, pick(values, arm).exp(), prediction)

    def probabilities(self, observation: Observation, info: InContextInfo) -> Tensor:
        """How likely it was to play each arm, `[B, A]`."""
        if self.mode == "greedy":
            return functional.one_hot(info.values.argmax(dim=1), info.values.shape[1]).to(info.values)
        return info.values.exp()

    def update(
        self,
        state: Context | Bank | Ledger,
        observation: Observation,
        arm: Tensor,
        reward: Tensor,
        info: InContextInfo | None,
    ) -> Context | Bank | Ledger:
        """The state after a reward; without the info of the choice, a bank predicts these arms again."""
        if isinstance(state, Ledger):
            learn_step(state, *where(observation), arm, reward)
            return state
        if isinstance(state, Bank):
            prediction = _predicted(state, observation) if info is None else info.prediction
            assert prediction is not None, "it was chosen by this bank"
            learn(state, prediction, arm, reward)
            return state
        x = functional.pad(observation.features(arm), (0, state.x.shape[1] - observation.action_set.shape[2]))
        return record(state, x, arm, reward, torch.ones_like(reward))


def where(observation: Observation) -> tuple[Tensor, int]:
    """The present states of MDPs `[B]`, and the step of the episode, the same in all of them."""
    assert observation.state is not None, "an MDP has states"
    assert observation.stage is not None, "an MDP has episodes"
    return observation.state, int(observation.stage[0])


def _predicted(bank: Bank, observation: Observation) -> Prediction:
    """What a bank says of the arms on offer."""
    action_set = observation.action_set
    if action_set.shape[2] > MOST_DIM:
        action_set = action_set @ _projection(action_set.shape[2], action_set.device, action_set.dtype)
    return predict(bank, action_set, observation.offered)


def padded_logits(policy: InContextPolicy, context: Context, action_set: Tensor) -> Tensor:
    """Logits of the arms on offer, `[B, A]`: fewer dimensions, and in the paper's form fewer arms, are padded."""
    _, arms, dim = action_set.shape
    missing = policy.config.arms - arms if policy.config.form == "paper" else 0
    features = functional.pad(action_set, (0, policy.config.dim - dim, 0, missing))
    return next_logits(policy, context, features)[:, :arms]


@lru_cache(maxsize=8)
def _projection(dim: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Random combinations of features, always the same ones, `[d, MOST_DIM]`: they keep lengths and angles, roughly."""
    drawn: Tensor = torch.randn(dim, MOST_DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return drawn.div(MOST_DIM**0.5).to(device, dtype)


@lru_cache(maxsize=8)
def _load(source: str, weights: str, device: torch.device, dtype: torch.dtype) -> Policy:
    from driftformer.models.checkpoints import read_policy
    from driftformer.models.incontext import placed

    if digest_of(source) != weights:
        raise InputError(f"policy {source} has other weights now than when it was named; name it again")
    return placed(read_policy(folder_of(source)), device, dtype)


def load_policy(source: str, **options: Any) -> InContext:
    """A shipped policy by its name, or one of your own by its folder.

    >>> policy = df.load_policy("drift").online(seed=0)  # one live problem
    >>> arm = policy.act([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])  # the features of three arms
    >>> policy.update(0.7)
    True
    """
    source = str(source).removeprefix(PREFIX)
    return InContext(source, **policy_options(f"{PREFIX}{source}", options))
