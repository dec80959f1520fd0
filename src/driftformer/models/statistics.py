"""What a network reads of a bank of regressions: numbers of ordinary size, all of them ratios.

Means and widths are in units of the observed spread of rewards or of the noise, records of experts are compared with
that spread, and arms are told by how they differ from the others on offer: neither dimension nor unit is left.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from driftformer.models.bank import (
    FILTERS,
    MEMBERS,
    RATES,
    SIGNS,
    TINY,
    Bank,
    Prediction,
    Settings,
    constants_of,
    heights,
    settings_of,
)

BEST = 8
"""How many waves are shown to the network: so many with the least errors, and so many of the greatest likelihood."""


class Statistics(NamedTuple):
    """What the network reads."""

    arms: Tensor  # [B, A, 3M] of each arm: means, widths in units of rewards, widths in units of noise
    waves: Tensor  # [B, A, K] of each arm: what the best waves expect
    records: Tensor  # [B, K, F] of each of them: how well it has predicted, where it stands
    problem: Tensor  # [B, P] of the whole problem


RECORD = 2 * len(RATES) + 7
PROBLEM = MEMBERS * len(RATES) + len(RATES) + len(SIGNS) + 6


def statistics(bank: Bank, prediction: Prediction, offered: Tensor | None = None) -> Statistics:
    """Numbers of ordinary size, all of them ratios."""
    return statistics_by(settings_of(bank), bank, prediction, offered)


def statistics_by(fixed: Settings, bank: Bank, prediction: Prediction, offered: Tensor | None = None) -> Statistics:
    """The same, for a compiler."""
    seen = bank.seen.clamp(min=1)
    variances = bank.squares / seen  # [B, R]
    spread = variances[:, 2].sqrt()  # [B]
    unit = torch.where(spread > 0, 1 / spread.clamp(min=TINY), 0.0)[:, None, None]
    errors = bank.errors / seen.unsqueeze(1)  # [B, M + W, R]
    ratio = ((errors + TINY) / (variances.unsqueeze(1) + TINY)).log().clamp(-6, 6)
    ratio = ratio * (variances > 0).unsqueeze(1)

    span = bank.span.clamp(min=1).unsqueeze(1)
    fitted = ((bank.fits[..., 0] / span + TINY) / (variances[:, 2:] + TINY)).log().clamp(-12, 6)
    surprise = (fitted * span + bank.fits[..., 1]) / 2  # [B, W] minus the log-likelihood, in units of the spread
    which = torch.cat([_least(score) for score in (ratio[:, MEMBERS:, 2], surprise)], dim=1)  # [B, K]
    likely, surprise = ratio[:, MEMBERS:, 2].gather(1, which), surprise.gather(1, which)  # [B, K]
    place = which.unsqueeze(1).expand(-1, prediction.x.shape[1], -1)  # [B, A, K]
    constant = constants_of(bank).gather(1, which).unsqueeze(1)
    waves = prediction.waves.gather(2, place) + constant * prediction.constant.gather(2, place)
    height = heights(bank, fixed).gather(1, which)
    angle = fixed.angles[which]
    own = ratio[:, MEMBERS:].gather(1, which.unsqueeze(-1).expand(-1, -1, len(RATES)))  # [B, K, R]
    count = seen[:, 2:].log()
    ahead = (likely - ratio[:, :MEMBERS, 2].amin(1, keepdim=True)) * seen[:, 2:]
    at_rest = ratio[:, :MEMBERS, 2].amin(1, keepdim=True) * span / 2
    records = torch.cat(
        [
            own,
            own - ratio[:, :MEMBERS].amin(1, keepdim=True),
            torch.stack(
                [
                    height,
                    angle.log() + 3,
                    ((likely - likely.amin(1, keepdim=True)) * seen[:, 2:] / 8).clamp(max=8),
                    (ahead / 8).clamp(-8, 8),
                    ((surprise - surprise.amin(1, keepdim=True)) / 4).clamp(max=8),
                    ((surprise - at_rest) / 4).clamp(-8, 8),
                    (angle * bank.t.unsqueeze(1)).log1p(),
                ],
                dim=-1,
            ),
        ],
        dim=-1,
    )

    width = prediction.variance.sqrt()
    noise = errors[:, :MEMBERS, 1].sqrt().unsqueeze(1)  # [B, 1, M]
    sign = torch.tanh(bank.odds / 2)
    factor = functional.pad(sign, (len(FILTERS), 0), value=1.0).unsqueeze(1)  # [B, 1, M]
    arms = torch.cat([_centred(prediction.mean * factor, offered) * unit, width * noise * unit, width], dim=-1)
    change = ((variances + TINY) / (variances[:, 2:] + TINY)).log().clamp(-6, 6)
    number = torch.full_like(bank.t, width.shape[1]) if offered is None else offered.sum(1).to(bank.t)
    told = torch.stack([bank.t.log1p(), number.log(), *((bank.t > k).to(spread) for k in (0, 1, 3))], dim=1)
    problem = torch.cat([ratio[:, :MEMBERS].flatten(1), change, sign, told, count], dim=1)
    return Statistics(arms.clamp(-20, 20), (_centred(waves, offered) * unit).clamp(-20, 20), records, problem)


def _least(scores: Tensor) -> Tensor:
    """Places of the `BEST` least of scores `[B, W]`; of equal ones the last, which topk leaves to the machine.

    At first all are equal. The last are fast waves: they are soon told apart from a world at rest, slow ones are not.
    """
    order = torch.arange(scores.shape[1], device=scores.device, dtype=torch.float64) * -1e-10
    return (scores.double() + order).topk(BEST, dim=1, largest=False)[1]


def _centred(values: Tensor, offered: Tensor | None) -> Tensor:
    """Less their mean over the arms on offer."""
    if offered is None:
        return values - values.mean(1, keepdim=True)
    share = (offered / offered.sum(1, keepdim=True)).unsqueeze(-1)
    return values - (values * share).sum(1, keepdim=True)
