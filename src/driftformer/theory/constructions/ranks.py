"""Random numbers from data (Appendix `appx-approx-rand-gen`): two heads that compute an empirical CDF.

In the causal layer of Section 2.2, normalised by 1/i, token i gets (1/i)·#{j < i: z_j < z_i}: the sequential rank of
its noise among those so far. For independent continuous noise, sequential ranks are independent (Rényi), and that of
token i is uniform on {0, 1/i, …, (i−1)/i}. The first rounds are therefore coarse: token 1 always gets 0. The text sums
over the whole sequence instead; those ranks are a permutation of {0, …, 1 − 1/T}: each is uniform, but they are not
independent, since the others determine the last.

Every order needs noise of its own: orders that share a coordinate would always start together. Equal noise (features of
fixed arms) gives equal ranks, which are not random, so the noise must be an input of its own, as it is here.
"""

from __future__ import annotations

import torch
from torch import Tensor

from driftformer.theory.network import Head, Layer
from driftformer.theory.tokens import Layout


def reference(noise: Tensor) -> Tensor:
    """The sequential ranks of noise `[B, T]`, as shares of the rounds so far."""
    earlier = noise.unsqueeze(1) < noise.unsqueeze(2)  # [B, i, j]: z_j < z_i
    rounds = torch.arange(1, noise.shape[1] + 1, dtype=noise.dtype)
    return earlier.tril().to(noise.dtype).sum(dim=2) / rounds


def full_sequence(noise: Tensor) -> Tensor:
    """The text's version: ranks among all rounds, later ones included."""
    return (noise.unsqueeze(1) < noise.unsqueeze(2)).to(noise.dtype).mean(dim=2)


def build(layout: Layout, k: float) -> Layer:
    """Write each order's random number: 2(n+1) heads whose scores are k(z_i − z_j) and k(z_i − z_j) − 1."""
    one = layout.unit("one")
    heads = []
    for order in layout.orders:
        noise = layout.unit("noise", order)
        value = torch.outer(layout.unit("rand", order), one)
        key = torch.stack([one, k * noise, one])
        for offset, sign in ((0.0, 1.0), (-1.0, -1.0)):
            query = torch.stack([k * noise, -one, offset * one])
            heads.append(Head(query, key, sign * value))
    return Layer(heads)
