"""The query form: every arm on offer is a query that reads what a bank of regressions says about it and looks at the
other arms on offer.

The network sees statistics only (`bank.py`), so it takes any number of arms and dimensions, in any order and unit. It
says what each arm is worth and how uncertain that is, both in units of the observed spread of rewards; the policy is
optimistic by a learned number of standard deviations, with a learned amount of chance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from driftformer.models.bank import MEMBERS, PROBLEM, RECORD, Statistics
from driftformer.models.configuration import PolicyConfig

_HEADS = 8
"""Ways to weigh the waves."""
_OPTIMISM, _CHANCE = 4.0, 0.2
"""At the start: standard deviations of optimism, and the scale of chance in the choice."""


class Verdict(NamedTuple):
    """What the network says about the arms of N rounds, `[N, A]` each."""

    mean: Tensor  # worth, less that of all arms on offer
    doubt: Tensor  # logarithm of its standard deviation
    logits: Tensor  # of the choice


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

    def __init__(self, config: PolicyConfig) -> None:
        super().__init__(config)
        width, facts = config.width, 3 * MEMBERS + _HEADS
        self.expert, self.setting, self.score = nn.Linear(RECORD, 64), nn.Linear(PROBLEM, 64), nn.Linear(64, _HEADS)
        self.embed_arm = nn.Linear(facts, width)
        self.embed_problem = nn.Sequential(nn.Linear(PROBLEM + 2 * _HEADS, width), nn.GELU(), nn.Linear(width, width))
        self.blocks = nn.ModuleList(Block(width, config.heads) for _ in range(config.layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 2)
        self.weigh, self.daring = nn.Linear(width, facts), nn.Linear(width, 2)
        self.post_init()  # type: ignore[no-untyped-call]

    def _init_weights(self, module: nn.Module) -> None:
        """Torch's own, but nothing is weighed at first, and daring is the same everywhere."""
        if module is self:
            for layer in (self.weigh, self.daring):
                nn.init.zeros_(layer.weight)
                nn.init.zeros_(layer.bias)

    @classmethod
    def from_pretrained(cls, *source: Any, **options: Any) -> Any:
        """As in transformers, but from safetensors only: a pickle is never opened."""
        return super().from_pretrained(*source, **{**options, "use_safetensors": True})

    def forward(self, statistics: Statistics, offered: Tensor | None = None) -> Verdict:
        arms, waves, records, problem = statistics
        hidden = functional.gelu(self.expert(records) + self.setting(problem).unsqueeze(1))  # [N, K, 64]
        share = self.score(hidden).softmax(dim=1)  # [N, K, H] which waves to believe
        told = torch.einsum("nkh,nkf->nhf", share, records[:, :, 5:7]).flatten(1)  # [N, 2H]
        facts = torch.cat([arms, torch.bmm(waves, share)], dim=-1)  # [N, A, F]
        setting = self.embed_problem(torch.cat([problem, told], dim=-1))  # [N, D]
        hidden = self.embed_arm(facts) + setting.unsqueeze(1)
        for block in self.blocks:
            hidden = block(hidden, offered)
        mean, doubt = self.head(self.norm(hidden)).unbind(-1)
        mean, doubt = mean + (self.weigh(setting).unsqueeze(1) * facts).sum(-1), doubt.clamp(-5, 4)
        deviation = doubt.exp()
        usual = deviation.mean(1, keepdim=True)
        if offered is not None:
            usual = (deviation * offered).sum(1, keepdim=True) / offered.sum(1, keepdim=True)
        optimism, chance = self.daring(setting).exp().unsqueeze(1).unbind(-1)  # [N, 1] each
        index = mean + _OPTIMISM * optimism * deviation
        return Verdict(mean, doubt, index / (_CHANCE * chance * usual))
