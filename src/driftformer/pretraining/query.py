"""Pretraining of the query form: it plays, then learns what all arms were worth; later, what its choices led to.

Values come first: in every round of what it played itself, it says what each arm is worth and how sure it is, and
descends on minus the log-likelihood of the true values under these normal distributions. That teaches what can be known
from a history, whichever arms were tried in it. Then comes the return: how optimistic to be, and how much to leave to
chance, can only be learned from consequences, so it descends on the regret of its own rollouts. The gradient is that of
the discounted regret still to come (REINFORCE), with the exact expectation for the round at hand, and for what follows
the mean over the other rollouts of the same problem as baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from driftformer.models.bank import Statistics, empty, learn, predict, spread, statistics
from driftformer.models.checkpoints import Policy
from driftformer.models.query import QueryPolicy, Verdict
from driftformer.models.sampling import standard_gumbel
from driftformer.pretraining.data import OWN_SEED, TUNING_SEED, draw_place
from driftformer.pretraining.loop import Step, learning_rate
from driftformer.pretraining.losses import Average
from driftformer.pretraining.play import Player
from driftformer.pretraining.processes import Part
from driftformer.pretraining.recipes import Recipe
from driftformer.pretraining.state import TrainingState
from driftformer.pretraining.step import Stepper
from driftformer.pretraining.worlds import TrainingWorld
from driftformer.randomness import Randomness
from driftformer.simulation.tape import Problems, Tape, problems_of
from driftformer.simulation.trajectories import Trajectories, played

_HEAT = 3.0
"""Most chance in what it plays while it learns values, in units of its own: histories must differ."""
_FARTHEST = 15.0
"""Values further away than so many spreads count as that far."""
_MOST_REGRET = 40.0
"""Regret to come beyond which a rollout says no more about its choices, in rounds of the average arm."""


@dataclass(frozen=True)
class Watched:
    """What was played, and what the bank knew in every round, `[T, B, …]`."""

    trajectories: Trajectories
    known: Statistics
    spread: Tensor  # [T, B]


class QueryPlayer:
    """Plays batches of problems with a policy's latest weights; on a GPU a round is a captured graph."""

    def __init__(self, policy: QueryPolicy) -> None:
        self._policy = policy
        self._graphs: dict[tuple[object, ...], _Captured] = {}

    def play(self, problems: Problems, gumbel: Tensor) -> Trajectories:
        """Arms and rewards of all rounds; the arm is the argmax of logits + `gumbel` `[B, T, A]`."""
        return self.watch(problems, gumbel).trajectories

    @torch.no_grad()
    def watch(self, problems: Problems, gumbel: Tensor) -> Watched:
        """The same, with what was known."""
        if gumbel.device.type != "cuda" or not isinstance(problems, Tape):
            return watch(self._policy, problems, gumbel)
        key = (tuple(problems.features.shape), problems.rewards, problems.offered is None)
        if key not in self._graphs:
            self._graphs[key] = _Captured(self._policy, problems)
        return self._graphs[key].watch(problems, gumbel)


def player_of(policy: Policy) -> Player | QueryPlayer:
    """Whoever plays a policy of this form."""
    return QueryPlayer(policy) if isinstance(policy, QueryPolicy) else Player(policy)


def watch(policy: QueryPolicy, problems: Problems, gumbel: Tensor) -> Watched:
    """The plain way: round after round."""
    shape, course = problems.shape, problems.begin()
    bank = empty(shape.batch, shape.dim, shape.device, shape.dtype)
    arms, rewards, known, spreads = [], [], list[Statistics](), []
    for t in range(shape.horizon):
        observation = course.observation
        prediction = predict(bank, observation.action_set, observation.offered)
        known.append(statistics(bank, prediction, observation.offered))
        spreads.append(spread(bank))
        arm = observation.best(policy(known[-1], observation.offered).logits + gumbel[:, t])
        reward = course.pay(arm)
        learn(bank, prediction, arm, reward)
        arms.append(arm)
        rewards.append(reward)
    kept = Statistics(*(torch.stack(rounds) for rounds in zip(*known, strict=True)))
    trajectories = played(course.laid(), torch.stack(arms, dim=1), torch.stack(rewards, dim=1))
    return Watched(trajectories, kept, torch.stack(spreads))


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
        self._offered = None if problems.offered is None else torch.ones_like(self._values, dtype=torch.bool)
        self._arms = torch.zeros(horizon, batch, device=device, dtype=torch.long)
        self._t = torch.zeros(1, device=device, dtype=torch.long)
        shown = statistics(self._bank, predict(self._bank, self._features[0]))
        self._known = Statistics(*(torch.zeros(horizon, *value.shape, device=device) for value in shown))
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # the first calls set up libraries, which cannot be captured
            self._round()
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._round()

    def _round(self) -> None:
        bank, t = self._bank, self._t

        def now(held: Tensor) -> Tensor:
            return held.index_select(0, t).squeeze(0)

        offered = None if self._offered is None else now(self._offered)
        prediction = predict(bank, now(self._features), offered)
        known = statistics(bank, prediction, offered)
        scores = self._policy(known, offered).logits + now(self._gumbel)
        arm = (scores if offered is None else scores.masked_fill(~offered, -torch.inf)).argmax(dim=1)
        mean = now(self._values).gather(1, arm.unsqueeze(1)).squeeze(1)
        reward = self._law.reward(mean, now(self._scale), now(self._noise))
        for held, value in zip(
            (*self._known, self._spread, self._arms, self._paid), (*known, spread(bank), arm, reward), strict=True
        ):
            held.index_copy_(0, t, value.unsqueeze(0))
        learn(bank, prediction, arm, reward)
        t.add_(1)

    def watch(self, problems: Tape, gumbel: Tensor) -> Watched:
        mine = [self._features, self._values, self._scale, self._noise, self._gumbel]
        given = [problems.features, problems.values, problems.spread, problems.noise, gumbel]
        if self._offered is not None and problems.offered is not None:
            mine, given = [*mine, self._offered], [*given, problems.offered]
        for held, new in zip(mine, given, strict=True):
            held.copy_(new.transpose(0, 1))
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


