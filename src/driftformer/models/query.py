"""The query form: every arm on offer is a query that reads what a bank of regressions says about it and looks at the
other arms on offer.

The network sees statistics only (`bank.py`), so it takes any number of arms and dimensions, in any order and unit. It
says what each arm is worth and how uncertain that is, both in units of the observed spread of rewards: what the filters
say, weighed by how far it trusts each of them by now, with a correction that looks at all arms. A second, small network
says how daring to be: how much an arm gains by that uncertainty, and by its widths in filters that forget nothing,
slowly or fast (so that arms are looked at again), and how much is left to chance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from driftformer.errors import brought_by
from driftformer.models.bank import MEMBERS
from driftformer.models.configuration import PolicyConfig
from driftformer.models.statistics import PROBLEM, RECORD, Statistics

with brought_by("policies"):
    from transformers import PreTrainedModel

_HEADS = 8
"""Ways to weigh the waves."""
WIDTHS = (1, 5, 7, 8)
"""Filters whose widths are explored by."""
_START = (1.5, 0.1, 0.03, 0.03, 0.03, 0.04)
"""Daring at first: what one's own uncertainty counts, what these widths count, and the scale of chance."""
DARING = len(_START)
_AT_REST = 1
"""The filter that is trusted at first."""
_LEAST = 0.01
"""Standard deviation that is doubted of every arm, in units of the spread of rewards."""


class Verdict(NamedTuple):
    """What the network says about the arms of N rounds, `[N, A]` each."""

    mean: Tensor  # worth, less that of all arms on offer
    doubt: Tensor  # logarithm of its standard deviation
    logits: Tensor  # of the choice
    daring: Tensor  # [N, 6] logarithms of what counts in it


class Block(nn.Module):
    """Attention among the arms of a round, then a perceptron."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, hidden: Tensor, offered: Tensor | None) -> Tensor:
        parts = self.mix(self.norm_1(hidden)).unflatten(-1, (3, self.heads, -1))  # [N, A, 3, H, D/H]
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = query @ key.mT * query.shape[-1] ** -0.5  # [N, H, A, A]: so small that no attention kernel pays
        if offered is not None:
            scores = scores.masked_fill(~offered[:, None, None, :], -torch.inf)
        mixed = scores.softmax(dim=-1) @ value
        hidden = hidden + self.out(mixed.transpose(1, 2).flatten(2))
        result: Tensor = hidden + self.down(functional.gelu(self.up(self.norm_2(hidden)), approximate="tanh"))
        return result


class QueryPolicy(PreTrainedModel):  # type: ignore[no-untyped-call]
    """From statistics to a choice."""

    config_class = PolicyConfig
    base_model_prefix = "policy"
    main_input_name = "statistics"
    config: PolicyConfig
    daring = DARING

    def __init__(self, config: PolicyConfig) -> None:
        super().__init__(config)
        width, facts = config.width, 3 * MEMBERS + _HEADS
        self.expert, self.setting, self.score = nn.Linear(RECORD, 64), nn.Linear(PROBLEM, 64), nn.Linear(64, _HEADS)
        self.embed_arm = nn.Linear(facts, width)
        self.embed_problem = nn.Sequential(nn.Linear(PROBLEM + 2 * _HEADS, width), nn.GELU(), nn.Linear(width, width))
        self.blocks = nn.ModuleList(Block(width, config.heads) for _ in range(config.layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 2)
        self.trust, self.weigh = nn.Linear(width, 2 * MEMBERS), nn.Linear(width, facts)
        told = PROBLEM + 2 * _HEADS + 3 * len(WIDTHS)
        self.dare = nn.Sequential(nn.Linear(told, 64), nn.GELU(), nn.Linear(64, DARING))
        self.post_init()  # type: ignore[no-untyped-call]

    def _init_weights(self, module: nn.Module) -> None:
        """Torch's own, but at first a filter of a world at rest is trusted, and daring is the same everywhere.

        Called with every layer, but in some versions of transformers not with the whole.
        """
        last = self.dare[2]
        assert isinstance(last, nn.Linear)
        for layer in (self.trust, self.weigh, self.head, last):
            if module is layer:
                nn.init.zeros_(layer.weight)
                nn.init.zeros_(layer.bias)
        with torch.no_grad():
            if module is self.trust:
                self.trust.bias.view(2, MEMBERS)[:, _AT_REST] = 4
            if module is last:
                last.bias.copy_(torch.tensor(_START).log())

    @classmethod
    def from_pretrained(cls, *source: Any, **options: Any) -> Any:
        """As in transformers, but from safetensors only: a pickle is never opened."""
        return super().from_pretrained(*source, **{**options, "use_safetensors": True})

    def forward(self, statistics: Statistics, offered: Tensor | None = None, stray: Tensor | float = 0.0) -> Verdict:
        """`stray` is added to what it dares: a training tries more and less."""
        arms, waves, records, problem = statistics
        hidden = functional.gelu(self.expert(records) + self.setting(problem).unsqueeze(1))  # [N, K, 64]
        share = self.score(hidden).softmax(dim=1)  # [N, K, H] which waves to believe
        told = torch.einsum("nkh,nkf->nhf", share, records[:, :, 5:7]).flatten(1)  # [N, 2H]
        facts = torch.cat([arms, torch.bmm(waves, share)], dim=-1)  # [N, A, F]
        setting = self.embed_problem(torch.cat([problem, told], dim=-1))  # [N, D]
        hidden = self.embed_arm(facts) + setting.unsqueeze(1)
        for block in self.blocks:
            hidden = block(hidden, offered)
        correction, doubt = self.head(self.norm(hidden)).unbind(-1)  # [N, A] each
        means, by_member, in_noise = arms.reshape(*arms.shape[:2], 3, MEMBERS).unbind(2)  # [N, A, M] each
        believed, doubted = self.trust(setting).view(-1, 2, 1, MEMBERS).softmax(dim=-1).unbind(1)
        mean = (believed * means).sum(-1) + correction + (self.weigh(setting).unsqueeze(1) * facts).sum(-1)
        doubt = ((doubted * by_member).sum(-1).clamp(min=0) + _LEAST).log() + doubt.clamp(-4, 4)
        deviation = doubt.exp()
        widths, noisy = (torch.stack([held[..., m] for m in WIDTHS], dim=-1) for held in (by_member, in_noise))
        low = high = noisy
        share = torch.full_like(deviation, 1 / deviation.shape[1])
        if offered is not None:
            share = offered / offered.sum(1, keepdim=True)
            low, high = (noisy.masked_fill(~offered.unsqueeze(2), bound) for bound in (torch.inf, -torch.inf))
        range_of = (low.amin(1), high.amax(1), (noisy * share.unsqueeze(2)).sum(1))
        daring = self.dare(torch.cat([problem, told.detach(), *range_of], dim=-1))  # [N, 6]
        own, by_width, chance = (daring + stray).exp().unsqueeze(1).split([1, len(WIDTHS), 1], dim=-1)  # [N, 1, …] each
        index = mean + own.squeeze(2) * deviation + (by_width * widths).sum(-1)
        usual = (deviation * share).sum(1, keepdim=True)
        return Verdict(mean, doubt, index / (chance.squeeze(2) * usual), daring)
