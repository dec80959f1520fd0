"""Pretraining of the query form: it plays, then learns what all arms were worth; later also how daring to be.

Values come first: in every round of what it played itself, it says what each arm is worth and how sure it is, and
descends on minus the log-likelihood of the true values under these normal distributions. That teaches what can be known
from a history, whichever arms were tried in it. How much to explore can only be learned from consequences. So then
every problem is played several times side by side, each time a little more or less daring for a quarter of the rounds,
and what it dares moves towards what led to less regret in the half of the rounds that follows. Beliefs never learn from
regret: policies that did became greedy, because what a choice costs now is certain, and what it teaches is lost in the
noise of one's own rollouts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from driftformer.environments.base import Foreseeable
from driftformer.models.bank import absorb, empty, learn, lesson, predict, settings_of, spread
from driftformer.models.ledger import Read
from driftformer.models.query import DARING, QueryPolicy, Verdict
from driftformer.models.sampling import standard_gumbel
from driftformer.models.statistics import Statistics, statistics, statistics_by
from driftformer.pretraining.data import OWN_SEED, TUNING_SEED, draw_place
from driftformer.pretraining.loop import Step, learning_rate
from driftformer.pretraining.losses import Average
from driftformer.pretraining.processes import Part
from driftformer.pretraining.recipes import Recipe
from driftformer.pretraining.state import TrainingState
from driftformer.pretraining.step import Stepper
from driftformer.pretraining.worlds import TrainingWorld
from driftformer.randomness import Randomness
from driftformer.simulation.tape import Problems, Tape, lay_out, problems_of
from driftformer.simulation.trajectories import Trajectories, played

_HEAT = 3.0
"""Most chance in what it plays while it learns values, in units of its own: histories must differ."""
_FARTHEST = 15.0
"""Values further away than so many spreads count as that far."""
_STRAY = 0.5
"""Standard deviation of what is tried about daring, in logarithms."""
_STRETCHES = 4
"""Parts of a problem with a try of their own."""
AHEAD = 32
"""Steps whose problems a GPU lays out together: launching the kernels of each alone takes longer than they do."""


@dataclass(frozen=True)
class Watched:
    """What was played, and what the bank, or ledger, knew in every round, `[T, B, …]`."""

    trajectories: Trajectories
    known: Statistics | Read
    spread: Tensor  # [T, B] the unit in which values are told


class Watching(Protocol):
    """Whoever plays a policy that reads statistics."""

    @property
    def policy(self) -> Any: ...
    def watch(self, problems: Problems, gumbel: Tensor, stray: Tensor | None = None) -> Watched: ...


class QueryPlayer:
    """Plays batches of problems with a policy's latest weights; on a GPU a round is a captured graph."""

    def __init__(self, policy: QueryPolicy) -> None:
        self.policy = policy
        self._graphs: dict[tuple[object, ...], _Captured] = {}

    def play(self, problems: Problems, gumbel: Tensor) -> Trajectories:
        """Arms and rewards of all rounds; the arm is the argmax of logits + `gumbel` `[B, T, A]`."""
        return self.watch(problems, gumbel).trajectories

    @torch.no_grad()
    def watch(self, problems: Problems, gumbel: Tensor, stray: Tensor | None = None) -> Watched:
        """The same, with what was known; `stray` `[T, B, 6]` is added to what it dares."""
        if stray is None:
            stray = gumbel.new_zeros(gumbel.shape[1], len(gumbel), DARING)
        if gumbel.device.type != "cuda" or not isinstance(problems, Tape):
            return watch(self.policy, problems, gumbel, stray)
        key = (tuple(problems.features.shape), problems.rewards)
        if key not in self._graphs:
            self._graphs[key] = _Captured(self.policy, problems)
        return self._graphs[key].watch(problems, gumbel, stray)


