"""Alg_θ, the algorithm that a transformer induces (Section 2.3), in two forms on one backbone.

`paper`: two tokens per round, h(s_t) for the offered arms and h(a_t, r_t) for the outcome, and a linear map from the
last state token to A logits. The number and order of arms are fixed.

`pointer`: one token per round, for the last outcome; the logits are inner products of its read-out with the features of
each arm. Any number of arms will do, in any order.

h(a, r) is linear in the chosen arm's features x, in r·x, in r, and in whether the reward was seen at all; in the
paper's form also in the arm's place among the others, and in r times that.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from driftformer.errors import brought_by
from driftformer.models import attention
from driftformer.models.cache import KeyValues
from driftformer.models.configuration import PolicyConfig
from driftformer.models.relu_transformer import ReLUTransformer, causal

with brought_by("policies"):
    from transformers import GPT2Config, GPT2Model, PreTrainedModel

Module = TypeVar("Module", bound=nn.Module)


class InContextPolicy(PreTrainedModel):  # type: ignore[no-untyped-call]
    """A transformer that reads a history and chooses an arm."""

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
        relu = config.backbone == "relu"
        self.backbone: Any = ReLUTransformer(config.width, config.heads, config.layers) if relu else _gpt2(config)
        self.head = nn.Linear(config.width, config.arms if config.form == "paper" else config.dim)
        self.post_init()  # type: ignore[no-untyped-call]

    def _init_weights(self, module: nn.Module) -> None:
        """Small weights everywhere; tokens and positions are small enough for the first layers to matter.

        Called with every layer, but in some versions of transformers not with the whole.
        """
        if isinstance(module, nn.Linear):
            embeds = module in self.embeddings()
            nn.init.normal_(module.weight, std=0.2 * module.in_features**-0.5 if embeds else 0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.1 if module is self.positions else 0.02)

    @classmethod
    def from_pretrained(cls, *source: Any, **options: Any) -> Any:
        """As in transformers, but from safetensors only: a pickle is never opened."""
        return super().from_pretrained(*source, **{**options, "use_safetensors": True})

    def embeddings(self) -> list[nn.Linear]:
        """The layers that turn observations into tokens."""
        return [self.embed_outcome] + ([self.embed_state] if self.config.form == "paper" else [])

    def outcome_token(self, x: Tensor, arm: Tensor, reward: Tensor, seen: Tensor) -> Tensor:
        """h(a, r): features `[…, d]`, arm, reward and whether it was seen, `[…]` each, as a token `[…, D]`."""
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
        """The backbone on tokens `[B, q, D]` at places `[B or 1, q]`; by default each sees all up to itself."""
        hidden = tokens + self.positions(places).to(tokens.dtype)
        if self.config.backbone == "relu":
            if visible is None:
                visible = causal(tokens.shape[1], int(places[0, -1]) + 1 if cache else tokens.shape[1], tokens.device)
            return cast(Tensor, self.backbone(hidden, visible, cache))
        for block in self.backbone.h:
            hidden = block(hidden, past_key_values=cache, attention_mask=visible, slots=cache)
        return cast(Tensor, self.backbone.ln_f(hidden))

    def logits(self, hidden: Tensor, features: Tensor) -> Tensor:
        """From read-outs `[…, D]` to one number for each arm, `[…, A]`."""
        read: Tensor = self.head(hidden)
        return read if self.config.form == "paper" else (features @ read.unsqueeze(-1)).squeeze(-1)

    def trajectory_tokens(self, features: Tensor, arms: Tensor, rewards: Tensor, seen: Tensor) -> Tensor:
        """All tokens read before the last choice: T of them, or 2T−1 in the paper's form."""
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


def placed(policy: Module, device: torch.device, dtype: torch.dtype) -> Module:
    """The same policy on a device and in a dtype."""
    nn.Module.to(policy, device=device, dtype=dtype)
    return policy


def _compute_type(tokens: Tensor) -> torch.dtype:
    """Under autocast the residual stream has its dtype too, which halves the memory traffic."""
    kind = tokens.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else tokens.dtype


def _gpt2(config: PolicyConfig) -> GPT2Model:
    """GPT-2 from transformers without its vocabulary; positions are ours, since rows may be at different rounds."""
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
