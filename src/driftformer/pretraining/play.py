"""Play a policy from the first round to the last: for its own data, its regret, its fine-tuning.

On a GPU a round of laid-out problems is captured as a CUDA graph and replayed for all rounds: it is some hundred small
kernels, and launching them one by one would cost several times what they do.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.environments.rewards import RewardLaw
from driftformer.models.attention import have_kernels
from driftformer.models.cache import GraphCache
from driftformer.models.context import begin, logits_together, record
from driftformer.models.incontext import InContextPolicy, placed
from driftformer.problem import pick
from driftformer.simulation.tape import Problems, Tape
from driftformer.simulation.trajectories import Trajectories, played


class Player:
    """Plays batches of problems, again and again, with a policy's latest weights."""

    def __init__(self, policy: InContextPolicy) -> None:
        self._source, self._device = policy, policy.head.weight.device
        kind = torch.bfloat16 if self._device.type == "cuda" else policy.head.weight.dtype
        self._policy = placed(InContextPolicy(policy.config), self._device, kind).requires_grad_(False)
        self._graphs: dict[tuple[object, ...], _Captured] = {}

    @torch.no_grad()
    def play(self, problems: Problems, gumbel: Tensor, explore: Tensor | None = None) -> Trajectories:
        """Arms and rewards of all rounds.

        The arm is the argmax of logits + `gumbel` `[B, T, A]`, so standard Gumbel numbers sample from the policy and
        zeros are greedy; where `explore` `[B, T]` is not -1, that number in [0, 1) draws an arm uniformly instead.
        """
        for mine, latest in zip(self._policy.parameters(), self._source.parameters(), strict=True):
            mine.copy_(latest)
        explore = torch.full_like(gumbel[:, :, 0], -1) if explore is None else explore
        graphs = self._device.type == "cuda" and self._policy.config.backbone == "gpt2" and have_kernels()
        if not graphs or not isinstance(problems, Tape):
            return play(self._policy, problems, gumbel, explore)
        key = (tuple(problems.features.shape), problems.rewards)
        if key not in self._graphs:
            self._graphs[key] = _Captured(self._policy, problems)
        return self._graphs[key].play(problems, gumbel, explore)


def play(policy: InContextPolicy, problems: Problems, gumbel: Tensor, explore: Tensor) -> Trajectories:
    """The plain way: round after round."""
    shape, course = problems.shape, problems.begin()
    context = begin(policy, shape.batch, shape.horizon)
    seen = torch.ones_like(context.seen)
    arms, rewards = [], []
    for t in range(shape.horizon):
        observation = course.observation
        features = observation.action_set.to(context.x.dtype)
        logits = logits_together(policy, context, features, t + 1)
        chosen = observation.best(logits.float() + gumbel[:, t])
        arm = torch.where(explore[:, t] < 0, chosen, observation.drawn(explore[:, t].clamp(min=0)))
        reward = course.pay(arm)
        context = record(context, pick(features, arm), arm, reward.to(features.dtype), seen)
        arms.append(arm)
        rewards.append(reward)
    return played(course.laid(), torch.stack(arms, dim=1), torch.stack(rewards, dim=1))


class _Captured:
    """A round as a CUDA graph, and the memory that it reads and writes; in the paper's form the first round too."""

    def __init__(self, policy: InContextPolicy, problems: Tape) -> None:
        self._policy = policy
        self._rewards: RewardLaw = problems.rewards
        batch, horizon, arms, dim = problems.features.shape
        device = problems.values.device
        self._context = begin(policy, batch, horizon)
        self._features = torch.zeros(horizon, batch, arms, dim, device=device, dtype=torch.bfloat16)
        self._values, self._gumbel = (torch.zeros(horizon, batch, arms, device=device) for _ in range(2))
        self._spread, self._noise = (torch.zeros(horizon, batch, device=device) for _ in range(2))
        self._forced = torch.zeros(horizon, batch, device=device, dtype=torch.long)
        self._arms, self._paid = torch.zeros_like(self._forced), torch.zeros_like(self._noise)
        self._t = torch.zeros(1, device=device, dtype=torch.long)
        self._rest = self._capture(first=False)
        self._first = self._capture(first=True) if policy.config.form == "paper" else self._rest

    def _capture(self, first: bool) -> torch.cuda.CUDAGraph:
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # the first calls set up libraries, which cannot be captured
            self._t.fill_(0 if first else 1)
            self._round(first)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._round(first)
        return graph

    def _round(self, first: bool) -> None:
        policy, context, t = self._policy, self._context, self._t
        features = self._features.index_select(0, t).squeeze(0)
        outcome = policy.outcome_token(context.x, context.arm, context.reward, context.seen)
        if policy.config.form == "pointer":
            tokens, start = outcome.unsqueeze(1), t
        elif first:
            tokens, start = policy.state_token(features).unsqueeze(1), t
        else:
            tokens, start = torch.stack([outcome, policy.state_token(features)], dim=1), 2 * t - 1
        places = (start + torch.arange(tokens.shape[1], device=t.device)).unsqueeze(0)
        hidden = policy.run(tokens, places, None, GraphCache(context.slots, start.int()))
        inputs = (self._values, self._spread, self._noise, self._gumbel, self._forced)
        values, spread, noise, gumbel, forced = (held.index_select(0, t).squeeze(0) for held in inputs)
        chosen = (policy.logits(hidden[:, -1], features).float() + gumbel).argmax(dim=1)
        arm = torch.where(forced < 0, chosen, forced)
        reward = self._rewards.reward(values.gather(1, arm.unsqueeze(1)).squeeze(1), spread, noise)
        self._arms.index_copy_(0, t, arm.unsqueeze(0))
        self._paid.index_copy_(0, t, reward.unsqueeze(0))
        context.x.copy_(features.gather(1, arm[:, None, None].expand(-1, 1, features.shape[2])).squeeze(1))
        context.arm.copy_(arm)
        context.reward.copy_(reward)
        context.seen.fill_(1)
        t.add_(1)

    def play(self, problems: Tape, gumbel: Tensor, explore: Tensor) -> Trajectories:
        if problems.offered is not None:
            gumbel = gumbel.masked_fill(~problems.offered, -torch.inf)
        mine = (self._features, self._values, self._spread, self._noise, self._gumbel, self._forced)
        given = (problems.features, problems.values, problems.spread, problems.noise, gumbel, problems.drawn(explore))
        for held, new in zip(mine, given, strict=True):
            held.copy_(new.transpose(0, 1))
        for start in (self._context.x, self._context.reward, self._context.seen, self._t):
            start.zero_()
        self._first.replay()
        for _ in range(len(self._arms) - 1):
            self._rest.replay()
        return played(problems, self._arms.T.contiguous(), self._paid.T.contiguous())