def watch(policy: QueryPolicy, problems: Problems, gumbel: Tensor, stray: Tensor) -> Watched:
    """The plain way: round after round."""
    shape, course = problems.shape, problems.begin()
    bank = empty(shape.batch, shape.dim, shape.device, shape.dtype)
    arms, rewards, known, spreads = [], [], list[Statistics](), []
    for t in range(shape.horizon):
        observation = course.observation
        prediction = predict(bank, observation.action_set, observation.offered)
        known.append(statistics(bank, prediction, observation.offered))
        spreads.append(spread(bank))
        arm = observation.best(policy(known[-1], observation.offered, stray[t]).logits + gumbel[:, t])
        reward = course.pay(arm)
        learn(bank, prediction, arm, reward)
        arms.append(arm)
        rewards.append(reward)
    kept = Statistics(*(torch.stack(rounds) for rounds in zip(*known, strict=True)))
    trajectories = played(course.laid(), torch.stack(arms, dim=1), torch.stack(rewards, dim=1))
    return Watched(trajectories, kept, torch.stack(spreads))


@lru_cache(maxsize=1)
def _compiled() -> tuple[Callable[..., Any], ...]:
    """Those of the bank's functions that are many small kernels, fused, for any sizes."""
    return tuple(torch.compile(work, dynamic=True) for work in (statistics_by, lesson))


class _Captured:
    """A round of laid-out problems as a CUDA graph, and the memory that it reads and writes."""

    def __init__(self, policy: QueryPolicy, problems: Tape) -> None:
        self._policy, self._law = policy, problems.rewards
        batch, horizon, arms, dim = problems.features.shape
        device = problems.values.device
        self._bank, self._fresh = (empty(batch, dim, device, torch.float32) for _ in range(2))
        self._features = torch.zeros(horizon, batch, arms, dim, device=device)
        self._values, self._gumbel = (torch.zeros(horizon, batch, arms, device=device) for _ in range(2))
        self._scale, self._noise, self._paid, self._spread = (
            torch.zeros(horizon, batch, device=device) for _ in range(4)
        )
        self._stray = torch.zeros(horizon, batch, DARING, device=device)
        self._offered = torch.ones_like(self._values, dtype=torch.bool)
        self._arms = torch.zeros(horizon, batch, device=device, dtype=torch.long)
        self._t = torch.zeros(1, device=device, dtype=torch.long)
        shown = statistics(self._bank, predict(self._bank, self._features[0]))
        self._known = Statistics(*(torch.zeros(horizon, *value.shape, device=device) for value in shown))
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # the first calls compile and set up libraries, which cannot be captured
            self._round()
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._round()

    def _round(self) -> None:
        bank, t = self._bank, self._t
        fixed, (told, taught) = settings_of(bank), _compiled()

        def now(held: Tensor) -> Tensor:
            return held.index_select(0, t).squeeze(0)

        offered = now(self._offered)
        prediction = predict(bank, now(self._features), offered)
        known = told(fixed, bank, prediction, offered)
        scores = self._policy(known, offered, now(self._stray)).logits + now(self._gumbel)
        arm = scores.masked_fill(~offered, -torch.inf).argmax(dim=1)
        mean = now(self._values).gather(1, arm.unsqueeze(1)).squeeze(1)
        reward = self._law.reward(mean, now(self._scale), now(self._noise))
        for held, value in zip(
            (*self._known, self._spread, self._arms, self._paid), (*known, spread(bank), arm, reward), strict=True
        ):
            held.index_copy_(0, t, value.unsqueeze(0))
        absorb(fixed, bank, taught(fixed, bank, prediction, arm, reward))
        t.add_(1)

    def watch(self, problems: Tape, gumbel: Tensor, stray: Tensor) -> Watched:
        self._stray.copy_(stray)
        mine = [self._features, self._values, self._scale, self._noise, self._gumbel]
        given = [problems.features, problems.values, problems.spread, problems.noise, gumbel]
        for held, new in zip(mine, given, strict=True):
            held.copy_(new.transpose(0, 1))
        self._offered.copy_(torch.tensor(True) if problems.offered is None else problems.offered.transpose(0, 1))
        for name, fresh in vars(self._fresh).items():
            getattr(self._bank, name).copy_(fresh)
        self._t.zero_()
        for _ in range(len(self._arms)):
            self._graph.replay()
        trajectories = played(problems, self._arms.T.contiguous(), self._paid.T.contiguous())
        return Watched(trajectories, self._known, self._spread)


def value_loss(verdict: Verdict, target: Tensor, counts: Tensor) -> Tensor:
    """Minus the log-likelihood of what arms were worth, `[N, A]`, over those that count."""
    error = (target - verdict.mean) * torch.exp(-verdict.doubt)
    each = error.square().clamp(max=400) / 2 + verdict.doubt  # one impossible value must not drown all others
    return (each * counts).sum() / counts.sum().clamp(min=1)


