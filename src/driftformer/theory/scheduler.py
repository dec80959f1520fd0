"""The window scheduler by weights (`appx-approx-rand-gen`, `-sig1`, `-sig2`): noise, random numbers, flags, σ1 and σ2.

A construction is a function that returns weights; the function `exact_…` next to it is what they must compute. All are
exact, but for the ramp of `indicators`. docs/theory.md tells where the text differs and why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from driftformer.errors import InputError
from driftformer.theory.bounds import Rho
from driftformer.theory.network import (
    Coordinates,
    Head,
    Layer,
    Mlp,
    apply,
    beside,
    indicators,
    linear,
    slope_changes,
    units,
)
from driftformer.theory.tokens import Layout


def exact_indicator(x: Tensor) -> Tensor:
    return (x > 0).to(x.dtype)


def indicator(x: Tensor, k: float) -> Tensor:
    """1[x > 0] from two ReLUs, ReLU(kx) − ReLU(kx − 1), exact outside the ramp 0 < x < 1/k.

    The text lets k go to infinity. In floating point the difference of two numbers near kx loses digits, which bounds k
    too: in float64 the error is 1e-10 for k = 10⁵ and 1e-8 for k = 10⁸.
    """
    return torch.relu(k * x) - torch.relu(k * x - 1)


def ramp_share(x: Tensor, k: float) -> float:
    """The share of inputs inside the ramp."""
    return float(((x > 0) & (k * x < 1)).double().mean())


def exact_ranks(noise: Tensor) -> Tensor:
    """The sequential ranks of noise `[B, T]`, as shares of the rounds so far."""
    earlier = noise.unsqueeze(1) < noise.unsqueeze(2)  # [B, i, j]: z_j < z_i
    rounds = torch.arange(1, noise.shape[1] + 1, dtype=noise.dtype)
    return earlier.tril().to(noise.dtype).sum(dim=2) / rounds


def full_sequence_ranks(noise: Tensor) -> Tensor:
    """The text's version: ranks among all rounds, a permutation: each is uniform, but they are not independent."""
    return (noise.unsqueeze(1) < noise.unsqueeze(2)).to(noise.dtype).mean(dim=2)


def ranks(layout: Layout, k: float) -> Layer:
    """Random numbers from data: 2(n+1) heads whose scores are k(z_i − z_j) and k(z_i − z_j) − 1, an empirical CDF.

    In the causal layer, normalised by 1/i, token i gets (1/i)·#{j < i: z_j < z_i}: the sequential rank of its noise.
    For independent continuous noise, sequential ranks are independent (Rényi), and that of token i is uniform on {0,
    1/i, …, (i−1)/i}. The first rounds are therefore coarse: token 1 always gets 0.

    Every order needs noise of its own: orders that share a coordinate would always start together. Equal noise
    (features of fixed arms) gives equal ranks, which are not random, so the noise must be an input of its own, as it is
    here.
    """
    return Layer(rank_heads(layout.unit("one"), layout.units("noise"), layout.units("rand"), k))


def rank_heads(one: Tensor, noise: Tensor, rand: Tensor, k: float) -> list[Head]:
    """Add the sequential rank of each noise to the entry that `rand` reads, rows `[n+1, D]` both; `one` is `[D]`."""
    heads = []
    for source, target in zip(noise, rand, strict=True):
        value = torch.outer(target, one)
        key = torch.stack([one, k * source, one])
        for offset, sign in ((0.0, 1.0), (-1.0, -1.0)):
            heads.append(Head(torch.stack([k * source, -one, offset * one]), key, sign * value))
    return heads


def exact_held(numbers: Tensor) -> Tensor:
    """Numbers `[B, T, n+1]`, each replaced by that of the round in which its order's block began."""
    rounds = torch.arange(numbers.shape[1])
    held = [numbers[:, rounds - rounds % 2**order, order] for order in range(numbers.shape[2])]
    return torch.stack(held, dim=2)


def held(layout: Layout) -> Layer:
    """Hold each order's number over its blocks, which Step 2 of `appx-approx-sig1` only postulates.

    Token t takes the number of the token at which its order-i block began. With x = k − start(t), the sum ReLU(x+1) −
    2·ReLU(x) + ReLU(x−1) is 1 at x = 0 and 0 at every other integer: three heads fetch the new number, without a ramp,
    and one removes the old. Their scores are t times that, which undoes the layer's 1/t; they are products of entries
    of two tokens because t and t·start(t) are in the input. (The text has t ≡ 1 mod 2 where blocks begin at t ≡ 1 mod
    2^i.)
    """
    one, now = layout.unit("one"), layout.unit("t")
    heads = []
    for order in layout.orders:
        rand = layout.unit("rand", order)
        value = torch.outer(rand, rand)
        key = torch.stack([now, one, one])
        for shift, sign in ((1.0, 1.0), (0.0, -2.0), (-1.0, 1.0)):
            query = torch.stack([now, -layout.unit("t_times_start", order), shift * now])
            heads.append(Head(query, key, sign * value))
        heads.append(layout.attend_to_itself(one, -value))
    return Layer(heads)


