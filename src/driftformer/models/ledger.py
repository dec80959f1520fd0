"""What an MDP has shown so far: visits, rewards and moves in several memories, and plans made of each.

The form `tabular` sees nothing else. Some memories forget from episode to episode, some whenever a pair of state and
action is visited again. Two begin anew when what happens has become unlikely under them (a CUSUM of likelihood ratios),
for rewards and moves apart. At the beginning of an episode every memory is planned with, by backward induction, three
times: what it expects (Q), what could be at best where little was seen (Q⁺), and how uncertain the first is (U, the
uncertainty Bellman equation). In each step the present state is reckoned with anew: what was tried a moment ago is not
tried again as if it were unknown. States, actions and their number play no part in what is read: statistics belong to
the actions of the present state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

FORGETS = (1.0, 1.0, 0.99, 0.9)
"""What memories keep from an episode to the next."""
ALARMS = (5.0, 9.0)
"""Thresholds of the memories that begin again: the CUSUM of any pair of state and action, two or three surprises."""
MEMORIES = len(FORGETS) + len(ALARMS)
FADES = (1.0, 0.97, 1.0, 1.0, 1.0, 0.98)
"""What each memory keeps of a pair of state and action when it is visited again."""
_DOUBT = 0.5
"""A pair that was visited once is believed by 1 / (1 + this)."""
_WORST = 3.2
"""Largest surprise that one step can be."""
_WIDTH = 0.1
"""Standard deviation of rewards that is always reckoned with."""
RATES = (0.9, 0.98, 0.998)
"""What averages of surprise keep from a step to the next."""


@dataclass
class Ledger:
    """B problems; steps of an episode share rewards and moves unless H' is H."""

    moves: Tensor  # [B, K, H', S, A, S] how often each move was seen, as remembered
    paid: Tensor  # [B, K, 3, H', S, A] rewards: how many, their sum, the sum of their squares
    alarm: Tensor  # [B, ALARMS, 2, H'·S·A] CUSUM of rewards and of moves
    surprise: Tensor  # [B, K, 2, R] averages of the surprise in rewards and in moves, not yet divided
    span: Tensor  # [B, R] what they are divided by
    age: Tensor  # [B, H'·S·A] the episode in which a pair was last visited, or -1
    best: Tensor  # [B] the largest reward so far
    ahead: Tensor  # [B, K, H, 4, S] V, V⁺, U and V² of the next step, as of the beginning of the episode
    episode: Tensor  # [B]
    last: Tensor  # [B, 2] state and action of a step whose successor is not yet known; -1 before there is one
    since: Tensor  # [B, ALARMS, 2] episodes since the memory of rewards, and of moves, began


def empty(batch: int, states: int, actions: int, stages: int, steps: int, like: Tensor) -> Ledger:
    """Nothing has been seen; `steps` is H'."""
    memories, pairs = MEMORIES, (steps, states, actions)

    def zeros(*shape: int) -> Tensor:
        return torch.zeros(batch, *shape, device=like.device, dtype=like.dtype)

    none = torch.full((batch, 2), -1, dtype=torch.long, device=like.device)
    ledger = Ledger(
        moves=zeros(memories, *pairs, states),
        paid=zeros(memories, 3, *pairs),
        alarm=zeros(len(ALARMS), 2, steps * states * actions),
        surprise=zeros(memories, 2, len(RATES)),
        span=zeros(len(RATES)),
        age=torch.full((batch, steps * states * actions), -1, dtype=torch.long, device=like.device),
        best=zeros(),
        ahead=zeros(memories, stages, 4, states),
        episode=none[:, 0] + 1,
        last=none,
        since=zeros(len(ALARMS), 2),
    )
    make_plans(ledger)
    return ledger


def make_plans(ledger: Ledger) -> None:
    """Backward induction in all memories at once, in place: what states are worth in the step that follows."""
    batch, memories, stages, _, states = ledger.ahead.shape
    steps, actions = ledger.moves.shape[2], ledger.moves.shape[4]
    chance = ledger.moves.view(batch * memories, steps, states * actions, states)
    seen, largest, usual = ledger.moves.sum(-1), ledger.best.clamp(min=0.05), _usual(ledger)
    after = torch.zeros_like(ledger.ahead[:, :, 0])  # [B, K, 4, S] V, V⁺, U, V²
    for stage in reversed(range(stages)):
        which = stage if steps > 1 else 0
        ledger.ahead[:, :, stage] = after
        led = after.view(batch * memories, 4, states) @ chance[:, which].mT  # this way round it is twice as fast
        led = led.view(batch, memories, 4, states, actions)
        given = after[:, :, 0].mean(2), usual, largest, float(stages - stage - 1)
        q, best, u = _worth(ledger.paid[:, :, :, which], seen[:, :, which], led, *given)
        hoped_for, choice = best.max(dim=3, keepdim=True)
        top = q.amax(dim=3)
        after = torch.stack([top, hoped_for[..., 0], u.gather(3, choice)[..., 0], top.square()], dim=2)