def daring_loss(verdict: Verdict, stray: Tensor, excess: Tensor) -> Tensor:
    """Its gradient is that of the mean regret by what is dared: regret `[N]` times the score of what was tried."""
    return (excess.unsqueeze(1) * stray / _STRAY**2 * verdict.daring).sum(dim=1).mean()


def excess_regret(regret: Tensor, count: int) -> Tensor:
    """Mean regret of half the rounds from the beginning of each round's stretch on, `[T, R·P]`, less its mean over all
    R rollouts of the problem; 0 in the last stretch, after which too little comes to judge by.
    """
    horizon = len(regret)
    begins = _begins(horizon, regret.device)
    sums = torch.cat([torch.zeros_like(regret[:1]), regret.cumsum(0)])  # [T + 1, R·P]
    to_come = (sums[begins[2:]] - sums[begins[:-2]]) / (begins[2:] - begins[:-2]).unsqueeze(1)  # [S - 1, R·P]
    grouped = to_come.view(len(to_come), count, -1)  # [S - 1, R, P]
    centred = functional.pad((grouped - grouped.mean(1, keepdim=True)).flatten(1), (0, 0, 0, 1))
    return centred.repeat_interleave(begins.diff(), dim=0)


def _begins(horizon: int, device: torch.device) -> Tensor:
    """Where stretches begin, and the end, `[S + 1]`."""
    return torch.arange(_STRETCHES + 1, device=device) * horizon // _STRETCHES


