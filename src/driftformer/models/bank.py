"""What a bank of regressions says about every arm: statistics without dimension, rotation or unit.

A `Bank` learns from one reward a round, for each problem of a batch, with several experts side by side:

- *filters*: Kalman filters of a linear reward with memories of different length, for different levels of noise;
- *signs*: filters of rewards ±⟨x, w⟩ that also follow which of the two signs holds by now;
- *waves*: regressions of rewards cos(ωt + φ)·⟨x, w⟩ + o, one for each of many (ω, φ).

Features are read as x / (root mean square norm of the arms on offer), then Σx and a constant, each with a prior
and a memory of its own: so weights with a common mean are learned as one number, and so is a shift of all rewards.
Everything here is linear in the rewards less the first one, and what a network reads of it (`statistics.py`) is divided
by their observed spread: units cancel out. A round costs a few rank-one updates, whatever has been seen before.

Waves cost a vector each, not a matrix: where noise has the wave's size too, r/cos(ωt + φ) is an ordinary linear reward,
and its regression needs the same matrix for all waves, that of the first filter. Which wave it is shows best in rounds
where it nearly stands still, if the noise stands still with it; so each is judged twice, by its errors as they are and
by their likelihood under noise of its own size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor


class Filter(NamedTuple):
    """A Kalman filter: what is kept of each group of weights in a round, and what is expected of it at first.

    Variances are those of the rewards that a group explains, in units of the noise.
    """

    weights: float  # what is kept of the weights w in a round: 1 is a world at rest
    mean: float  # of their common mean
    shift: float  # of the constant
    signal: float  # variance of ⟨x, w⟩
    common: float  # variance of the common mean's part
    offset: float  # variance of the constant


FILTERS = (
    Filter(1, 1, 1, 0.6, 3, 10),
    Filter(1, 1, 1, 2, 3, 10),
    Filter(1, 1, 1, 30, 30, 100),
    Filter(1, 1, 1, 0.1, 0.1, 3),
    Filter(1, 1, 0.9, 2, 3, 300),
    Filter(0.99, 0.99, 0.99, 2, 3, 10),
    Filter(0.97, 0.97, 0.97, 2, 3, 10),
    Filter(0.93, 0.93, 0.93, 2, 3, 10),
    Filter(0.85, 0.85, 0.85, 2, 3, 10),
    Filter(0.98, 1, 1, 1, 3, 10),
    Filter(0.93, 1, 1, 1, 3, 10),
    Filter(0.85, 1, 1, 1, 3, 10),
    Filter(0.97, 0.97, 0.9, 5, 5, 300),
)

SIGNS = (0.02, 0.06)
"""Chance that the sign changes in a round, for two more filters with the second one's prior."""

MEMBERS = len(FILTERS) + len(SIGNS)

FREQUENCIES = (
    0.0005,
    0.001,
    *(0.0015 + 0.0005 * k for k in range(70)),
    *(0.042, 0.048, 0.056, 0.07, 0.09, 0.12, 0.143, 0.19),
)
"""Of the waves, in periods per round."""

PHASES = 4
"""Of each frequency; a phase further by half a turn only changes the sign of w."""

WAVES = PHASES * len(FREQUENCIES)

RATES = (0.8, 0.95, 0.99)
"""How fast the experts' records forget."""

MOST_DIM = 256
"""Features of an arm that a bank is asked to read: its cost grows with their square."""

_WAVE_MEMORY = 1 - 1 / 800
_MEAN_MEMORY = 0.98
_OUTLIER = 10.0
"""Rewards further than so many standard deviations from their mean are moved to there."""
_STILL = 0.05
"""Squared height below which a wave counts as still: dividing by it would only blow up the noise."""
_FAR = 1e12
TINY = 1e-30