def thresholds(n: int, rho: Rho) -> Tensor:
    """ρ(2^n)/ρ(2^i) of all orders, `[n+1]`."""
    return torch.tensor([rho(2**n) / rho(2**order) for order in range(n + 1)], dtype=torch.double)


def exact_masks(numbers: Tensor, rho: Rho) -> Tensor:
    """The flags of random numbers `[B, T, n+1]`. The highest order's threshold is 1, above every rank."""
    return (numbers < thresholds(numbers.shape[2] - 1, rho)).to(numbers.dtype)


def masks(layout: Layout, rho: Rho, k: float) -> Layer:
    """Bernoulli masks (Step 1 of `appx-approx-sig1`): each order's number becomes its flag, 1[rand < ρ(2^n)/ρ(2^i)].

    For a given n the threshold of each order is a constant, so no product is needed: two hidden units write the flag,
    one removes the number.
    """
    one, rand = layout.unit("one"), layout.units("rand")  # [D], [n+1, D]
    flags = indicators(thresholds(layout.n, rho).unsqueeze(1) * one - rand, one, rand, k)
    # A rank is never negative, so ReLU(rand) = rand.
    return Layer(mlp=Mlp(torch.cat([flags.first, rand]), torch.cat([flags.second, -rand.T], dim=1)))


def square(pieces: int) -> tuple[Tensor, Tensor]:
    """x² on [0, 2] by straight pieces between equally spaced knots: the shifts and weights of one ReLU per piece."""
    knots = torch.linspace(0, 2, pieces + 1, dtype=torch.double)
    return knots[:-1], slope_changes(knots, knots**2)


def product(x: Tensor, y: Tensor, one: Tensor, write: Tensor, pieces: int) -> Mlp:
    """Add xy for numbers in [0, 1] that the rows x and y read, as ((x+y)² − x² − y²)/2; `write` names the entry.

    It has 3·pieces hidden units, and its error is at most 1.5/pieces²: O(1/√ε) of them, fewer than the text's O(1/ε).
    The text's own pieces are summed *inside* the ReLU, where a sum of affine functions is one affine function: its
    error is at least ¼, since xy at the corners of [0, 1]² has (1 + 0) − (0 + 0) = 1 where an affine function has 0.
    """
    shifts, weights = square(pieces)
    squares = [
        units(row - shifts.unsqueeze(1) * one, (sign * weights / 2).unsqueeze(1) * write)
        for row, sign in ((x + y, 1.0), (x, -1.0), (y, -1.0))
    ]
    return beside(*squares)


def product_coordinates() -> Coordinates:
    """What Step 1 reads and writes: rand, ρ(2^i), ρ(2^n); the product, and the flag."""
    return Coordinates(dict.fromkeys(("one", "rand", "rho", "rho_n", "product", "flag"), 1))


def product_masks(pieces: int, k: float) -> list[Layer]:
    """The text's way to flags, 1[rand·ρ(2^i) < ρ(2^n)], with ρ in the token: two MLPs, since one cannot multiply."""
    read = product_coordinates().read
    multiply = product(read("rand")[0], read("rho")[0], read("one")[0], read("product")[0], pieces)
    compare = indicators(read("rho_n") - read("product"), read("one")[0], read("flag"), k)
    return [Layer(mlp=multiply), Layer(mlp=compare)]


def corners(count: int) -> Tensor:
    """All pairs of numbers on a grid of [0, 1]², `[count², 2]`."""
    grid = torch.linspace(0, 1, count, dtype=torch.double)
    return torch.cartesian_prod(grid, grid)


def largest_product_error(pieces: int) -> float:
    """The largest error of `product` on a grid of [0, 1]²."""
    at, pairs = product_coordinates(), corners(201)
    tokens = torch.zeros(len(pairs), 1, at.width, dtype=torch.double)
    tokens[..., at["one"]] = 1.0
    tokens[:, 0, at["rand"].start], tokens[:, 0, at["rho"].start] = pairs[:, 0], pairs[:, 1]
    made = apply(product_masks(pieces, 1.0)[:1], tokens)[:, 0, at["product"].start]
    return float((made - pairs.prod(dim=1)).abs().max())


def least_affine_error() -> float:
    """How far the affine function that fits best, in the largest error, stays from xy on [0, 1]²: ¼, at (½, ½)."""
    pairs = corners(201)
    best = pairs.sum(dim=1) / 2 - 0.25
    return float((best - pairs.prod(dim=1)).abs().max())


def exact_sigma1(tokens: Tensor, layout: Layout) -> Tensor:
    """The block of every order times its flag."""
    masked = tokens.clone()
    for order in layout.orders:
        masked[..., layout.block(order)] *= tokens[..., layout.place("rand", order)].unsqueeze(-1)
    return masked


