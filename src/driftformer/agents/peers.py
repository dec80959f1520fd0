"""Other libraries' contextual bandits as agents, one problem after the other: Vowpal Wabbit, river and MABWiser.

They come with `pip install 'driftformer[peers]'` and are played in the bake-off. Each is used as its own documentation
does: Vowpal Wabbit learns from the features of the arms (`--cb_explore_adf`) and draws from the distribution it gives;
the other two keep a regression for each arm, on the context that the arms share, or a single one where arms have
features of their own. Arms that are not on offer are left out.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from driftformer.agents.base import ProblemShape
from driftformer.agents.reference import NoInfo
from driftformer.errors import not_installed
from driftformer.problem import Observation
from driftformer.randomness import Stream

Array = NDArray[np.float64]


def installed(package: str) -> Any:
    """The package of a peer, or an error that says how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise not_installed(package, "peers") from None


@dataclass
class Learners:
    """A learner of another library for each problem."""

    each: list[Any]


@dataclass(frozen=True)
class Peer:
    """What they share: problems are played one by one; a subclass says who learns in one of them."""

    name: ClassVar[str]
    package: ClassVar[str]
    learns: ClassVar[bool] = False

    def learner(self, seed: int) -> Any:
        """Something with `choose(features, offered, uniform)` and `learn(arm, reward)`."""
        raise NotImplementedError

    def init(self, shape: ProblemShape) -> Learners:
        installed(self.package)
        return Learners([self.learner(seed) for seed in range(shape.batch)])

    def act(self, state: Learners, observation: Observation, rng: Stream) -> tuple[Tensor, NoInfo]:
        uniform = rng.uniform().tolist()
        features = observation.action_set.double().cpu().numpy()
        offered = torch.ones(features.shape[:2]) if observation.offered is None else observation.offered.cpu()
        arms = [
            one.choose(x, np.flatnonzero(held), chance)
            for one, x, held, chance in zip(state.each, features, offered.numpy(), uniform, strict=True)
        ]
        return torch.tensor(arms, device=observation.action_set.device), NoInfo()

    def update(self, state: Learners, observation: Observation, arm: Tensor, reward: Tensor, info: NoInfo) -> Learners:
        features = observation.action_set.double().cpu().numpy()
        for one, x, chosen, paid in zip(state.each, features, arm.tolist(), reward.tolist(), strict=True):
            one.learn(x, chosen, paid)
        return state


class _VowpalWabbit:
    def __init__(self, package: Any, options: str) -> None:
        self._vw = package.Workspace(f"--cb_explore_adf {options} --quiet")
        self._given: dict[int, float] = {}  # the probabilities of the last choice

    @staticmethod
    def _lines(features: Array, arms: Any) -> list[str]:
        rows = ([f"{place}:{x[place]:.6g}" for place in np.flatnonzero(x)] for x in features[arms])
        return ["| " + " ".join(row) for row in rows]

    def choose(self, features: Array, offered: NDArray[np.int64], chance: float) -> int:
        chances = np.asarray(self._vw.predict(self._lines(features, offered)))
        self._given = dict(zip(offered.tolist(), chances.tolist(), strict=True))
        place = int(np.searchsorted(chances.cumsum(), chance * chances.sum(), side="right"))
        return int(offered[min(place, len(offered) - 1)])

    def learn(self, features: Array, arm: int, reward: float) -> None:
        arms = list(self._given)
        lines = self._lines(features, arms)
        place = arms.index(arm)
        lines[place] = f"0:{-reward:.6g}:{max(self._given[arm], 1e-6):.6g} {lines[place]}"
        self._vw.learn(lines)


@dataclass(frozen=True)
class VWSquareCB(Peer):
    """Vowpal Wabbit with SquareCB."""

    name: ClassVar[str] = "vw-squarecb"
    package: ClassVar[str] = "vowpalwabbit"
    options: ClassVar[str] = "--squarecb"

    def learner(self, seed: int) -> _VowpalWabbit:
        return _VowpalWabbit(installed(self.package), f"{self.options} --random_seed {seed + 1}")