@dataclass
class Bank:
    """One row for each problem; n = d + 2 features, M members, W waves."""

    t: Tensor  # [B] rounds played
    unit: Tensor  # [B] of the features; 0 until it is known
    first: Tensor  # [B] the first reward
    size: Tensor  # [B] of the first reward that differs from it: the unit of all that follows; 0 until then
    mean: Tensor  # [B] running mean of rewards
    weight: Tensor  # [B] of the rounds in that mean
    covariance: Tensor  # [B, n, M, n]
    theta: Tensor  # [B, n, M]
    odds: Tensor  # [B, S] log-odds of the signs
    waves: Tensor  # [B, n, 2W] Σ x·r/height and Σ x/height
    span: Tensor  # [B] weight of the rounds in those sums
    offsets: Tensor  # [B, W, 2] what the waves' constants are estimated from
    fits: Tensor  # [B, W, 2] squared errors over the wave's height, and the logarithm of that
    errors: Tensor  # [B, M + W, R] squared errors of the experts
    seen: Tensor  # [B, R] weight of the rounds in the records
    squares: Tensor  # [B, R] squared rewards about their mean


class Settings(NamedTuple):
    """The bank's constants as tensors."""

    kept: Tensor  # [n, M]
    prior: Tensor  # [n, M]
    together: Tensor  # [n, M, n] products of what is kept
    renewed: Tensor  # [n, M, n] what forgetting adds to the covariance
    angles: Tensor  # [W] radians per round
    phases: Tensor  # [W]
    rates: Tensor  # [R]
    hazard: Tensor  # [S]


