"""Explicit weights for the transformer of Section 2.2: heads and MLPs as the proof writes them.

A head is a triple of matrices (Q, K, V), an MLP a pair (W_1, W_2). `build` loads lists of them into a
`ReLUTransformer`, so the forward pass, with residuals and 1/i, is the one that a trained policy uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from driftformer.models.relu_transformer import ReLULayer, ReLUTransformer, causal


@dataclass(frozen=True)
class Head:
    """One attention head; Q and K may have few rows."""

    query: Tensor  # [q, D]
    key: Tensor  # [q, D]
    value: Tensor  # [D, D]


@dataclass(frozen=True)
class Mlp:
    """h + W_2·ReLU(W_1 h)."""

    first: Tensor  # [D', D]
    second: Tensor  # [D, D']


@dataclass(frozen=True)
class Layer:
    """Heads, then an MLP; either may be missing."""

    heads: Sequence[Head] = ()
    mlp: Mlp | None = None

    @property
    def hidden(self) -> int:
        """D' of this layer."""
        return 0 if self.mlp is None else len(self.mlp.first)


@dataclass(frozen=True)
class Shape:
    """How large a construction is."""

    width: int  # D
    layers: int  # L
    heads: int  # M, of the layer with the most
    hidden: int  # D', of the layer with the most

    def __str__(self) -> str:
        return f"D={self.width}, M={self.heads}, L={self.layers}, D'={self.hidden}"


@dataclass(frozen=True)
class Sizes(Shape):
    """The same with the norm, which takes longer to compute."""

    norm: float  # |||θ|||


