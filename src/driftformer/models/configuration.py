"""The form and size of a policy, as stored in the config.json of a checkpoint."""

from __future__ import annotations

from typing import Any, Literal, get_args

from driftformer.errors import InputError, brought_by, require_choice, require_count

with brought_by("policies"):
    from transformers import PreTrainedConfig

Form = Literal["paper", "pointer", "query", "tabular"]
Backbone = Literal["gpt2", "relu"]


def tokens_in(form: Form, rounds: int) -> int:
    """The number of tokens in a trajectory: 2T−1 in the paper's form, else T."""
    return 2 * rounds - 1 if form == "paper" else rounds


MOST_PARAMETERS = 2 * 10**9
"""8 GB in float32. A config may come from a stranger, so it is checked before anything is allocated."""
_MOST = {"layers": 1000, "heads": 1000}


def _parameters(form: Form, dim: int, arms: int, horizon: int, layers: int, width: int) -> int:
    """Roughly how many parameters a policy of these sizes has: blocks, positions, embeddings and head."""
    offered, outcome = (arms * dim, 2 * dim + 2 * arms) if form == "paper" else (0, 2 * dim)
    return width * (12 * layers * width + tokens_in(form, horizon) + offered + outcome + max(dim, arms))


class PolicyConfig(PreTrainedConfig):  # type: ignore[no-untyped-call]
    """Everything needed to build a policy before reading its weights."""

    model_type = "driftformer"

    def __init__(
        self,
        form: Form = "pointer",
        backbone: Backbone = "gpt2",
        dim: int = 32,
        arms: int = 10,
        horizon: int = 200,
        layers: int = 8,
        heads: int = 8,
        width: int = 256,
        **other: Any,
    ) -> None:
        require_choice("form", form, get_args(Form))
        require_choice("backbone", backbone, get_args(Backbone))
        sizes = {"dim": dim, "arms": arms, "horizon": horizon, "layers": layers, "heads": heads, "width": width}
        for name, size in sizes.items():
            require_count(name, size, most=_MOST.get(name, 100_000))
        if (count := _parameters(form, dim, arms, horizon, layers, width)) > MOST_PARAMETERS:
            raise InputError(
                f"layers is {layers}, width {width}, horizon {horizon}, dim {dim} and arms {arms}: about {count:.1e} "
                f"parameters; choose sizes with at most {MOST_PARAMETERS:.0e}"
            )
        if width % heads:
            raise InputError(f"width is {width} and heads is {heads}; the width must be a multiple of the heads")
        self.form, self.backbone = form, backbone
        self.dim, self.arms, self.horizon = dim, arms, horizon
        self.layers, self.heads, self.width = layers, heads, width
        super().__init__(**other)

    @property
    def tokens_per_round(self) -> int:
        return 2 if self.form == "paper" else 1

    def tokens_in(self, rounds: int) -> int:
        """How many tokens are read before the choice of a round."""
        return tokens_in(self.form, rounds)

    @property
    def head_size(self) -> int:
        return self.width // self.heads