def tries(randomness: Randomness, copies: int, horizon: int, daring: int) -> Tensor:
    """What rollouts dare more or less, `[T, copies · problems, D]`: each copy of the second half mirrors one of the
    first; nothing in the last stretch.
    """
    stretches = _STRETCHES - 1
    half = randomness.stream("stray").normal((copies + 1) // 2, stretches, daring).transpose(0, 1)  # [R/2, P, S - 1, D]
    tried = functional.pad(_STRAY * torch.cat([half, -half])[:copies].flatten(0, 1), (0, 0, 0, 1))  # [R·P, S, D]
    return tried.transpose(0, 1).repeat_interleave(_begins(horizon, tried.device).diff(), dim=0)


@dataclass
class QueryLoop:
    """All that a step needs. All about step n comes from (seed, n) and from the weights at that time."""

    recipe: Recipe
    model: Callable[..., Verdict]
    worlds: list[TrainingWorld]
    player: Watching
    stepper: Stepper
    part: Part
    average: Average
    state: TrainingState
    device: torch.device
    earlier: dict[str, Tensor] = field(default_factory=dict)  # a step is never left half done
    ahead: int = 1  # steps whose problems are laid out together
    _laid: dict[tuple[bool, int, int], Tape] = field(default_factory=dict)  # those of the steps under way

    def steps(self) -> Iterator[Step]:
        """One step after the other, from where the training stands."""
        recipe, state = self.recipe, self.state
        while state.step < recipe.steps:
            rate = learning_rate(state.step, recipe.steps, recipe.warmup, recipe.rate)
            loss, (horizon, rows, arms) = self._step(state.step, rate, tuning=False)
            state.step += 1
            yield Step("labels", state.step, recipe.steps, loss, rate, rows, horizon * arms, 2 * arms)
        while state.tuning_step < recipe.tuning_steps:
            rate = learning_rate(state.tuning_step, recipe.tuning_steps, recipe.warmup // 10, recipe.tuning_rate)
            loss, (horizon, rows, arms) = self._step(state.tuning_step, rate, tuning=True)
            state.tuning_step += 1
            yield Step("regret", state.tuning_step, recipe.tuning_steps, loss, rate, rows, horizon * arms, 2 * arms)

    def _step(self, number: int, rate: float, tuning: bool) -> tuple[Tensor, torch.Size]:
        """Play, then descend along the rounds in a few parts; the mean loss or regret of a round, and T, B and A."""
        recipe = self.recipe
        watched, stray = self._watch(number, tuning)
        laid, arms = watched.trajectories.on_offer, watched.trajectories.arms.T  # [T, B]
        values = laid.values.transpose(0, 1)  # [T, B, A]
        offered = torch.ones_like(values, dtype=torch.bool) if laid.offered is None else laid.offered.transpose(0, 1)
        centre = (values * offered).sum(2, keepdim=True) / offered.sum(2, keepdim=True)
        known = (watched.spread > 0).unsqueeze(2)
        target = (values - centre) / torch.where(known, watched.spread.unsqueeze(2), 1.0)
        target, counts = target.clamp(-_FARTHEST, _FARTHEST), (offered & known).to(target)
        regret = laid.suboptimality.transpose(0, 1)
        regret = regret / (regret.sum(dim=(0, 2)) / offered.sum(dim=(0, 2))).clamp(min=1e-6)[:, None]
        paid = regret.gather(2, arms.unsqueeze(2)).squeeze(2)
        excess = excess_regret(paid, recipe.tuning_rollouts) if tuning else paid

        def loss(model: Callable[..., Verdict], rounds: Tensor) -> tuple[Tensor, Tensor]:
            def flat(held: Tensor) -> Tensor:
                return held.index_select(0, rounds).flatten(0, 1)

            verdict = model(type(watched.known)(*(flat(held) for held in watched.known)), flat(offered))
            value = value_loss(verdict, flat(target), flat(counts))
            if not tuning:  # daring plays no part yet, but several processes wait for the gradient of every weight
                return value + 0 * verdict.daring.mean(), value
            return value + daring_loss(verdict, flat(stray), flat(excess)), paid.mean()

        order = np.random.default_rng((recipe.seed, number, int(tuning))).permutation(len(arms))
        losses = []
        for part in np.array_split(order, min(len(order), recipe.tuning_updates)):
            losses.append(self.stepper.accumulate(loss, (torch.from_numpy(part).to(self.device),)))
            self.stepper.descend(rate, recipe.tuning_clip if tuning else recipe.clip)
        return self.average(torch.stack(losses).mean()), values.shape

    def _watch(self, number: int, tuning: bool) -> tuple[Watched, Tensor]:
        """What was played, and what it tried about daring."""
        with torch.no_grad():
            problems, randomness = self._problems(number, tuning)
            copies, shape = self.recipe.tuning_rollouts if tuning else 1, problems.shape
            uniform = randomness.stream("gumbel").uniform(copies, shape.horizon, shape.arms)
            gumbel = standard_gumbel(uniform.transpose(0, 1).flatten(0, 1))  # one copy of all after the other
            if tuning:
                stray = tries(randomness, copies, shape.horizon, self.player.policy.daring)
                return self.player.watch(problems.repeat(copies), gumbel, stray), stray
            heat = _HEAT * randomness.stream("heat").uniform()
            watched = self.player.watch(problems, gumbel * heat[:, None, None])
            return watched, gumbel.new_zeros(shape.horizon, len(gumbel), self.player.policy.daring)

    def _problems(self, number: int, tuning: bool) -> tuple[Problems, Randomness]:
        """The problems of a step, and where its other random numbers come from."""
        recipe, seed = self.recipe, self.recipe.seed + tuning
        place = draw_place(self.worlds, seed, number)
        environment = self.worlds[place].environment
        copies, tokens = (recipe.tuning_rollouts, recipe.tuning_tokens) if tuning else (1, recipe.tokens)
        size = self.part.each(tokens // (environment.horizon * environment.arms * copies))
        root = (TUNING_SEED if tuning else OWN_SEED) + recipe.seed

        def drawn(numbers: list[int]) -> Randomness:
            chunks = [chunk for step in numbers for chunk in self.part.chunks(step)]
            return Randomness(root, chunks, size=size, device=self.device)

        if not isinstance(environment, Foreseeable):
            return problems_of(environment, drawn([number])), drawn([number])
        first = number - number % self.ahead
        together = [step for step in range(first, first + self.ahead) if draw_place(self.worlds, seed, step) == place]
        key = (tuning, first, place)
        if key not in self._laid:
            self._laid = {held: tape for held, tape in self._laid.items() if held[:2] == key[:2]}
            laid = lay_out(environment, drawn(together))
            self._laid[key] = laid.rows(0, len(laid.values))  # without the truth, which no step needs
        rows = size * self.part.count
        return self._laid[key].rows(together.index(number) * rows, rows), drawn([number])