class Coordinates(dict[str, slice]):
    """The named entries of a token, one after the other, given how many numbers each has, and matrices about them."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.width = 0  # D
        for name, size in sizes.items():
            self[name] = slice(self.width, self.width + size)
            self.width += size

    def read(self, name: str, times: float = 1.0) -> Tensor:
        """Rows that read an entry, `[size, D]`."""
        return times * torch.eye(self.width, dtype=torch.double)[self[name]]

    def move(self, source: str, target: str, times: float = 1.0) -> Tensor:
        """The matrix that adds one entry to another, `[D, D]`."""
        return self.read(target).T @ self.read(source, times)

    def overwrite(self, target: str, rows: Tensor) -> Tensor:
        """The matrix whose addition gives an entry the values that rows `[size, D]` read."""
        return self.read(target).T @ (rows - self.read(target))


def beside(*mlps: Mlp) -> Mlp:
    """All of them in one layer: hidden units side by side."""
    return Mlp(torch.cat([mlp.first for mlp in mlps]), torch.cat([mlp.second for mlp in mlps], dim=1))


def units(reads: Tensor, writes: Tensor) -> Mlp:
    """Add ReLU(⟨reads_i, h⟩) along writes_i, rows `[m, D]` each; a single row of either is used m times."""
    count = max(len(reads), len(writes))
    return Mlp(reads.expand(count, -1), writes.expand(count, -1).T)


def indicators(reads: Tensor, one: Tensor, writes: Tensor, k: float) -> Mlp:
    """Add 1[⟨reads_i, h⟩ > 0] to the entry of writes_i, rows `[m, D]` each: two hidden units per row.

    `one` `[D]` reads the constant.
    """
    first = torch.stack([k * reads, k * reads - one], dim=1).flatten(0, 1)  # [2m, D]
    return Mlp(first, torch.stack([writes, -writes], dim=1).flatten(0, 1).T)


def gated(reads: Tensor, closed: Tensor, writes: Tensor, largest: float) -> Mlp:
    """Add ⟨reads_i, h⟩ where the gate ⟨closed_i, h⟩ is 0 and nothing where it is at least 1, for |reads| ≤ largest.

    x·g for a gate g in {0, 1} is ReLU(x − Γ(1−g)) − ReLU(−x − Γ(1−g)) as long as |x| ≤ Γ: two hidden units per row.
    """
    shut = largest * closed
    first = torch.stack([reads - shut, -reads - shut], dim=1).flatten(0, 1)  # [2m, D]
    return Mlp(first, torch.stack([writes, -writes], dim=1).flatten(0, 1).T)


def with_itself(one: Tensor, now: Tensor, slope: float, pair: tuple[Tensor, Tensor], value: Tensor) -> Head:
    """Add (1/t)·ReLU(⟨left·h_t, right·h_t⟩)·V h_t to token t, and nothing of earlier ones; `pair` has rows `[q, D]`.

    The score is ⟨left·h_t, right·h_k⟩ − Γ(t − k), with a slope Γ that makes it negative for every k < t.
    """
    left, right = pair
    query = torch.cat([torch.stack([-slope * now, one]), left])
    return Head(query, torch.cat([torch.stack([one, slope * now]), right]), value)


def linear(change: Tensor) -> Mlp:
    """An MLP that adds change·h to h, since ReLU(s) − ReLU(−s) = s; rows of zeros take no hidden units."""
    rows = change.abs().sum(dim=1) > 0
    write = torch.eye(len(change), dtype=torch.double)[:, rows]
    return Mlp(torch.cat([change[rows], -change[rows]]), torch.cat([write, -write], dim=1))


def slope_changes(knots: Tensor, values: Tensor) -> Tensor:
    """c such that Σ c_i·ReLU(x − knot_i) joins the points (knot, value) by straight pieces; the first value is 0."""
    slopes = values.diff() / knots.diff()
    return torch.cat([slopes[:1], slopes.diff()])


def build(layers: Sequence[Layer], width: int, clip: float | None = None) -> ReLUTransformer:
    """The transformer with these weights; with `clip`, tokens are cut to that norm after each layer."""
    network, known = ReLUTransformer(width, 1, 0, clip), dict[int, tuple[int, Tensor, Tensor]]()
    network.layers.extend(_layer(layer, width, index, known) for index, layer in enumerate(layers))
    return network.requires_grad_(False)


def _layer(layer: Layer, width: int, index: int, known: dict[int, tuple[int, Tensor, Tensor]]) -> ReLULayer:
    """One layer; heads that occur in several layers, as one object, have their matrices once in memory."""
    none, eye = torch.zeros(1, width, dtype=torch.double), torch.eye(width, dtype=torch.double)
    heads = layer.heads or [Head(none, none, torch.zeros_like(eye))]
    mlp = layer.mlp or Mlp(none, none.T)
    if id(layer.heads) not in known or not layer.heads:
        known[id(layer.heads)] = _attention(heads)
    size, read, written = known[id(layer.heads)]
    with torch.device("meta"):
        built = ReLULayer(width, len(heads), index, head_size=size, hidden=len(mlp.first))
    weights = {"queries_keys_values": read, "out": written, "first": mlp.first, "second": mlp.second}
    built.load_state_dict({f"{name}.weight": matrix for name, matrix in weights.items()}, assign=True)
    return built


def _attention(heads: Sequence[Head]) -> tuple[int, Tensor, Tensor]:
    """The size of a head, queries, keys and values below each other, and what is written where."""
    eye = torch.eye(heads[0].value.shape[0], dtype=torch.double)
    written = [head.value.abs().sum(dim=1) > 0 for head in heads]  # the rows of V that are not zero
    size = max(*(len(head.query) for head in heads), *(int(rows.sum()) for rows in written))

    def stacked(*matrices: Tensor) -> Tensor:
        """One below the other, each with rows of zeros up to `size`."""
        return torch.cat([functional.pad(rows, (0, 0, 0, size - len(rows))) for rows in matrices])

    values = [head.value[rows] for head, rows in zip(heads, written, strict=True)]
    read = stacked(*(head.query for head in heads), *(head.key for head in heads), *values)
    return size, read, stacked(*(eye[rows] for rows in written)).T.contiguous()


def run(network: ReLUTransformer, tokens: Tensor) -> Tensor:
    """TF_θ of whole sequences `[B, T, D]`."""
    rounds = tokens.shape[1]
    output: Tensor = network(tokens, causal(rounds, rounds, tokens.device), None)
    return output


def apply(layers: Sequence[Layer], tokens: Tensor, clip: float | None = None) -> Tensor:
    """The same, straight from a list of layers."""
    return run(build(layers, tokens.shape[2], clip), tokens)


def shape(layers: Sequence[Layer]) -> Shape:
    """D, L, M and D'."""
    reads = [head.query for layer in layers for head in layer.heads]
    reads += [layer.mlp.first for layer in layers if layer.mlp is not None]
    return Shape(
        width=reads[0].shape[1],
        layers=len(layers),
        heads=max(len(layer.heads) for layer in layers),
        hidden=max(layer.hidden for layer in layers),
    )


def sizes(layers: Sequence[Layer]) -> Sizes:
    """The same and the norm |||θ||| of Section 2.2."""
    attention = {id(layer.heads): _norm_of_heads(layer.heads) for layer in layers}
    norm = max(attention[id(layer.heads)] + _norm_of_mlp(layer.mlp) for layer in layers)
    return Sizes(**vars(shape(layers)), norm=norm)


def _norm_of_heads(heads: Sequence[Head]) -> float:
    """max ‖Q_m‖ or ‖K_m‖, plus Σ ‖V_m‖."""
    largest = max((max(_operator(head.query), _operator(head.key)) for head in heads), default=0.0)
    return largest + sum(_operator(head.value) for head in heads)


def _norm_of_mlp(mlp: Mlp | None) -> float:
    return 0.0 if mlp is None else _operator(mlp.first) + _operator(mlp.second)


def _operator(matrix: Tensor) -> float:
    """The operator norm; rows and columns of zeros do not count."""
    kept = matrix[matrix.any(dim=1)][:, matrix.any(dim=0)]
    return float(torch.linalg.matrix_norm(kept, ord=2)) if kept.numel() else 0.0