def projection(layout: Layout, order: int) -> Tensor:
    """P_m, which keeps the block of one order."""
    keep = torch.zeros(layout.width, dtype=torch.double)
    keep[layout.block(order)] = 1.0
    return torch.diag(keep)


def sigma1(layout: Layout) -> Layer:
    """σ1, the masking operator (`def-sig1`, Step 2 of `appx-approx-sig1`): blocks without an instance become zero.

    The flag is on the key's side and the query carries t: the score t·(1 − B_{m,k}) − Γ(t − k) is negative for every k
    < t once Γ is large enough, and at k = t it is t·(1 − B_{m,t}), whose factor t undoes the 1/t. With the value −P_m h
    the residual leaves B·P_m h: exact, without a ramp, and with one head per order instead of the text's two.
    """
    parts = [projection(layout, order) for order in layout.orders]
    return Layer(masking(layout.attend_to_itself, layout.unit("one"), layout.units("rand"), parts))


Attend = Callable[[Tensor, Tensor], Head]
"""A head of the token with itself: adds ⟨weight, h_t⟩·V h_t, given the row `[D]` of the weight and V."""


def masking(attend: Attend, one: Tensor, flags: Tensor, parts: Sequence[Tensor]) -> list[Head]:
    """σ1 for flags that rows `[n+1, D]` read and parts P_m `[D, D]`."""
    return [attend(one - flag, -part) for flag, part in zip(flags, parts, strict=True)]


def exact_sigma2(tokens: Tensor, layout: Layout) -> Tensor:
    """Zero the blocks above the lowest order whose flag is set."""
    selected = tokens.clone()
    taken = torch.zeros_like(tokens[..., 0], dtype=torch.bool)
    for order in layout.orders:
        selected[..., layout.block(order)] *= (~taken).to(tokens.dtype).unsqueeze(-1)
        taken = taken | (tokens[..., layout.place("rand", order)] > 0.5)
    return selected


def sigma2(layout: Layout) -> Layer:
    """σ2, the selection operator (`def-sig2`, `appx-approx-sig2`): only the lowest live order keeps its block.

    C = Σ_{p<m} B_p is an integer, and −C + ReLU(C − 1) is 0 where no lower order is live and −1 where one is. Two heads
    for every order but the lowest, which nothing can mask, with scores t·C − Γ(t − k) and t·C − t − Γ(t − k). (The text
    decides from sums of auxiliary values f; but f may be zero, and the sums include those of orders that are not live.)
    """
    parts = [projection(layout, order) for order in layout.orders]
    return Layer(selection(layout.attend_to_itself, layout.unit("one"), layout.units("rand"), parts))


def selection(attend: Attend, one: Tensor, flags: Tensor, parts: Sequence[Tensor]) -> list[Head]:
    """σ2, likewise."""
    heads = []
    for order in range(1, len(flags)):
        lower = flags[:order].sum(dim=0)
        heads += [attend(lower, -parts[order]), attend(lower - one, parts[order])]
    return heads


def compression_matrix(d: int, parts: int, width: int) -> Tensor:
    """W_comp of `appx-motiv-non-cont-tf`, the same for every part: `[D/(n+1), D]`. W_decomp is its transpose.

    Each part of a token of D numbers has D/(n+1) of them, so W_decomp·W_comp has rank at most D/(n+1) and cannot be
    close to I_D, as the text asks. It need not be: the data h has d numbers, and the identity is only needed on the
    subspace that they span. With h in the first d coordinates and d ≤ D/(n+1), W_comp moves them into a part and
    W_decomp back.
    """
    size = width // parts
    if d > size:
        raise InputError(f"d is {d}, but each of {parts} parts of a {width}-number token holds {size}; widen the token")
    matrix = torch.zeros(size, width, dtype=torch.double)
    matrix[:d, :d] = torch.eye(d, dtype=torch.double)
    return matrix


def regular(layout: Layout) -> list[Layer]:
    """The regular transformer of `appx-motiv-non-cont-tf`, from the data in order 0's part to what WS leaves of it.

    Compression copies the data into every other part by heads that see their own token alone (the text's MaskAttn); σ1
    and σ2 follow; decompression, an MLP, puts the sum of all parts, of which one at most is not zero, where the data
    was.
    """
    one = layout.unit("one")
    places = torch.eye(layout.width, dtype=torch.double)
    data = places[layout.x(0)]  # [d, D]
    copies = [layout.attend_to_itself(one, places[layout.x(order)].T @ data) for order in layout.orders[1:]]
    others = torch.stack([places[layout.x(order)] for order in layout.orders]).sum(dim=0) - data
    back = [Layer(mlp=linear(data.T @ others))] if layout.n else []
    return [*([Layer(copies)] if copies else []), sigma1(layout), sigma2(layout), *back]