@dataclass(frozen=True)
class VWBag(VWSquareCB):
    """Vowpal Wabbit with five bootstrapped learners."""

    name: ClassVar[str] = "vw-bag"
    options: ClassVar[str] = "--bag 5"


@dataclass(frozen=True)
class VWEpsilon(VWSquareCB):
    """Vowpal Wabbit that explores in 5% of the rounds."""

    name: ClassVar[str] = "vw-epsilon"
    options: ClassVar[str] = "--epsilon 0.05"


def regressions(features: Array) -> list[tuple[int, Array]]:
    """For each arm, which regression is asked, and about what.

    Arms whose features are one context, each in its own block, have a regression each; others share one.
    """
    arms, dim = features.shape
    size = dim // arms
    if size * arms == dim and arms > 1:
        blocks = features.reshape(arms, arms, size)
        own = np.einsum("kkc->kc", blocks)
        if np.array_equal(own, np.broadcast_to(own[:1], own.shape)) and np.count_nonzero(blocks) == np.count_nonzero(
            own
        ):
            return [(arm, own[arm]) for arm in range(arms)]
    return [(0, x) for x in features]


class _River:
    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._models = make, dict[int, Any]()

    def _model(self, key: int) -> Any:
        if key not in self._models:
            self._models[key] = self._make()
        return self._models[key]

    def choose(self, features: Array, offered: NDArray[np.int64], chance: float) -> int:
        asked = regressions(features)
        bounds = []
        for arm in offered.tolist():
            key, x = asked[arm]
            found = self._model(key).predict_one(dict(enumerate(x)), with_dist=True)
            bounds.append(found.mu + found.sigma)
        return int(offered[int(np.argmax(bounds))])

    def learn(self, features: Array, arm: int, reward: float) -> None:
        key, x = regressions(features)[arm]
        self._model(key).learn_one(dict(enumerate(x)), reward)


@dataclass(frozen=True)
class RiverLinUCB(Peer):
    """LinUCB of river's Bayesian linear regressions, as its `LinUCBDisjoint` does it."""

    name: ClassVar[str] = "river-linucb"
    package: ClassVar[str] = "river"

    def learner(self, seed: int) -> _River:
        return _River(installed("river.linear_model").BayesianLinearRegression)


class _MABWiser:
    def __init__(self, package: Any) -> None:
        self._package = package
        self._bandit: Any = None

    def _begun(self, asked: list[tuple[int, Array]]) -> Any:
        if self._bandit is None:
            keys = sorted({key for key, _ in asked})
            law = self._package.LearningPolicy.LinUCB(alpha=1, l2_lambda=1)
            self._bandit = self._package.MAB(arms=keys, learning_policy=law)
            zeros = np.zeros((len(keys), len(asked[0][1])))  # it must be fitted once; a zero vector teaches nothing
            self._bandit.fit(keys, [0.0] * len(keys), zeros)
        return self._bandit

    def choose(self, features: Array, offered: NDArray[np.int64], chance: float) -> int:
        asked = regressions(features)
        bandit = self._begun(asked)
        if len({key for key, _ in asked}) > 1:
            found = bandit.predict_expectations(asked[0][1][None])
            bounds = [found[arm] for arm in offered.tolist()]
        else:
            found = bandit.predict_expectations(features[offered])
            bounds = [row[0] for row in (found if isinstance(found, list) else [found])]
        return int(offered[int(np.argmax(bounds))])

    def learn(self, features: Array, arm: int, reward: float) -> None:
        key, x = regressions(features)[arm]
        self._bandit.partial_fit([key], [reward], x[None])


@dataclass(frozen=True)
class MABWiserLinUCB(Peer):
    """MABWiser's LinUCB."""

    name: ClassVar[str] = "mabwiser-linucb"
    package: ClassVar[str] = "mabwiser"

    def learner(self, seed: int) -> _MABWiser:
        return _MABWiser(installed("mabwiser.mab"))


PEERS: tuple[type[Peer], ...] = (VWSquareCB, VWBag, VWEpsilon, RiverLinUCB, MABWiserLinUCB)
