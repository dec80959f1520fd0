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
class Sizes:
    """The size of a construction."""

    width: int  # D
    layers: int  # L
    heads: int  # M, of the layer with the most
    hidden: int  # D', of the layer with the most
    norm: float  # |||θ|||

    def __str__(self) -> str:
        return f"D={self.width}, M={self.heads}, L={self.layers}, D'={self.hidden}"


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


def linear(change: Tensor) -> Mlp:
    """An MLP that adds change·h to h, since ReLU(s) − ReLU(−s) = s; rows of zeros take no hidden units."""
    rows = change.abs().sum(dim=1) > 0
    write = torch.eye(len(change), dtype=torch.double)[:, rows]
    return Mlp(torch.cat([change[rows], -change[rows]]), torch.cat([write, -write], dim=1))


def slope_changes(knots: Tensor, values: Tensor) -> Tensor:
    """c such that Σ c_i·ReLU(x − knot_i) joins the points (knot, value) by straight pieces; the first value is 0."""
    slopes = values.diff() / knots.diff()
    return torch.cat([slopes[:1], slopes.diff()])


def build(layers: Sequence[Layer], width: int) -> ReLUTransformer:
    """The transformer with these weights."""
    network = ReLUTransformer(width, 1, 0)
    network.layers.extend(_layer(layer, width, index) for index, layer in enumerate(layers))
    return network.double().requires_grad_(False)


def _layer(layer: Layer, width: int, index: int) -> ReLULayer:
    none, eye = torch.zeros(1, width, dtype=torch.double), torch.eye(width, dtype=torch.double)
    heads = list(layer.heads) or [Head(none, none, torch.zeros_like(eye))]
    mlp = layer.mlp or Mlp(none, none.T)
    written = [head.value.abs().sum(dim=1) > 0 for head in heads]  # the rows of V that are not zero
    size = max(*(len(head.query) for head in heads), *(int(rows.sum()) for rows in written))

    def stacked(*matrices: Tensor) -> Tensor:
        """One below the other, each with rows of zeros up to `size`."""
        return torch.cat([functional.pad(rows, (0, 0, 0, size - len(rows))) for rows in matrices])

    values = [head.value[rows] for head, rows in zip(heads, written, strict=True)]
    built = ReLULayer(width, len(heads), index, head_size=size, hidden=len(mlp.first)).double()
    with torch.no_grad():
        queries_keys = (*(head.query for head in heads), *(head.key for head in heads))
        built.queries_keys_values.weight.copy_(stacked(*queries_keys, *values))
        built.out.weight.copy_(stacked(*(eye[rows] for rows in written)).T)
        built.first.weight.copy_(mlp.first)
        built.second.weight.copy_(mlp.second)
    return built


def run(network: ReLUTransformer, tokens: Tensor) -> Tensor:
    """TF_θ of whole sequences `[B, T, D]`."""
    rounds = tokens.shape[1]
    output: Tensor = network(tokens, causal(rounds, rounds, tokens.device), None)
    return output


def apply(layers: Sequence[Layer], tokens: Tensor) -> Tensor:
    """The same, straight from a list of layers."""
    return run(build(layers, tokens.shape[2]), tokens)


def sizes(layers: Sequence[Layer]) -> Sizes:
    """D, L, M, D' and the norm |||θ||| of Section 2.2."""
    reads = [head.query for layer in layers for head in layer.heads]
    reads += [layer.mlp.first for layer in layers if layer.mlp is not None]
    return Sizes(
        width=reads[0].shape[1],
        layers=len(layers),
        heads=max(len(layer.heads) for layer in layers),
        hidden=max(layer.hidden for layer in layers),
        norm=max(_norm(layer) for layer in layers),
    )


def _norm(layer: Layer) -> float:
    """One layer's part of |||θ|||."""

    def operator(matrix: Tensor) -> float:
        return float(torch.linalg.matrix_norm(matrix, ord=2))

    largest = max((max(operator(head.query), operator(head.key)) for head in layer.heads), default=0.0)
    values = sum(operator(head.value) for head in layer.heads)
    return largest + values + (0.0 if layer.mlp is None else operator(layer.mlp.first) + operator(layer.mlp.second))