def _usual(ledger: Ledger) -> Tensor:
    """What a step pays on average, `[B, K]`."""
    count, total, _ = ledger.paid.flatten(3).sum(3).unbind(2)
    return total / count.clamp(min=1)


def _worth(
    paid: Tensor, seen: Tensor, led: Tensor, anywhere: Tensor, usual: Tensor, largest: Tensor, left: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Q, Q⁺ and U `[B, K, S, A]` of some states: of their rewards `[B, K, 3, S, A]`, how often they were left `seen`,
    and the sums `led` `[B, K, 4, S, A]` of what the states were worth that followed.
    """
    usual, anywhere = usual[:, :, None, None], anywhere[:, :, None, None]
    largest = largest[:, None, None, None]
    count, total, squares = paid.unbind(2)
    known, trust = count / (count + _DOUBT), seen / (seen + _DOUBT)
    mean = total / count.clamp(min=1e-6)
    reward = torch.lerp(usual.expand_as(mean), mean, known)
    spread = (squares / count.clamp(min=1e-6) - mean.square()).clamp(min=0) + _WIDTH**2
    doubt = spread / (count + 1) + (1 - known) * largest.square()
    value, hope, uncertainty, square = (led / seen.unsqueeze(2).clamp(min=1e-6)).unbind(2)
    q = reward + torch.lerp(anywhere.expand_as(trust), value, trust)
    best = torch.lerp(torch.ones_like(mean), mean, known) + torch.lerp(torch.full_like(trust, left), hope, trust)
    variance = (square - value.square()).clamp(min=0)
    unknown = (1 - trust) * (left * largest * 0.5).square()
    return q, best, doubt + variance / (seen + 1) + unknown + trust * uncertainty


class Read(NamedTuple):
    """What the network reads in a round: no state, no number of states, no unit of rewards."""

    arms: Tensor  # [B, A, F] of each action
    problem: Tensor  # [B, P]


ARM = 6 * MEMORIES + 1
PROBLEM = MEMORIES * (2 * len(RATES) + 2) + 4 * len(ALARMS) + 6


def unit(ledger: Ledger, stage: int) -> Tensor:
    """The most that may still be earned, in rewards as large as the largest so far, `[B]`: the unit of all values."""
    return ledger.best.clamp(min=0.05) * (ledger.ahead.shape[2] - stage)


def read(ledger: Ledger, state: Tensor, stage: int) -> Read:
    """The statistics of the actions of the present states `[B]`."""
    batch, _, steps, states, actions, _ = ledger.moves.shape
    stages, row = ledger.ahead.shape[2], torch.arange(batch, device=state.device)
    which = stage if steps > 1 else 0
    scale = unit(ledger, stage)[:, None, None]
    own = ledger.paid[row, :, :, which, state]  # [B, K, 3, A]
    moves, after = ledger.moves[row, :, which, state], ledger.ahead[:, :, stage]  # [B, K, A, S], [B, K, 4, S]
    seen, left = moves.sum(-1), float(stages - stage - 1)
    led = (moves.unsqueeze(2) * after.unsqueeze(3)).sum(-1).unsqueeze(3)  # [B, K, 4, 1, A]
    given = after[:, :, 0].mean(2), _usual(ledger), ledger.best.clamp(min=0.05), left
    worth = _worth(own.unsqueeze(3), seen.unsqueeze(2), led, *given)
    q, best, u = (part.squeeze(2) for part in worth)  # [B, K, A] each, with what was seen since the episode began
    pays = own[:, :, 1] / (own[:, :, 0] + _DOUBT) / ledger.best.clamp(min=0.05)[:, None, None]
    told = [(part - part.mean(2, keepdim=True)) / scale for part in (q, best)]
    parts = [*told, u.clamp(min=0).sqrt() / scale, own[:, :, 0].log1p() / 3, seen.log1p() / 3, pays]
    age = ledger.age.view(batch, steps, states, actions)[row, which, state]
    old = torch.where(age < 0, -1.0, (ledger.episode[:, None] - age).to(pays).log1p() / 3)
    arms = torch.cat([torch.cat(parts, dim=1), old.unsqueeze(1)], dim=1).transpose(1, 2)  # [B, A, F]

    felt = (ledger.surprise / ledger.span[:, None, None].clamp(min=1)).flatten(1)
    top = q.amax(2) / scale[:, :, 0], best.amax(2) / (stages - stage)  # [B, K] each
    plain = torch.stack(
        [
            ledger.episode.to(pays).log1p() / 3,
            torch.full_like(ledger.best, stage / stages),
            torch.full_like(ledger.best, float(stages)).log() / 2,
            ledger.best.clamp(min=0.01).log() / 2,
            torch.full_like(ledger.best, float(actions)).log(),
            (ledger.age >= 0).to(pays).mean(1),
        ],
        dim=1,
    )
    # A memory that was surprised, and one that began again, is told from the others.
    began = [ledger.alarm.amax(3).flatten(1) / 8, ledger.since.log1p().flatten(1) / 3]
    problem = torch.cat([felt, *top, *began, plain], dim=1)
    return Read(arms.clamp(-10, 10), problem.clamp(-10, 10))


def learn(ledger: Ledger, state: Tensor, stage: int, action: Tensor, reward: Tensor) -> None:
    """Take in a step, in place: its reward, and where the step before it has led. After the last one, plan anew."""
    stages, steps = ledger.ahead.shape[2], ledger.moves.shape[2]
    if stage > 0:
        _moved(ledger, (stage - 1) if steps > 1 else 0, state)
    _paid(ledger, stage if steps > 1 else 0, state, action, reward)
    ledger.last = torch.stack([state, action], dim=1)
    if stage == stages - 1:
        _end(ledger)


def _paid(ledger: Ledger, which: int, state: Tensor, action: Tensor, reward: Tensor) -> None:
    row = torch.arange(len(state), device=state.device)
    own = ledger.paid[row, :, :, which, state, action]  # [B, K, 3]
    count, mean = own[..., 0], own[..., 1] / own[..., 0].clamp(min=1e-6)
    variance = (own[..., 2] / count.clamp(min=1e-6) - mean.square()).clamp(min=0)
    variance = variance + _WIDTH**2 * (1 + 4 / (count + 1))  # few rewards do not tell how much they vary
    paid = (reward / ledger.best.clamp(min=0.05)).unsqueeze(1)
    as_new = (paid - 0.5).square() * 2 + 0.5 * math.log(0.25)  # minus the log-likelihood under N(½, ¼)
    as_known = (reward.unsqueeze(1) - mean).square() / variance / 2 + variance.log() / 2
    _surprised(ledger, 0, (which, state, action), as_known - as_new, count)
    one = torch.stack([torch.ones_like(reward), reward, reward.square()], dim=1)  # [B, 3]
    ledger.paid[row, :, :, which, state, action] = own * own.new_tensor(FADES).unsqueeze(1) + one.unsqueeze(1)
    ledger.best = torch.maximum(ledger.best, reward)
    ledger.age[row, _pair(ledger, which, state, action)] = ledger.episode
    ledger.span = ledger.span * ledger.span.new_tensor(RATES) + 1


def _moved(ledger: Ledger, which: int, state: Tensor) -> None:
    row = torch.arange(len(state), device=state.device)
    before, action = ledger.last.unbind(1)
    own = ledger.moves[row, :, which, before, action]  # [B, K, S]
    seen, this = own.sum(2), own[row, :, state]  # [B, K]
    led = (own > 0.05).sum(2).to(own) + 1  # states it has led to, and one more
    as_known = (seen + 0.5).log() - (this + 0.5 / led).log()
    _surprised(ledger, 1, (which, before, action), as_known - led.log(), seen)
    own = own * own.new_tensor(FADES).unsqueeze(1)
    own[row, :, state] += 1
    ledger.moves[row, :, which, before, action] = own


def _pair(ledger: Ledger, which: int, state: Tensor, action: Tensor) -> Tensor:
    states, actions = ledger.moves.shape[3:5]
    return (which * states + state) * actions + action


def _surprised(ledger: Ledger, kind: int, pair: tuple[int, Tensor, Tensor], excess: Tensor, count: Tensor) -> None:
    """How much less likely a step was under each memory than anew, `[B, K]` in logarithms, if it had seen the like."""
    felt = torch.where(count >= 1.5, excess.clamp(-2.0, _WORST), 0.0)
    rates = ledger.span.new_tensor(RATES)
    ledger.surprise[:, :, kind] = ledger.surprise[:, :, kind] * rates + felt.unsqueeze(2)
    row, place, first = torch.arange(len(felt), device=felt.device), _pair(ledger, *pair), len(FORGETS)
    ledger.alarm[row, :, kind, place] = (ledger.alarm[row, :, kind, place] + felt[:, first:]).clamp(min=0)


def _end(ledger: Ledger) -> None:
    """Between two episodes: forget, begin again where an alarm rang, and plan."""
    for index, keep in enumerate(FORGETS):
        if keep < 1:
            ledger.moves[:, index] *= keep
            ledger.paid[:, index] *= keep
    ledger.since += 1
    rings = ledger.alarm.amax(3) > ledger.alarm.new_tensor(ALARMS).unsqueeze(1)  # [B, ALARMS, 2]
    for kind, held in enumerate((ledger.paid, ledger.moves)):
        row, which = rings[:, :, kind].nonzero().unbind(1)
        if len(row):
            held[row, which + len(FORGETS)] = 0.0
            ledger.since[row, which, kind] = 0.0
            ledger.alarm[row, which, kind] = 0.0
    ledger.episode = ledger.episode + 1
    make_plans(ledger)
