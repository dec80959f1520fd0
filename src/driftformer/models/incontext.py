"""Alg_θ, the algorithm that a transformer induces (Section 2.3), in two forms on one backbone.

`paper`: two tokens a round, h(s_t) for the offered arms and h(a_t, r_t) for what came of it; a linear map of the last
state token to A logits. It has seen a fixed number of arms in a fixed order.

`pointer`: one token a round, for what came of the last one; logits are inner products of a read-out of it with each
arm's features. It serves any number of arms and does not care about their order.

h(a, r) is linear in the chosen arm's features x, in r·x, in r and in whether the reward was seen at all; in the paper's
form also in the arm's place among the others and in r times that.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import GPT2Config, GPT2Model, PreTrainedModel

from driftformer.models import attention
from driftformer.models.cache import KeyValues
from driftformer.models.configuration import PolicyConfig
from driftformer.models.relu_transformer import ReLUTransformer


class InContextPolicy(PreTrainedModel):  # type: ignore[no-untyped-call]
    """A transformer that reads what has happened and says which arm to play."""

    config_class = PolicyConfig
    base_model_prefix = "policy"
    main_input_name = "features"
    _supports_sdpa = True
    config: PolicyConfig

    def __init__(self, config: PolicyConfig) -> None:
        super().__init__(config)
        known = 2 * config.dim + 2 + (2 * config.arms if config.form == "paper" else 0)
        self.embed_outcome = nn.Linear(known, config.width)
        if config.form == "paper":
            self.embed_state = nn.Linear(config.arms * config.dim, config.width)
        self.positions = nn.Embedding(config.tokens_in(config.horizon), config.width)
        self.backbone: Any = _gpt2(config) if config.backbone == "gpt2" else _relu(config)
        self.head = nn.Linear(config.width, config.arms if config.form == "paper" else config.dim)
        self.post_init()  # type: ignore[no-untyped-call]

    def _init_weights(self, module: nn.Module) -> None:
        """Small weights everywhere; tokens and positions start small enough for the first layers to matter."""
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        if module is self:
            for embed in self.embeddings():
                nn.init.normal_(embed.weight, std=0.2 * embed.in_features**-0.5)
            nn.init.normal_(self.positions.weight, std=0.1)

    @classmethod
    def from_pretrained(cls, *source: Any, **options: Any) -> Any:
        """As transformers has it, but from safetensors only: a pickle is never opened."""
        return super().from_pretrained(*source, **{**options, "use_safetensors": True})

    def embeddings(self) -> list[nn.Linear]:
        """What turns observations into tokens."""
        return [self.embed_outcome] + ([self.embed_state] if self.config.form == "paper" else [])

    def outcome_token(self, x: Tensor, arm: Tensor, reward: Tensor, seen: Tensor) -> Tensor:
        """h(a, r): features `[…, d]`, arm, reward and whether it was seen `[…]` as a token `[…, D]`."""
        known = (reward * seen).unsqueeze(-1)
        parts = [x, known * x, known, seen.unsqueeze(-1)]
        if self.config.form == "paper":
            which = functional.one_hot(arm, self.config.arms).to(x.dtype)
            parts += [which, known * which]
        return cast(Tensor, self.embed_outcome(torch.cat(parts, dim=-1)))

    def state_token(self, features: Tensor) -> Tensor:
        """h(s): all offered arms `[…, A, d]` as a token `[…, D]`."""
        return cast(Tensor, self.embed_state(features.flatten(-2)))

    def run(self, tokens: Tensor, places: Tensor, visible: Tensor | None, cache: KeyValues | None) -> Tensor:
        """The backbone on tokens `[B, q, D]` at places `[B or 1, q]`; without `visible`, each sees all up to itself."""
        hidden = tokens + self.positions(places).to(tokens.dtype)
        if self.config.backbone == "relu":
            if visible is None:
                visible = causal(tokens.shape[1], int(places[0, -1]) + 1 if cache else tokens.shape[1], tokens.device)
            return cast(Tensor, self.backbone(hidden, visible, cache))
        for block in self.backbone.h:
            hidden = block(hidden, past_key_values=cache, attention_mask=visible, slots=cache)
        return cast(Tensor, self.backbone.ln_f(hidden))

    def logits(self, hidden: Tensor, features: Tensor) -> Tensor:
        """Read-outs `[…, D]` to one number for each arm, `[…, A]`."""
        read: Tensor = self.head(hidden)
        return read if self.config.form == "paper" else (features @ read.unsqueeze(-1)).squeeze(-1)

    def trajectory_tokens(self, features: Tensor, arms: Tensor, rewards: Tensor, seen: Tensor) -> Tensor:
        """All that is read up to the last round's choice: T tokens, or 2T−1 in the paper's form."""
        index = arms[..., None, None].expand(-1, -1, 1, features.shape[3])
        x = features.gather(2, index).squeeze(2)  # [B, T, d]
        if self.config.form == "paper":
            outcome = self.outcome_token(x, arms, rewards, seen)
            return torch.stack([self.state_token(features), outcome], dim=2).flatten(1, 2)[:, :-1]
        before = [functional.pad(x, (0, 0, 1, 0)), *(functional.pad(value, (1, 0)) for value in (rewards, seen))]
        x, rewards, seen = (value[:, :-1] for value in before)
        return self.outcome_token(x, arms, rewards, seen)

    def forward(self, features: Tensor, arms: Tensor, rewards: Tensor, seen: Tensor | None = None) -> Tensor:
        """Logits of every round of whole trajectories, `[B, T, A]`, from `[B, T, A, d]`, `[B, T]` and `[B, T]`."""
        kind = self.embed_outcome.weight.dtype
        seen = torch.ones_like(rewards) if seen is None else seen
        features, rewards, seen = features.to(kind), rewards.to(kind), seen.to(kind)
        tokens = self.trajectory_tokens(features, arms, rewards, seen)
        tokens = tokens.to(_compute_type(tokens))
        places = torch.arange(tokens.shape[1], device=tokens.device).unsqueeze(0)
        hidden = self.run(tokens, places, None, None)
        return self.logits(hidden[:, :: self.config.tokens_per_round], features)


def placed(policy: InContextPolicy, device: torch.device, dtype: torch.dtype) -> InContextPolicy:
    """The same policy on a device and in a type of number."""
    nn.Module.to(policy, device=device, dtype=dtype)
    return policy


def causal(queries: int, keys: int, device: torch.device) -> Tensor:
    """Which of all tokens each of the last ones sees, `[1, 1, q, n]`."""
    ones = torch.ones(queries, keys, dtype=torch.bool, device=device)
    return ones.tril(keys - queries)[None, None]


def _compute_type(tokens: Tensor) -> torch.dtype:
    """Under autocast the residual stream is kept in its type too: half the memory traffic."""
    kind = tokens.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else tokens.dtype


def _gpt2(config: PolicyConfig) -> GPT2Model:
    """transformers' GPT-2 without its vocabulary; positions are ours, since rows may stand at different rounds."""
    settings = GPT2Config(
        vocab_size=1,
        n_positions=1,
        n_embd=config.width,
        n_layer=config.layers,
        n_head=config.heads,
        activation_function="gelu_pytorch_tanh",
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        use_cache=False,
        bos_token_id=None,
        eos_token_id=None,
    )
    settings._attn_implementation = attention.NAME
    backbone: GPT2Model = GPT2Model(settings)  # type: ignore[no-untyped-call]
    for unused in (backbone.wte, backbone.wpe):
        unused.weight.requires_grad_(False)
    return backbone


def _relu(config: PolicyConfig) -> ReLUTransformer:
    return ReLUTransformer(config.width, config.heads, config.layers)