@contextmanager
def _exact() -> Iterator[None]:
    """Products of float32 matrices on a GPU are not rounded to 10 bits inside: a covariance would lose its sign."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


@lru_cache(maxsize=16)
def settings(dim: int, device: torch.device, dtype: torch.dtype) -> Settings:
    def tensor(values: object) -> Tensor:
        return torch.tensor(values, device=device, dtype=dtype)

    def rows(groups: list[tuple[float, float, float]]) -> Tensor:
        table = tensor(groups).T  # [3, M]
        return torch.cat([table[:1].expand(dim, -1), table[1:]])

    members = [*FILTERS, *(FILTERS[1] for _ in SIGNS)]
    kept = rows([(m.weights**0.5, m.mean**0.5, m.shift**0.5) for m in members])
    prior = rows([(m.signal, m.common, m.offset) for m in members])
    renewed = torch.diag_embed(((1 - kept.square()) * prior).T).transpose(0, 1).contiguous()
    angles = 2 * math.pi * tensor(FREQUENCIES).repeat(PHASES)
    phases = tensor([math.pi / PHASES * k for k in range(PHASES)]).repeat_interleave(len(FREQUENCIES))
    together = kept.unsqueeze(-1) * kept.T.unsqueeze(0)
    return Settings(kept, prior, together, renewed, angles, phases, tensor(RATES), tensor(SIGNS))


def settings_of(bank: Bank) -> Settings:
    return settings(bank.theta.shape[1] - 2, bank.theta.device, bank.theta.dtype)


def empty(batch: int, dim: int, device: torch.device, dtype: torch.dtype) -> Bank:
    """Banks that have seen nothing."""

    def zeros(*shape: int) -> Tensor:
        return torch.zeros(batch, *shape, device=device, dtype=dtype)

    prior = settings(dim, device, dtype).prior  # [n, M]
    covariance = torch.diag_embed(prior.T).transpose(0, 1)  # [n, M, n]
    return Bank(
        **{name: zeros() for name in ("t", "unit", "first", "size", "mean", "weight", "span")},
        covariance=covariance.expand(batch, -1, -1, -1).clone(),
        theta=zeros(dim + 2, MEMBERS),
        odds=zeros(len(SIGNS)) + 3,
        waves=zeros(dim + 2, 2 * WAVES),
        offsets=zeros(WAVES, 2),
        fits=zeros(WAVES, 2),
        errors=zeros(MEMBERS + WAVES, len(RATES)),
        seen=zeros(len(RATES)),
        squares=zeros(len(RATES)),
    )


class Prediction(NamedTuple):
    """What the bank says about the arms on offer, in units of the rewards."""

    x: Tensor  # [B, A, n]
    direction: Tensor  # [B, A, M, n] covariance times x
    mean: Tensor  # [B, A, M]; of the signs' filters before their sign
    variance: Tensor  # [B, A, M] in units of the noise
    waves: Tensor  # [B, A, W] without the constant
    constant: Tensor  # [B, A, W] what a constant adds


def predict(bank: Bank, action_set: Tensor, offered: Tensor | None = None) -> Prediction:
    """Predict the rewards of all arms."""
    batch, arms, dim = action_set.shape
    fixed = settings_of(bank)
    _measure(bank, action_set, offered)
    scaled = action_set / torch.where(bank.unit > 0, bank.unit, 1.0)[:, None, None]
    x = torch.cat([scaled, scaled.sum(-1, keepdim=True), torch.ones_like(scaled[..., :1])], dim=-1)  # [B, A, n]
    with _exact():
        direction = torch.bmm(x, bank.covariance.flatten(2)).view(batch, arms, MEMBERS, dim + 2)
        sums = torch.bmm(direction[:, :, 0], bank.waves).view(batch, arms, 2, WAVES)
        mean = torch.bmm(x, bank.theta)
    variance = (direction * x.unsqueeze(2)).sum(-1).clamp(min=0)
    height = heights(bank, fixed) * (bank.t / bank.span.clamp(min=1)).unsqueeze(1)  # older rounds count less in sums
    sums = sums * height[:, None, None]
    return Prediction(x, direction, mean, variance, sums[:, :, 0], 1 - sums[:, :, 1])


def _measure(bank: Bank, action_set: Tensor, offered: Tensor | None) -> None:
    """Set the unit of features when they are first seen; raise it when they turn out to be much larger.

    What has been learned then keeps its meaning, but its uncertainty is that of the new unit: with the old one the
    first large arms would have counted as a thousand rounds.
    """
    squares = action_set.square().sum(-1)  # [B, A]
    if offered is not None:
        squares = squares * offered
    now = (squares.sum(1) / (squares > 0).sum(1).clamp(min=1)).sqrt()
    larger = now > 2 * bank.unit
    growth = torch.where(larger & (bank.unit > 0), now / bank.unit.clamp(min=TINY), 1.0)[:, None, None]
    bank.theta[:, :-1].mul_(growth)
    bank.waves[:, :-1].div_(growth)
    bank.unit.copy_(torch.where(larger, now, bank.unit))


def heights(bank: Bank, fixed: Settings) -> Tensor:
    """Where the waves stand in the round to come, `[B, W]`."""
    return torch.cos((bank.t.unsqueeze(1) + 1) * fixed.angles + fixed.phases)


def constants_of(bank: Bank) -> Tensor:
    """o of each wave, `[B, W]`, by least squares on what it did not explain."""
    return bank.offsets[..., 0] / (bank.offsets[..., 1] + 0.3)


def learn(bank: Bank, prediction: Prediction, arm: Tensor, reward: Tensor) -> None:
    """Take in the reward of one of the arms that were predicted; changes the bank in place."""
    fixed = settings_of(bank)
    absorb(fixed, bank, lesson(fixed, bank, prediction, arm, reward))


class Lesson(NamedTuple):
    """What a reward changes in the two large tensors."""

    x: Tensor  # [B, n] of the arm
    direction: Tensor  # [B, M, n]
    step: Tensor  # [B, M, n]
    share: Tensor  # [B, 2W] of x that the waves' sums take in


def absorb(fixed: Settings, bank: Bank, given: Lesson) -> None:
    """Change the two large tensors."""
    bank.covariance.addcmul_(given.direction.mT.unsqueeze(-1), given.step.unsqueeze(1), value=-1)
    bank.covariance.mul_(fixed.together).add_(fixed.renewed)
    bank.waves.mul_(_WAVE_MEMORY).addcmul_(given.x.unsqueeze(-1), given.share.unsqueeze(1))


def lesson(fixed: Settings, bank: Bank, prediction: Prediction, arm: Tensor, reward: Tensor) -> Lesson:
    """Change all that is small, and say what is to change in the rest; many small steps, for a compiler to fuse."""

    def chosen(values: Tensor) -> Tensor:
        place = arm.view(-1, *(1,) * (values.ndim - 1)).expand(-1, 1, *values.shape[2:])
        return values.gather(1, place).squeeze(1)

    x, direction, mean, variance, wave, constant = (chosen(values) for values in prediction)
    plain = len(FILTERS)
    bank.first.copy_(torch.where(bank.t == 0, reward, bank.first))
    raw = (reward - bank.first).clamp(-_FAR, _FAR)  # [B]
    bank.size.copy_(torch.where(bank.size > 0, bank.size, raw.abs()))
    raw = raw / torch.where(bank.size > 0, bank.size, 1.0)
    usual = (bank.squares[:, 2] / bank.seen[:, 2].clamp(min=1)).sqrt()
    bound = torch.where(bank.t < 8, _FAR, _OUTLIER * usual)
    centred = (raw - bank.mean).clamp(min=-bound, max=bound)
    raw = bank.mean + centred

    # What each expert expected, and how far off it was.
    odds = bank.odds
    constants = bank.theta[:, -1, plain:]  # [B, S] which no sign applies to
    signed, floating = mean[:, plain:] - constants, raw.unsqueeze(1) - constants
    expected = wave + constants_of(bank) * constant
    misses = [raw.unsqueeze(1) - mean[:, :plain], floating - torch.tanh(odds / 2) * signed]
    misses.append(raw.unsqueeze(1) - expected)
    rates = fixed.rates
    bank.errors.mul_(rates).add_(torch.cat(misses, dim=1).square().unsqueeze(-1))
    bank.squares.mul_(rates).add_(centred.square().unsqueeze(-1))
    bank.seen.mul_(rates).add_(1)

    # Which sign holds: Bayes' rule for this round, then a chance that it changes before the next.
    noise = (bank.errors[:, :MEMBERS, 2].amin(1, keepdim=True) / bank.seen[:, 2:]).clamp(min=TINY)
    odds = (odds + 2 * signed * floating / noise).clamp(-10, 10)
    sign = torch.tanh(odds / 2)
    chance = torch.sigmoid(odds) * (1 - 2 * fixed.hazard) + fixed.hazard
    bank.odds.copy_(torch.logit(chance))

    # Kalman's rule for all filters, then forgetting.
    of_constant = bank.covariance[:, :, plain:, -1].mT  # [B, S, n] what the constant's feature is turned into
    turned = torch.lerp(
        of_constant, direction[:, plain:], sign.unsqueeze(-1)
    )  # as if x had that sign, but not the constant
    direction = torch.cat([direction[:, :plain], turned], dim=1)  # [B, M, n]
    own = torch.cat([x[:, :-1].unsqueeze(1) * sign.unsqueeze(-1), torch.ones_like(turned[..., :1])], dim=-1)
    variance = torch.cat([variance[:, :plain], (own * turned).sum(-1).clamp(min=0)], dim=1)
    surprise = torch.cat([misses[0], floating - sign * signed], dim=1)
    step = direction / (1 + variance).unsqueeze(-1)  # [B, M, n]
    bank.theta.add_((step * surprise.unsqueeze(-1)).transpose(1, 2)).mul_(fixed.kept)

    height = heights(bank, fixed)
    size = height.square() + _STILL  # [B, W]
    pair = torch.stack([(raw.unsqueeze(1) - wave) * constant, constant.square()], dim=-1)
    bank.offsets.mul_(rates[2]).add_(pair / size.unsqueeze(-1))
    bank.fits.mul_(_WAVE_MEMORY).add_(torch.stack([misses[2].square() / size, size.log()], dim=-1))
    share = height / size
    both = torch.cat([share * raw.unsqueeze(1), share], dim=1)
    bank.span.mul_(_WAVE_MEMORY).add_(1)

    weight = bank.weight * _MEAN_MEMORY + 1
    bank.mean.add_(centred / weight)
    bank.weight.copy_(weight)
    bank.t.add_(1)
    return Lesson(x, direction, step, both)


def spread(bank: Bank) -> Tensor:
    """The observed standard deviation of rewards, in their own unit, `[B]`; 0 until two of them differ."""
    return (bank.squares[:, 2] / bank.seen[:, 2].clamp(min=1)).sqrt() * bank.size