def return_loss(verdict: Verdict, offered: Tensor, arm: Tensor, regret: Tensor, to_come: Tensor) -> Tensor:
    """Expected regret of the round `[N, A]`, and the score-function term on what is still to come `[N]`."""
    log_policy = verdict.logits.masked_fill(~offered, -1e9).log_softmax(dim=1)
    expected = (log_policy.exp() * regret).sum(dim=1)
    taken = log_policy.gather(1, arm.unsqueeze(1)).squeeze(1)
    return (expected + to_come * taken).mean()


def regret_to_come(regret: Tensor, count: int, discount: float) -> Tensor:
    """Discounted regret after each round `[T, R·P]`, less its mean over the other rollouts of the same problem."""
    later, sums = torch.zeros_like(regret[0]), []
    for now in regret.flip(0):
        sums.append(later)
        later = discount * (now + later)
    grouped = torch.stack(sums[::-1]).view(len(regret), count, -1)  # [T, R, P]
    others = (grouped.sum(1, keepdim=True) - grouped) / max(1, count - 1)
    beyond: Tensor = (grouped - others).flatten(1)
    return beyond.clamp(-_MOST_REGRET, _MOST_REGRET)


@dataclass
class QueryLoop:
    """All that a step needs. All about step n comes from (seed, n) and from the weights at that time."""

    recipe: Recipe
    model: Callable[..., Verdict]
    worlds: list[TrainingWorld]
    player: QueryPlayer
    stepper: Stepper
    part: Part
    average: Average
    state: TrainingState
    device: torch.device
    earlier: dict[str, Tensor] = field(default_factory=dict)  # a step is never left half done

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
        watched = self._watch(number, tuning)
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
        to_come = regret_to_come(paid, recipe.tuning_rollouts, recipe.tuning_discount) if tuning else paid

        def loss(model: Callable[..., Verdict], rounds: Tensor) -> tuple[Tensor, Tensor]:
            def flat(held: Tensor) -> Tensor:
                return held.index_select(0, rounds).flatten(0, 1)

            seen = flat(offered)
            verdict = model(Statistics(*(flat(held) for held in watched.known)), None if laid.offered is None else seen)
            value = value_loss(verdict, flat(target), flat(counts))
            if not tuning:  # logits play no part yet, but several processes wait for the gradient of every weight
                return value + 0 * verdict.logits.mean(), value
            choice = return_loss(verdict, seen, flat(arms), flat(regret), flat(to_come))
            return choice + recipe.tuning_values * value, paid.mean()

        order = np.random.default_rng((recipe.seed, number, int(tuning))).permutation(len(arms))
        losses = []
        for part in np.array_split(order, min(len(order), recipe.tuning_updates)):
            losses.append(self.stepper.accumulate(loss, (torch.from_numpy(part).to(self.device),)))
            self.stepper.descend(rate, recipe.tuning_clip if tuning else recipe.clip)
        return self.average(torch.stack(losses).mean()), values.shape

    def _watch(self, number: int, tuning: bool) -> Watched:
        recipe = self.recipe
        environment = self.worlds[draw_place(self.worlds, recipe.seed + tuning, number)].environment
        copies = recipe.tuning_rollouts if tuning else 1
        tokens = recipe.tuning_tokens if tuning else recipe.tokens
        size = self.part.each(tokens // (environment.horizon * environment.arms * copies))
        root = (TUNING_SEED if tuning else OWN_SEED) + recipe.seed
        with torch.no_grad():
            randomness = Randomness(root, self.part.chunks(number), size=size, device=self.device)
            problems = problems_of(environment, randomness)
            uniform = randomness.stream("gumbel").uniform(copies, environment.horizon, environment.arms)
            gumbel = standard_gumbel(uniform.transpose(0, 1).flatten(0, 1))  # one copy of all after the other
            if tuning:
                return self.player.watch(problems.repeat(copies), gumbel)
            heat = _HEAT * randomness.stream("heat").uniform()
            return self.player.watch(problems, gumbel * heat[:, None, None])
