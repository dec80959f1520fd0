"""A policy as one ONNX graph, for services without torch: a call reads the last outcome and says what to do next.

    probabilities, next state  =  graph(features, played, reward, state)

Nothing is hidden. The state is one tensor with a row for each problem, and begins as zeros: a bank of regressions in
the query form, the keys and values of all tokens so far in the others. `played` are the features of the arm whose
reward is told; a reward of NaN tells nothing, as before the first round.

The laws are those of every other use (`bank.py`, `query.py`, `incontext.py`); here they are put in a row and traced. A
bank and its network are traced in double precision: logits are steep, and single precision shows in their fifth digit.
"""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from driftformer.errors import InputError, require_count
from driftformer.models.bank import MOST_DIM, Bank, empty, learn, predict
from driftformer.models.checkpoints import read_policy
from driftformer.models.incontext import InContextPolicy
from driftformer.models.query import QueryPolicy
from driftformer.models.relu_transformer import causal
from driftformer.models.statistics import statistics
from driftformer.models.tabular import TabularPolicy
from driftformer.policies import PREFIX, digest_of, folder_of
from driftformer.storage.files import require_no_file_above, write_atomically

_EXTRA = ("onnx", "onnxscript")


class BankStep(nn.Module):
    """A round of the query form."""

    inputs = ("features", "played", "reward", "state")

    def __init__(self, policy: QueryPolicy, dim: int) -> None:
        super().__init__()
        self.policy = policy.double()
        self._fresh = vars(empty(1, dim, torch.device("cpu"), torch.float64))  # each [1, …]
        self._sizes = [value.numel() for value in self._fresh.values()]

    def example(self, dim: int) -> tuple[Tensor, ...]:
        return (*_round(dim), torch.zeros(3, sum(self._sizes), dtype=torch.float64))

    def forward(self, features: Tensor, played: Tensor, reward: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Probabilities `[B, A]` and the next state, from `[B, A, d]`, `[B, d]`, `[B]` and `[B, S]`."""
        before, after = self._unpacked(state), self._unpacked(state)
        none = torch.zeros_like(reward, dtype=torch.long)  # [B]
        unseen = torch.zeros_like(played[:, :1], dtype=torch.bool)  # [B, 1]: only arms on offer set the unit
        learn(after, predict(after, played.unsqueeze(1), unseen), none, reward.nan_to_num())
        told = ~reward.isnan()
        bank = Bank(**{name: _where(told, value, vars(before)[name]) for name, value in vars(after).items()})
        known = statistics(bank, predict(bank, features))
        columns = [value.reshape(value.shape[0], -1) for value in vars(bank).values()]
        return self.policy(known).logits.softmax(dim=1), torch.cat(columns, dim=1)

    def _unpacked(self, state: Tensor) -> Bank:
        """A copy of the state as a bank. Before the first reward nothing of it counts but the unit of features."""
        parts = zip(self._fresh.items(), state.split_with_sizes(self._sizes, dim=1), strict=True)
        held = {name: part.reshape(-1, *value.shape[1:]) for (name, value), part in parts}
        begun = held["t"] > 0
        fields = {name: _where(begun, held[name], value) for name, value in self._fresh.items()}
        return Bank(**fields | {"unit": held["unit"].clone()})


class HistoryStep(nn.Module):
    """A round of the pointer and the paper's form, in single precision: the state grows by a round's tokens."""

    def __init__(self, policy: InContextPolicy, dim: int) -> None:
        super().__init__()
        self.policy = policy
        self.paper = policy.config.form == "paper"
        self.inputs = (*BankStep.inputs, "arm") if self.paper else BankStep.inputs

    def example(self, dim: int) -> tuple[Tensor, ...]:
        config = self.policy.config
        state = torch.zeros(3, 2 * config.layers, config.heads, 4, config.head_size)
        arms = config.arms if self.paper else 5
        return (*_round(dim, arms), state, *([torch.zeros(3, dtype=torch.long)] if self.paper else []))

    def forward(
        self, features: Tensor, played: Tensor, reward: Tensor, state: Tensor, arm: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Probabilities `[B, A]` and the next state; the state is `[B, 2L, heads, tokens, D/M]`, `arm` `[B]`."""
        config = self.policy.config
        missing = config.dim - features.shape[2]
        offered = functional.pad(features.float(), (0, missing))
        seen = (~reward.isnan()).float()  # [B]
        x = functional.pad(played.float(), (0, missing)) * seen.unsqueeze(1)
        none = torch.zeros_like(reward, dtype=torch.long)
        outcome = self.policy.outcome_token(x, none if arm is None else arm, reward.nan_to_num().float(), seen)
        cache, held = _Growing(state), state.shape[3]
        if self.paper:  # before the first round there is no outcome: its place is kept, but nothing looks at it
            tokens = torch.stack([outcome, self.policy.state_token(offered)], dim=1)  # [B, 2, D]
            places = torch.arange(2) + held - 1
            keys = torch.arange(held + 2)
            visible = causal(2, held + 2, keys.device) & ((keys > 0) | (keys == torch.arange(2).unsqueeze(1) + held))
            hidden = self.policy.run(tokens, places.clamp(min=0).unsqueeze(0), visible, cache)
        else:
            hidden = self.policy.run(outcome.unsqueeze(1), torch.arange(1).unsqueeze(0) + held, None, cache)
        logits = self.policy.logits(hidden[:, -1], offered)
        return logits.double().softmax(dim=1), torch.stack(cache.grown, dim=1)


class _Growing:
    """Keys and values of all tokens so far, with those of new ones behind them."""

    def __init__(self, state: Tensor) -> None:
        self._held = state.unbind(1)  # of each layer, keys and values [B, heads, tokens, D/M]
        self.grown: list[Tensor] = []

    def update(self, keys: Tensor, values: Tensor, layer_idx: int) -> tuple[Tensor, Tensor]:
        held = self._held[2 * layer_idx : 2 * layer_idx + 2]
        both = torch.cat([held[0], keys], dim=2), torch.cat([held[1], values], dim=2)
        self.grown += both
        return both


def _where(rows: Tensor, value: Tensor, other: Tensor) -> Tensor:
    """One of two values for each row, `[B, …]`."""
    return torch.where(rows.view(-1, *(1,) * (value.ndim - 1)), value, other)


def _round(dim: int, arms: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    """Something on offer, the features of an arm, and its reward, for three problems."""
    ramp = torch.arange(3 * arms * dim, dtype=torch.float64).view(3, arms, dim)
    return ramp.sin(), ramp[:, 0].cos(), ramp[:, 0, 0].cos()


def export_policy(source: str, out: Path, dim: int | None = None) -> dict[str, str]:
    """Write a policy, by its name or folder, for so many features; returns what the file says of itself."""
    absent = [name for name in _EXTRA if importlib.util.find_spec(name) is None]
    if absent:
        raise InputError(f"export needs {' and '.join(absent)}; pip install 'driftformer[export]'")
    require_no_file_above(out)
    if out.suffix != ".onnx" or out.is_dir():
        raise InputError(f"out is '{out}'; name a file that ends in .onnx")
    source = source.removeprefix(PREFIX)
    policy = read_policy(folder_of(source))
    config = policy.config
    if isinstance(policy, TabularPolicy):
        raise InputError(f"policy '{source}' is for MDPs, whose ledger and plans are no graph; export one for bandits")
    most = MOST_DIM if isinstance(policy, QueryPolicy) else config.dim
    dim = min(config.dim, most) if dim is None else dim
    require_count("dim", dim, most=most)
    about = {"policy": source, "form": config.form, "weights": digest_of(source), "dim": str(dim)}
    about |= {} if isinstance(policy, QueryPolicy) else {"rounds": str(config.horizon)}
    about["driftformer"] = version("driftformer")
    step = BankStep(policy, dim) if isinstance(policy, QueryPolicy) else HistoryStep(policy, dim)
    write_atomically(out, _traced(step, dim, about))
    return about


def _traced(step: BankStep | HistoryStep, dim: int, about: dict[str, str]) -> bytes:
    batch, arms, tokens = (torch.export.Dim(name) for name in ("batch", "arms", "tokens"))
    fixed_arms = isinstance(step, HistoryStep) and step.paper
    axes: dict[str, dict[int, Any]] = {name: {0: batch} for name in step.inputs}
    axes["features"] |= {} if fixed_arms else {1: arms}
    axes["state"] |= {3: tokens} if isinstance(step, HistoryStep) else {}
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                step,
                step.example(dim),
                dynamo=True,
                optimize=False,  # the optimizer takes 1e-30 for zero
                input_names=step.inputs,
                output_names=("probabilities", "next"),
                dynamic_shapes=tuple(axes.values()),
                custom_translation_table=_in_doubles() if isinstance(step, BankStep) else None,
                verbose=False,
            )
    finally:
        log.setLevel(level)
    assert program is not None
    program.model.metadata_props.update(about)
    content: bytes = program.model_proto.SerializeToString()
    return content


def _in_doubles() -> dict[Any, Callable[..., Any]]:
    """How operations are written that the exporter or onnxruntime would compute in single precision."""
    import onnxscript

    ir: Any = onnxscript.ir
    op: Any = onnxscript.opset20
    nodes, weights = np.polynomial.legendre.leggauss(20)  # on [-1, 1]

    def constant(values: Any) -> Any:
        return op.Constant(value=ir.tensor(np.asarray(values, dtype=np.float64)))

    def scalar(s: float, dtype: int = ir.DataType.DOUBLE, layout: str = "", device: str = "", pin: bool = False) -> Any:
        return op.Cast(constant(s), to=dtype)

    def gelu(self: Any, approximate: str = "none") -> Any:
        half, one = op.Mul(self, constant(0.5)), constant(1.0)
        if approximate == "tanh":
            cubic = op.Mul(op.Mul(op.Mul(self, self), self), constant(0.044715))
            return op.Mul(half, op.Add(op.Tanh(op.Mul(op.Add(self, cubic), constant((2 / np.pi) ** 0.5))), one))
        # erf is there for floats only: it is integrated, to 13 digits; beyond 6 it is 1
        x = op.Clip(op.Mul(self, constant(0.5**0.5)), constant(-6.0), constant(6.0))
        steps = op.Mul(op.Unsqueeze(x, op.Constant(value_ints=[-1])), constant((nodes + 1) / 2))  # […, 20]
        heights = op.Exp(op.Neg(op.Mul(steps, steps)))
        mean = op.Squeeze(op.MatMul(heights, constant(weights[:, np.newaxis] / 2)), op.Constant(value_ints=[-1]))
        return op.Mul(half, op.Add(op.Mul(op.Mul(x, mean), constant(2 / np.pi**0.5)), one))

    aten = torch.ops.aten
    return {aten.gelu.default: gelu, aten.scalar_tensor.default: scalar}
