"""The GPU kernels against torch in float64, run by Triton's interpreter where Triton is installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

CHECK = """
import torch
from torch.nn.functional import scaled_dot_product_attention
from driftformer.models.kernels import attend_cached, causal_attention

def heads(packed, count):
    batch, tokens, _ = packed.shape
    return [part.view(batch, tokens, count, -1).transpose(1, 2) for part in packed.chunk(3, dim=2)]

def error(ours, theirs):
    return float((ours.detach().double() - theirs.detach()).norm() / theirs.detach().norm())

torch.manual_seed(0)
for tokens, size in ((37, 8), (130, 16), (70, 32)):
    packed = torch.randn(2, tokens, 3 * 2 * size)
    mine, exact = packed.clone().requires_grad_(), packed.double().requires_grad_()
    out = causal_attention(*heads(mine, 2), size**-0.5)
    reference = scaled_dot_product_attention(*heads(exact, 2), is_causal=True).transpose(1, 2)
    slope = torch.randn_like(out)
    out.backward(slope)
    reference.backward(slope.double())
    assert error(out, reference) < 1e-5 and error(mine.grad, exact.grad) < 1e-5
for filled, new in ((0, 1), (0, 2), (5, 1), (64, 2), (100, 2)):
    slots = torch.randn(2, 3, 2, 140, 8)
    before = slots.clone()
    q, k, v = heads(torch.randn(3, new, 3 * 2 * 8), 2)
    keys, values = (torch.cat([slots[kind, :, :, :filled], part], 2).double() for kind, part in ((0, k), (1, v)))
    seen = torch.ones(new, filled + new, dtype=torch.bool).tril(filled)
    reference = scaled_dot_product_attention(q.double(), keys, values, attn_mask=seen).transpose(1, 2)
    out = attend_cached(q, k, v, *slots, torch.tensor([filled], dtype=torch.int32), 8**-0.5)
    assert error(out, reference) < 1e-5
    stored = slots[:, :, :, filled : filled + new]
    assert torch.equal(stored[0], k) and torch.equal(stored[1], v)
    assert torch.equal(slots[:, :, :, :filled], before[:, :, :, :filled])
print("equal")
"""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_kernels_equal_torch_forward_and_backward() -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", CHECK], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "equal", done.stderr
