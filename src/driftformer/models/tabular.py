"""The form `tabular`, for MDPs: every action of the present state is a query that reads what a ledger says of it.

Like the query form it says what each action is worth, here Q*_h(s, a) less the mean over actions, and how uncertain
that is, in units of what may still be earned; and a second, small network says how daring to be. It begins as an
optimist that plans with the memory that forgets when an alarm rings: what it believes, and whose optimism it shares, is
learned.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from driftformer.models.configuration import PolicyConfig
from driftformer.models.ledger import ARM, MEMORIES, PROBLEM, Read
from driftformer.models.query import Block, Verdict

DARING = MEMORIES + 3
"""What is dared: whose optimism to share, how much of it, what one's own doubt counts, and the scale of chance."""
_LEAST = 0.002
"""Standard deviation that is doubted of every action, in units of what may still be earned."""
_OPTIMIST = MEMORIES - 1
"""The memory whose optimism is shared at first."""


class TabularPolicy(PreTrainedModel):  # type: ignore[no-untyped-call]
    """From a ledger's statistics to a choice."""

    config_class = PolicyConfig
    base_model_prefix = "policy"
    main_input_name = "statistics"
    config: PolicyConfig
    daring = DARING

    def __init__(self, config: PolicyConfig) -> None:
        super().__init__(config)
        width = config.width
        self.embed_arm = nn.Linear(ARM, width)
        self.embed_problem = nn.Sequential(nn.Linear(PROBLEM, width), nn.GELU(), nn.Linear(width, width))
        self.blocks = nn.ModuleList(Block(width, config.heads) for _ in range(config.layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 2)
        self.trust = nn.Linear(width, 3 * MEMORIES)
        self.dare = nn.Sequential(nn.Linear(PROBLEM, 64), nn.GELU(), nn.Linear(64, DARING))
        self.post_init()  # type: ignore[no-untyped-call]

    def _init_weights(self, module: nn.Module) -> None:
        """Torch's own, but at first one memory is trusted, and daring is the same everywhere."""
        last = self.dare[2]
        assert isinstance(last, nn.Linear)
        for layer in (self.trust, self.head, last):
            if module is layer:
                nn.init.zeros_(layer.weight)
                nn.init.zeros_(layer.bias)
        with torch.no_grad():
            if module is self.trust:
                self.trust.bias.view(3, MEMORIES)[:, _OPTIMIST] = 3
            if module is last:
                last.bias[_OPTIMIST] = 4
                last.bias[MEMORIES:] = torch.tensor([1.0, math.log(0.3), math.log(0.003)])

    @classmethod
    def from_pretrained(cls, *source: Any, **options: Any) -> Any:
        """As in transformers, but from safetensors only: a pickle is never opened."""
        return super().from_pretrained(*source, **{**options, "use_safetensors": True})

    def forward(self, statistics: Read, offered: Tensor | None = None, stray: Tensor | float = 0.0) -> Verdict:
        """`stray` is added to what it dares: a training tries more and less."""
        arms, problem = statistics
        setting = self.embed_problem(problem)  # [N, D]
        hidden = self.embed_arm(arms) + setting.unsqueeze(1)
        for block in self.blocks:
            hidden = block(hidden, offered)
        correction, doubt = self.head(self.norm(hidden)).unbind(-1)  # [N, A] each
        expected, hoped, unsure = torch.split(arms[..., : 3 * MEMORIES], MEMORIES, dim=-1)  # [N, A, K] each
        share = self.trust(setting).view(-1, 3, 1, MEMORIES).softmax(dim=-1)  # [N, 3, 1, K]
        mean = (share[:, 0] * expected).sum(-1) + correction
        mean = mean - mean.mean(1, keepdim=True)
        doubt = ((share[:, 1] * unsure).sum(-1) * 0.3 + _LEAST).log() + doubt.clamp(-5, 5)
        daring = self.dare(problem)  # [N, K + 3]
        dared = daring + stray
        whose = dared[:, :MEMORIES].softmax(dim=-1).unsqueeze(1)  # [N, 1, K]
        much, own, chance = dared[:, MEMORIES:].unsqueeze(1).unbind(-1)  # [N, 1] each
        much = torch.sigmoid(much)
        index = (1 - much) * (mean + own.exp() * doubt.exp()) + much * (whose * hoped).sum(-1)
        return Verdict(mean, doubt, index / chance.exp().clamp(min=1e-5), daring)
